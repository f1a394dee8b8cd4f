"""felicity from a notebook: frames in, short reprs, completion, refusals in a sentence."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import felicity as fe

PAIRS = {"good": ["The cats sleep.", "The dog barks."], "bad": ["The cats sleeps.", "The dog bark."]}


@pytest.mark.parametrize("frame", [pl.DataFrame(PAIRS), pd.DataFrame(PAIRS)], ids=["polars", "pandas"])
def test_a_frame_is_evaluated_as_a_file_would_be(frame: object, tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "frame.csv"
    pl.DataFrame(PAIRS).write_csv(path)
    run = fe.evaluate(frame, str(tiny_model), measures="lp")
    assert run["scores"].drop("request").equals(fe.evaluate(path, str(tiny_model))["scores"].drop("request"))


def test_a_run_says_what_it_is_in_a_line_and_writes_its_report(tiny_model: Path, tmp_path: Path) -> None:
    run = fe.evaluate(pl.DataFrame(PAIRS), str(tiny_model))
    right = int(run["judgements"]["passed"].sum())
    assert repr(run) == f"Run({tiny_model.name} on frame: accuracy {100 * right / 2:.1f}% of 2 items)"
    page = run.report(tmp_path)
    assert page == tmp_path / "report.html"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")
    for name in [tiny_model.name, *run["judgements"].filter(passed=0.0)["item"]]:
        assert name in text


@pytest.mark.parametrize(
    ("dataset", "complaint"),
    [(7, "a name, a file or a frame, not int"), (pl.DataFrame({"good": []}), "no rows")],
)
def test_what_is_no_dataset_is_refused(dataset: object, complaint: str, tiny_model: Path) -> None:
    with pytest.raises(fe.FelicityError, match=complaint):
        fe.evaluate(dataset, str(tiny_model))


def test_completion_lists_the_public_names() -> None:
    assert {"evaluate", "model", "read_run", "Policy"} <= set(dir(fe))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda lm: lm.score(5), "A text is 5; give a string"),
        (lambda lm: lm.score({"text": "He left."}), "give a string or a list"),
        (lambda lm: lm.score("He left.", context=3), "A context is 3"),
        (lambda lm: fe.evaluate(pl.DataFrame(PAIRS), 5), "The model is 5; give a name"),
        (lambda lm: fe.evaluate(pl.DataFrame(PAIRS), lm, measures=3), "The measures are 3"),
        (lambda lm: fe.evaluate(3, lm), "not int"),
        (lambda _: fe.model(3), "The model is 3"),
        (lambda _: fe.model("smollm2", policy="none"), "The policy is 'none'"),
    ],
)
def test_a_wrong_type_is_refused_in_a_sentence(
    tiny_model: Path, call: Callable[[fe.Model], object], said: str
) -> None:
    with pytest.raises(fe.FelicityError, match=said):
        call(fe.model(str(tiny_model), cache=False))


def test_a_run_knows_its_folder_and_reports_there(tiny_model: Path, tmp_path: Path) -> None:
    lm = fe.model(tiny_model, cache=False)
    run = fe.evaluate(pl.DataFrame(PAIRS), lm, out=tmp_path / "run")
    assert run.report() == tmp_path / "run" / "report.html"
    with pytest.raises(fe.FelicityError, match="not kept in a folder"):
        fe.evaluate(pl.DataFrame(PAIRS), lm).report()


STIMULI = {"item": [1, 2], "sentence": ["The cats annoy Tim.", "The cat sleeps."], "reader": ["a", "b"]}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
def test_a_frame_of_texts_is_scored_by_its_column_and_kept(
    frame: Callable[[object], object], tiny_model: Path
) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    scores = lm.score(frame(STIMULI), column="sentence")
    assert scores.columns == ["item", "sentence", "reader", "lp", "n_tokens"]
    assert scores["lp"].equals(lm.score(STIMULI["sentence"])["lp"])
    words = lm.words(frame(STIMULI), column="sentence")
    plain = lm.words(STIMULI["sentence"])
    assert words["word"].to_list() == plain["word"].to_list() == " ".join(STIMULI["sentence"]).split()
    assert words["lp"].equals(plain["lp"])
    assert words["row"].to_list() == plain["row"].to_list() == [1, 1, 1, 1, 2, 2, 2]
    assert plain["text"].to_list() == [STIMULI["sentence"][0]] * 4 + [STIMULI["sentence"][1]] * 3
    assert words["place"].to_list() == [1, 2, 3, 4, 1, 2, 3]
    assert words["reader"].to_list() == ["a"] * 4 + ["b"] * 3
    tokens = lm.tokens(frame(STIMULI), column="sentence")
    assert tokens["item"].to_list() == [1, 2]
    assert tokens["tokens"].to_list() == lm.tokens(STIMULI["sentence"])["tokens"].to_list()


def test_the_column_of_texts_may_be_left_out_where_it_is_clear(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    frame = pl.DataFrame(STIMULI)
    assert lm.score(frame.drop("reader"))["lp"].equals(lm.score(STIMULI["sentence"])["lp"])
    assert lm.score(frame.rename({"sentence": "text"}))["lp"].equals(lm.score(STIMULI["sentence"])["lp"])
    in_context = lm.score(frame, column="sentence", context="reader")["lp"]
    assert in_context.equals(lm.score(STIMULI["sentence"], context=["a", "b"])["lp"])
    assert lm.score(frame.with_columns(lp=1.0), column="sentence").columns[3:] == [
        "lp_given",
        "lp",
        "n_tokens",
    ]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda lm: lm.score(pl.DataFrame(STIMULI)), r"several columns of texts \(sentence, reader\)"),
        (lambda lm: lm.words(pd.DataFrame({"n": [1]})), "no column of texts"),
        (lambda lm: lm.score(pl.DataFrame(STIMULI), column="sentense"), "did you mean 'sentence'"),
        (lambda lm: lm.score(["He left."], column="text"), "no frame to take the column 'text' from"),
        (lambda lm: lm.fill(pl.DataFrame({"frame": ["He ___"]})), "give a string or a list"),
        (lambda lm: lm.score({"He left."}), "give a string or a list"),
    ],
)
def test_a_frame_whose_texts_are_unclear_is_refused(
    tiny_model: Path, call: Callable[[fe.Model], object], said: str
) -> None:
    with pytest.raises(fe.FelicityError, match=said):
        call(fe.model(str(tiny_model), cache=False))


def test_a_model_says_what_it_is_in_a_line(tiny_model: Path) -> None:
    assert repr(fe.model(str(tiny_model), cache=False)) == (
        f"Model({tiny_model.name}: causal, 0.0M parameters, float32, window 64, begin token <|endoftext|>)"
    )
