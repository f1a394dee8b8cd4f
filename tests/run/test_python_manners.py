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
    assert repr(run).startswith(f"Run({tiny_model.name} on frame: ")
    assert run.report(tmp_path).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


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
