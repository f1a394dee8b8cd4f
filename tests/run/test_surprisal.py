"""Surprisal of a user's own sentences, from the shell and from Python."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.units import to_bits
from felicity.data import read_dataset
from felicity.engines.sources import resolve_source
from felicity.run.surprisal import measure_surprisal, read_texts, split_regions
from tests.conftest import Answer

Cli = Callable[..., Answer]
SENTENCES = ["The cats annoy Tim.", "The cat sleeps.", "A dog barks at the boys."]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(SENTENCES) + "\n\n", encoding="utf-8")
    return path


def test_sums_by_token_word_and_sentence_are_the_sentence_score(lines: Path, tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model))
    wanted = [to_bits(-lp) for lp in lm.score(SENTENCES)["lp"]]
    for by in ("token", "word", "sentence"):
        table = measure_surprisal(lm, read_texts(lines), by=by)  # type: ignore[arg-type]
        sums = table.group_by("row", maintain_order=True).agg(pl.col("surprisal").sum())["surprisal"]
        assert sums.to_list() == pytest.approx(wanted, abs=1e-3)


def test_words_are_those_of_lm_words_in_the_unit_asked_for(lines: Path, tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model))
    table = measure_surprisal(lm, read_texts(lines), by="word", unit="nats")
    words = lm.words(SENTENCES)
    assert table["word"].to_list() == words["word"].to_list()
    assert table["surprisal"].to_list() == pytest.approx((-words["lp"]).to_list())


def test_a_table_keeps_its_columns_and_its_contexts(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    path, out = tmp_path / "s.csv", tmp_path / "out.csv"
    path.write_text("item,before,text\n7,It rains.,The cats sleep.\n8,It snows.,The cats sleep.\n")
    answer = cli("surprisal", path, "-m", tiny_model, "--context", "before", "--by", "sentence", "-o", out)
    assert answer.code == 0
    table = pl.read_csv(out)
    assert table["item"].to_list() == [7, 8]
    assert table["before"].to_list() == ["It rains.", "It snows."]
    lm = fe.model(str(tiny_model))
    scores = lm.score(["The cats sleep."] * 2, context=["It rains.", "It snows."])["lp"]
    assert table["surprisal"].to_list() == pytest.approx([to_bits(-lp) for lp in scores], rel=1e-9)


@pytest.mark.parametrize("written", ["preambel", "Preamble"])
def test_a_misspelt_column_of_contexts_is_not_taken_for_a_context(tmp_path: Path, written: str) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text,preamble\nShe saw.,It rained.\n", encoding="utf-8")
    with pytest.raises(UnknownName, match="did you mean 'preamble'"):
        read_texts(path, context=written)
    assert read_texts(path, context="Yesterday").contexts == ["Yesterday"]


def test_regions_are_cut_at_bars_and_scored_as_one_sentence(tmp_path: Path, tiny_model: Path) -> None:
    assert split_regions(["The horse | raced | fell."])[0] == ["The horse raced fell."]
    path = tmp_path / "r.csv"
    path.write_text("text\nThe horse | raced past | the barn.\n")
    lm = fe.model(str(tiny_model))
    table = measure_surprisal(lm, read_texts(path), by="region")
    assert table["region"].to_list() == ["The horse", "raced past", "the barn."]
    whole = to_bits(-lm.score("The horse raced past the barn.")["lp"].item())
    assert table["surprisal"].sum() == pytest.approx(whole, abs=1e-3)


def test_tokens_come_with_rank_entropy_alternatives_and_spillover(
    cli: Cli, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("The cats annoy Tim.\n"))
    options = ("--by", "token", "--rank", "--entropy", "--top", "2", "--spillover", "1", "--json")
    rows = json.loads(cli("surprisal", "-", "-m", tiny_model, *options).out)
    assert "".join(row["piece"] for row in rows) == "The cats annoy Tim."
    assert [row["surprisal_1_before"] for row in rows[1:]] == [row["surprisal"] for row in rows[:-1]]
    assert all(len(row["top_tokens"]) == 2 and row["rank"] >= 1 and row["entropy"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        ("", {}, "empty"),
        ("text\n\n", {}, "no rows"),
        ("sentence\nHe left.\n", {}, "text"),
    ],
)
def test_files_that_cannot_be_used_are_refused(
    tmp_path: Path, content: str, options: dict[str, str], complaint: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(fe.FelicityError, match=complaint):
        read_texts(path, **options)


def test_what_belongs_to_tokens_is_not_asked_of_words(lines: Path, tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model))
    with pytest.raises(NotPossible, match="--by token"):
        measure_surprisal(lm, read_texts(lines), by="word", rank=True)
    with pytest.raises(NotPossible, match="no spillover"):
        measure_surprisal(lm, read_texts(lines), by="sentence", spillover=1)


def test_contexts_in_some_rows_only_are_refused(tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("before,text\nIt rains.,He left.\n,He left.\n")
    with pytest.raises(BadInput, match="Some rows have a context"):
        measure_surprisal(fe.model(str(tiny_model)), read_texts(path, context="before"))


def test_lp_over_n_tokens_is_mean_lp_without_a_begin_token(tiny_model: Path, tmp_path: Path) -> None:
    lm = fe.model(str(tiny_model), policy=fe.Policy(bos="none"))
    pairs = tmp_path / "p.csv"
    pairs.write_text("good,bad\nThe cats sleep.,The cats sleeps.\n")
    run = fe.evaluate(str(pairs), lm, measures=["mean_lp"])
    row = lm.score("The cats sleep.").row(0, named=True)
    assert row["lp"] / row["n_tokens"] == pytest.approx(run["scores"]["value"][0])


def test_counts_of_another_tokenizer_are_refused_unless_allowed(
    cli: Cli, tiny_model: Path, tmp_path: Path
) -> None:
    pairs, counts = tmp_path / "p.csv", tmp_path / "counts.tsv"
    pairs.write_text("good,bad\nThe cats sleep.,The cats sleeps.\n")
    counts.write_text("zebra\t5\nquagga\t3\n")
    options = (
        "-m",
        tiny_model,
        "--measure",
        "slor",
        "--unigram",
        counts,
        "-o",
        tmp_path / "run",
        "--no-report",
    )
    answer = cli("run", pairs, *options)
    assert answer.code == 2
    assert "another tokenizer" in answer.err
    assert cli("run", pairs, *options, "--unseen", "1").code == 0


@pytest.mark.slow
def test_two_hundred_sentences_equal_lm_words_lm_tokens_and_minicons(
    cli: Cli, default_weights: Any, tmp_path: Path
) -> None:
    from minicons.scorer import IncrementalLMScorer
    from transformers import AutoTokenizer

    texts = read_dataset("starter").items["text"].unique(maintain_order=True).to_list()[::7][:200]
    assert len(texts) == 200
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    for by in ("token", "word"):
        options = ("--by", by, "-o", tmp_path / f"{by}.csv", "-q", "--bos", "declared")
        answer = cli("surprisal", tmp_path / "texts.txt", *options)
        assert answer.code == 0, answer.err
    by_token, by_word = (pl.read_csv(tmp_path / f"{by}.csv") for by in ("token", "word"))

    lm = fe.model("smollm2", policy=fe.Policy(bos="declared"))
    own = lm.tokens(texts)["logprob"].explode().to_numpy() / -np.log(2)
    assert np.abs(by_token["surprisal"].to_numpy() - own).max() < 1e-3
    words = lm.words(texts)
    assert np.abs(by_word["surprisal"].to_numpy() + words["lp"].to_numpy() / np.log(2)).max() < 1e-3

    peer = IncrementalLMScorer(
        default_weights, "cpu", tokenizer=AutoTokenizer.from_pretrained(resolve_source("smollm2").folder)
    )
    sums = by_token.group_by("row", maintain_order=True).agg(pl.col("surprisal").sum())["surprisal"]
    theirs = [
        value
        for begin in range(0, len(texts), 25)
        for value in peer.sequence_score(
            texts[begin : begin + 25], reduction=lambda x: -x.sum(0).item() / np.log(2), bos_token=True
        )
    ]
    assert np.abs(sums.to_numpy() - np.array(theirs)).max() < 1e-3
