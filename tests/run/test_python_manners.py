"""felicity from a notebook: frames in, short reprs, completion, refusals in a sentence."""

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
