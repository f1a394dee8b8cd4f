"""`import felicity as fe`: one function per command, names or models, files or frames, results that show."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import felicity as fe
from tests.conftest import make_tiny_model

PAIRS = {
    "suite": ["a", "a", "b", "b"],
    "good": ["The cats sleep.", "The dog barks.", "The boys run.", "The girl sees it."],
    "bad": ["The cats sleeps.", "The dog bark.", "The boys runs.", "The girl see it."],
}
TEXTS = ["The cats sleep.", "The dog barks."]


@pytest.fixture(scope="module")
def lm(tiny_model: Path) -> fe.Model:
    return fe.model(str(tiny_model), cache=False)


@pytest.fixture(scope="module")
def runs(lm: fe.Model, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> fe.Runs:
    """Two models, one opened and one by name, kept in a folder."""
    other = tmp_path_factory.mktemp("models") / "other"
    shutil.copytree(tiny_model, other)
    out = tmp_path_factory.mktemp("runs") / "both"
    return fe.run(pl.DataFrame(PAIRS), [lm, str(other)], measures=["lp", "mean_lp"], out=out)


def test_functions_that_are_named_like_rooms_stay_functions() -> None:
    for name in ("run", "judge", "measures", "report"):
        assert f"felicity.{name}" in sys.modules or __import__(f"felicity.{name}")
        assert callable(getattr(fe, name)), name


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
def test_surprisal_of_a_frame_is_that_of_its_file(
    frame: Callable[[Any], Any], lm: fe.Model, tiny_model: Path, tmp_path: Path
) -> None:
    table = {"text": TEXTS, "before": ["It rains.", "It snows."], "item": ["7", "8"]}
    pl.DataFrame(table).write_csv(tmp_path / "texts.csv")
    from_file = fe.surprisal(tmp_path / "texts.csv", str(tiny_model), context="before")
    found = fe.surprisal(frame(table), lm, context="before")
    assert found.columns == from_file.columns
    assert found["surprisal"].to_list() == pytest.approx(from_file["surprisal"].to_list(), abs=1e-4)
    with pytest.raises(fe.FelicityError, match="Row 2: 'text' is empty"):
        fe.surprisal(frame({"text": ["It rains.", " "]}), lm)


def test_a_list_of_texts_is_scored_as_it_stands(lm: fe.Model) -> None:
    bits = fe.surprisal(TEXTS, lm, by="sentence")["surprisal"]
    assert bits.to_list() == pytest.approx([-lp / 0.6931471805599453 for lp in lm.score(TEXTS)["lp"]])


def test_the_runs_of_a_folder_are_read_back_and_compared(runs: fe.Runs) -> None:
    again = fe.read(runs.folder or "")
    assert isinstance(again, fe.Runs)
    assert set(again.runs) == set(runs.runs)
    assert again.accuracy()["accuracy"].to_list() == runs.accuracy()["accuracy"].to_list()
    one = fe.read((runs.folder or Path()) / "other")
    assert isinstance(one, fe.Run)
    compared = runs.compare(by="suite")
    assert again.compare(by="suite").table.equals(fe.compare(runs.folder or "", by="suite").table)
    assert compared.table["difference"].to_list() == [0.0, 0.0]
    with pytest.raises(fe.FelicityError, match="no model 'othr'; did you mean 'other'"):
        again["othr"]


def test_a_fit_takes_runs_folders_and_frames(runs: fe.Runs, lm: fe.Model) -> None:
    one = runs["other"]
    by_run, by_folder = (fe.fit("margin ~ suite", source).fixed for source in (one, one.folder))
    assert by_run.equals(by_folder)
    frame = one["judgements"].filter(measure="lp")
    assert fe.fit("margin ~ suite", frame.to_pandas()).fixed["estimate"].to_list() == pytest.approx(
        by_run["estimate"].to_list()
    )


def test_results_show_themselves_in_a_notebook(runs: fe.Runs, lm: fe.Model) -> None:
    words = fe.surprisal(TEXTS, lm)
    shown = {
        "compare": fe.compare(runs["other"]),
        "fit": fe.fit("margin ~ suite", runs["other"]),
        "power": fe.power(only_first=0.2, only_second=0.1, items=100),
        "means": fe.means(words, by="row"),
        "run": runs["other"],
    }
    for name, result in shown.items():
        page = result._repr_html_()
        assert page.count("<svg") == 1, name
        assert "<table" in page, name
    assert "<table" in runs._repr_html_()
    assert "more acceptable" in fe.judge("The cats sleep.", "The cat sleep.", lm)._repr_html_()
    # As a notebook does, altair checks the specification.
    assert fe.plot(words).to_dict(format="vega-lite")["layer"]
    assert fe.compare(runs["other"]).plot().to_dict()["layer"]


def test_the_command_line_prints_what_the_function_gives(
    runs: fe.Runs, cli: Callable[..., Any], tmp_path: Path
) -> None:
    answer = cli("power", "--only-first", 0.2, "--only-second", 0.1, "-n", 100, "--json")
    assert json.loads(answer.out) == fe.power(only_first=0.2, only_second=0.1, items=100).as_dict()
    answer = cli("compare", runs.folder, "--json")
    differences = [row["difference"] for row in json.loads(answer.out)]
    assert differences == runs.compare().table["difference"].to_list()


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(fe.FelicityError, match="The model is 5; give a name"):
        fe.surprisal(TEXTS, 5)  # type: ignore[arg-type]


def test_the_page_of_several_models_answers_first_and_leads_to_each(tiny_model: Path, tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {
            "suite": ["a", "a", "b", "b"],
            "good": ["The cat sees it.", "He left.", "She saw it.", "They run."],
            "bad": ["The cat see it.", "Him left.", "Her saw it.", "Them run."],
        }
    )
    other = make_tiny_model(tmp_path / "tiny-other", seed=2)
    fe.run(pairs, [str(tiny_model), str(other)], out=tmp_path / "runs")
    page = (tmp_path / "runs" / "report.html").read_text(encoding="utf-8")
    begin = page.index("<h1>")
    said = [page.index(part, begin) for part in ("differ in accuracy?", "of 4 items judged right", "<svg")]
    assert said == sorted(said)
    for name in ("tiny-gpt2", "tiny-other"):
        assert f'xlink:href="{name}/report.html"' in page
    # Two suites cannot show a difference, and the page says what the test could have given at best.
    assert "cannot reach p" in page
