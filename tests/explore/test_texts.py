"""The words of a study of reading as the explorer gives them: times, surprisals, reasons and residuals."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import NotPossible, UnknownName
from felicity.engines.ngram import train_ngram
from felicity.explore import describe_collection, gather_everything, open_collections, read_passage, texts
from felicity.stats import RECIPES, explain_rows, prepare_rows
from felicity.studies import read_study
from tests.explore.runs import write_reading


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reading(tmp_path_factory.mktemp("read"))


def test_words_have_the_numbers_of_the_tables(study: Path) -> None:
    tables = read_study(study).tables
    with open_collections([study]) as (collection,):
        about = describe_collection(collection)
        assert about["views"] == ["words"]
        assert about["units"] == {"self_paced": "ms", "n400": "µV"}
        assert about["ways"] == {"one": ["given"], "two": ["given"]}
        found = read_passage(collection, "b")
    own = tables["words"].filter(text="b", model="two")
    assert found["word"] == own["word"].to_list()
    assert found["measures"]["n400"] == own["n400"].to_list()
    assert found["surprisal"]["two"]["given"] == own["surprisal"].to_list()
    left = tables["residuals"].filter(text="b", measure="n400", model="two")
    reasons = [None if place is None else found["reasons"][place] for place in found["left_out"]["n400"]]
    assert reasons == left["left_out"].to_list()
    assert found["residual"]["n400"]["two"] == left["residual"].to_list()


def test_every_word_is_used_or_left_out_for_a_reason(study: Path) -> None:
    tables = read_study(study).tables
    rows = tables["residuals"]
    assert (rows["left_out"].is_null() == rows["residual"].is_not_null()).all()
    used = rows.filter(pl.col("residual").is_not_null()).group_by("measure", "model").len()
    fit = tables["fit"].filter(predictor="surprisal").select("measure", "model", "n")
    assert dict(zip(*used.select(pl.concat_str("measure", "model"), "len"), strict=True)) == dict(
        zip(*fit.select(pl.concat_str("measure", "model"), "n"), strict=True)
    )
    assert "no frequency 1 word before in the sentence" in rows["left_out"].to_list()
    assert "no n400" in rows.filter(measure="n400")["left_out"].to_list()
    assert abs(rows.filter(measure="n400", model="one")["residual"].sum()) < 1e-6


def test_the_reasons_are_those_of_the_rows_that_are_prepared() -> None:
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"sentence": np.repeat(np.arange(9), 6), "word": ["a", "b,", "c", "d", "e", "f."] * 9}
    )
    table = table.with_columns(
        text=pl.lit("t"),
        position=pl.int_range(pl.len()) % 6,
        surprisal=pl.Series(rng.normal(9, 2, 54)),
        frequency=pl.Series(rng.normal(4, 1, 54)),
        length=pl.Series(rng.normal(4, 1, 54)),
        punctuation=pl.lit(0),
        sentence_first=(pl.int_range(pl.len()) % 6 == 0).cast(pl.Int64),
        sentence_last=(pl.int_range(pl.len()) % 6 == 5).cast(pl.Int64),
        rt=pl.when(pl.int_range(pl.len()) % 7 > 0).then(pl.Series(rng.normal(300, 9, 54))),
    )
    for recipe in RECIPES.values():
        kept, _ = prepare_rows(table.with_row_index("row"), "rt", recipe)
        used = explain_rows(table, "rt", recipe).is_null()
        assert table.with_row_index("row").filter(used)["row"].to_list() == kept["row"].to_list(), recipe.name


def test_a_text_that_is_not_there_is_refused(study: Path) -> None:
    with open_collections([study]) as (collection,), pytest.raises(UnknownName, match="text 'zz'"):
        read_passage(collection, "zz")


def test_short_texts_are_shown_together(study: Path) -> None:
    with open_collections([study]) as (collection,):
        passages = describe_collection(collection)["passages"]
        assert [passage["label"] for passage in passages] == ["a", "b", "c to d"]
        assert read_passage(collection, "c")["text"] == read_passage(collection, "d")["text"]
        whole = gather_everything(collection)
    assert sum(len(passage["word"]) for passage in whole["passages"]) == 1000


def test_too_much_for_one_file_is_refused(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST_NUMBERS", 100)
    with open_collections([study]) as (collection,), pytest.raises(NotPossible, match="without --static"):
        gather_everything(collection)


def test_a_study_of_read_texts_and_a_run_are_opened_together(study: Path, tmp_path: Path) -> None:
    pairs = pl.DataFrame({"good": ["The cat is here."], "bad": ["The cat are here."]})
    pairs.write_csv(tmp_path / "pairs.csv")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat is here .\n" * 5)
    train_ngram(corpus, tmp_path / "words.arpa", order=2)
    fe.run(tmp_path / "pairs.csv", str(tmp_path / "words.arpa"), out=tmp_path / "run")
    with open_collections([tmp_path / "run", study]) as collections:
        assert [describe_collection(one)["views"][0] for one in collections] == ["items", "words"]
