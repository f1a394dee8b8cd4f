"""Planted faults are found, and clean pairs raise no alarm."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.data import find_frequency
from felicity.stimuli.checks import Knowledge, MinimalPair, check_minimal_pairs, open_knowledge, read_wordnet

FOLDER = Path(__file__).parent
LEAST_FOUND = 50
needs_words = pytest.mark.skipif(
    read_wordnet() is None or find_frequency() is None, reason="WordNet or wordfreq is not installed"
)


def read_planted() -> pl.DataFrame:
    rows = pl.read_csv(FOLDER / "planted_faults.tsv", separator="\t", quote_char=None)
    return rows.with_columns(
        pl.col("rule").fill_null(""), pl.format("pair{}", pl.int_range(pl.len())).alias("suite")
    )


def find_missed(rows: pl.DataFrame, found: pl.DataFrame) -> list[str]:
    """The faults of which the rule says nothing; every pair is a suite of its own, so that none is folded."""
    known = {(item.partition("/")[0], rule) for item, rule in found.select("item", "rule").iter_rows()}
    numbered = rows.select("suite", "rule", "good", "bad").iter_rows()
    return [f"{good} / {bad}" for suite, rule, good, bad in numbered if rule and (suite, rule) not in known]


@needs_words
def test_at_least_50_of_55_planted_faults_are_found_without_a_model() -> None:
    rows = read_planted()
    assert rows.filter(pl.col("rule") != "").height == 55
    missed = find_missed(rows, fe.check(rows.select("suite", "good", "bad")).findings)
    assert 55 - len(missed) >= LEAST_FOUND, missed


@needs_words
def test_nothing_is_said_about_60_clean_pairs() -> None:
    found = fe.check(FOLDER / "clean_pairs.tsv")
    assert found.items == 60
    assert found.problems.is_empty()
    assert found.findings.rows() == []


@pytest.mark.parametrize("zipf", [True, False], ids=["with wordfreq", "without"])
def test_without_wordnet_clean_pairs_are_clean_and_what_is_not_checked_is_said(zipf: bool) -> None:
    if zipf and find_frequency() is None:
        pytest.skip("wordfreq is not installed")
    whole = open_knowledge(find_frequency() if zipf else None)
    knowledge = Knowledge(zipf=whole.zipf, lexicon=whole.lexicon, verbs=whole.verbs)
    rows = pl.read_csv(FOLDER / "clean_pairs.tsv", separator="\t", quote_char=None)
    pairs = [MinimalPair(str(n), *row) for n, row in enumerate(rows.iter_rows())]
    assert check_minimal_pairs(pairs, knowledge) == []
    unchecked = knowledge.list_unchecked()
    assert "offensive word" in unchecked
    assert ("misspelt word" in unchecked) is not zipf


def test_articles_participles_and_pairs_need_no_list() -> None:
    whole = open_knowledge()
    knowledge = Knowledge(lexicon=whole.lexicon, verbs=whole.verbs)
    rows = read_planted().filter(
        pl.col("kind").is_in(["article", "mass", "punctuation", "capitals", "length"])
    )
    pairs = [
        MinimalPair(suite, suite, good, bad)
        for suite, good, bad in rows.select("suite", "good", "bad").iter_rows()
    ]
    found = pl.DataFrame(
        check_minimal_pairs(pairs, knowledge), schema=["item", "rule", "detail"], orient="row"
    )
    assert find_missed(rows, found) == []


def check_one(good: str, bad: str, **counters: object) -> list[str]:
    pair = MinimalPair("1", "s", good, bad)
    return [one.rule for one in check_minimal_pairs([pair], open_knowledge(), **counters)]  # type: ignore[arg-type]


def test_a_mistake_that_is_what_the_pair_tests_is_not_reported() -> None:
    assert check_one("She ate an apple.", "She ate a apple.") == []
    assert check_one("She had broken it.", "She had broke it.") == []
    assert check_one("She eats an apple.", "She eat a apple.") == ["wrong article"]


def test_a_good_sentence_that_alone_is_wrong_suggests_swapped_labels() -> None:
    assert check_one("She ate a apple.", "She ate an apple.") == ["wrong article", "labels swapped?"]


def test_unequal_tokens_are_reported_by_tokenizer() -> None:
    def count(texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]

    assert check_one("The cats sleep.", "The cats sleeps.", counters={"four": count}) == ["unequal tokens"]


def test_an_empty_sentence_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("item,condition,context_text,text\n1,a,A cat is an,animal\n1,b,,\n", encoding="utf-8")
    found = fe.check(table)
    assert found.problems["problem"].to_list() == ["empty cell", "empty cell"]
    assert not found.usable
