"""The quality of a set: repeats and balance, and what a parser says of the good sentences."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.core.errors import NotPossible
from felicity.stimuli.lexicon import Lexicon, WordForm
from felicity.stimuli.pairs import PairGenerator, Paradigm, describe_suites, parse_sentences
from felicity.stimuli.pairs.drawing import STEM
from felicity.stimuli.pairs.quality import PARSER

needs_parser = pytest.mark.skipif(shutil.which(PARSER) is None, reason="link-grammar is not installed")


def test_repeats_and_the_most_frequent_word_are_counted() -> None:
    goods = ["A dog sleeps.", "A dog eats.", "The cat sleeps.", "The cow sleeps."]
    bads = ["A dog sleep.", "A dog eat.", "The cat sleeps.", "The cow sleep."]
    pairs = pl.DataFrame({"suite": ["s"] * 4, "good": goods, "bad": bads})
    row = describe_suites(pairs, function_words={"a", "the", "sleeps"}).to_dicts()[0]
    assert row["identical"] == 1
    assert row["repeated"] == 2  # the third sentence stands on both sides
    assert row["distinct_words"] == 7


@needs_parser
def test_the_parser_accepts_a_sentence_and_rejects_a_word_salad() -> None:
    texts = ["The waiters had praised some guests.", "Guests had the praised some of.", "This dog sleeps."]
    assert parse_sentences(texts) == [True, False, True]


def test_a_missing_parser_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotPossible, match="install Debian's package link-grammar"):
        parse_sentences(["This dog sleeps."])


@needs_parser
def test_all_sentences_without_a_parse_are_written_beside_the_set(
    cli: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    answer = cli(
        "stimuli", "pairs", "--paradigm", "expletive_it_object_raising", "-n", 8, "-m", tiny_model,
        "--match", "length", "--parse", "-q", "-o", tmp_path / "pairs.csv",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    unparsed = pl.read_csv(tmp_path / "pairs.unparsed.csv")
    assert unparsed.columns == ["suite", "item", "good"]
    assert f"no complete parse of {len(unparsed)} of 8 good sentences" in answer.out


def test_words_of_one_stem_seldom_meet_in_a_sentence(
    make_generator: Callable[..., PairGenerator], paradigms: dict[str, Paradigm], lexicon: Lexicon
) -> None:
    """analyze an analysis, draw a drawing: a pair takes them only when three draws out of three do."""
    pairs = make_generator().make(paradigms["regular_plural_subject_verb_agreement_2"], 300, seed=0).pairs
    known: dict[str, WordForm] = {
        one.text: one for category in ("N", "V") for one in lexicon.readings[category]
    }
    echoes = 0
    for good in pairs["good"]:
        stems = [word[:STEM] for word in good.rstrip(".").split() if word in known]
        echoes += len(set(stems)) < len(stems)
    assert echoes <= 3
