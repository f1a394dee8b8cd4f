"""Folders of finished studies, read, reported, exported, compared and fitted like those of runs."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.run import read_run, read_study
from felicity.studies.saved import report_study
from tests.conftest import Answer, make_tiny_model

Cli = Callable[..., Answer]
PAIRS = "suite,good,bad\n" + "".join(
    f"{suite},The {noun}s {verb} it.,The {noun}s {verb}s it.\n"
    for suite in ("one", "two")
    for noun in ("cat", "dog", "bird")
    for verb in ("see", "want")
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    one, two = (make_tiny_model(folder / f"tiny{seed}", seed=seed, window=1024) for seed in (1, 2))
    return one, two


@pytest.fixture(params=["bias", "cloze", pytest.param("context", marks=pytest.mark.slow)])
def study(request: pytest.FixtureRequest, cli: Cli, models: tuple[Path, Path], tmp_path: Path) -> Path:
    """A finished study of two models."""
    pairs, out = tmp_path / "pairs.csv", tmp_path / "study"
    pairs.write_text(PAIRS)
    blanks = tmp_path / "blanks.csv"
    blanks.write_text("item,condition,context_text,text\n1,a,The cat saw the,dog\n2,a,The dog saw the,cat\n")
    asked = {
        "bias": ("bias", pairs),
        "cloze": ("cloze", blanks),
        "context": ("context", pairs, "--lengths", "0,30"),
    }[request.param]
    answer = cli(*asked, "-m", models[0], "-m", models[1], "-o", out, "-q")
    assert answer.code == 0, answer.err
    return out


def test_a_study_is_read_reported_exported_and_compared_by_its_folder(cli: Cli, study: Path) -> None:
    found = read_study(study)
    assert len(found.runs) == 2
    before = (study / "report.html").read_bytes()
    (study / "report.html").unlink()
    assert cli("report", study).code == 0
    assert (study / "report.html").read_bytes() == before

    written = [Path(name) for name in json.loads(cli("export", study, "--json").out)]
    assert {path.stem for path in written} >= set(found.tables) | {"tokens", "judgements"}
    run = found.run(next(iter(found.runs)))
    tokens = pl.read_csv(study / "export" / next(iter(found.runs)) / "tokens.csv")
    assert tokens.columns[:5] == ["request", "item", "condition", "place", "piece"]
    first = run["requests"].row(0, named=True)
    mine = tokens.filter(request=first["request"]).with_columns(pl.col("piece").fill_null(""))
    assert "".join(mine["piece"]).replace(" ", "") == first["text"].replace(" ", "")

    compared = json.loads(cli("compare", study, "--json").out)
    assert [(row["first"], row["second"]) for row in compared] == [("tiny1", "tiny2")]
    assert compared[0]["n"] == len(run["judgements"])


def test_a_study_of_several_runs_is_no_single_run(study: Path) -> None:
    with pytest.raises(BadInput, match="a study with 2 runs; give the folder of one"):
        read_run(study)
    assert read_run(next(iter(read_study(study).runs.values()))).accuracy().height == 1


@pytest.mark.slow
def test_the_models_and_contexts_of_a_study_are_factors_of_a_regression(
    cli: Cli, models: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "pairs.csv").write_text(PAIRS)
    out = tmp_path / "study"
    cli(
        "context",
        tmp_path / "pairs.csv",
        "--lengths",
        "0,30",
        "-m",
        models[0],
        "-m",
        models[1],
        "-o",
        out,
        "-q",
    )
    told = json.loads(cli("fit", "margin ~ model + kind + (1|item)", out, "--json").out)
    terms = [row["term"] for row in told["fixed"]]
    assert "modeltiny2" in terms
    assert "kindnone" in terms
    assert told["n"] == sum(len(read_run(path)["judgements"]) for path in read_study(out).runs.values())


def test_a_folder_that_is_no_study_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"it has no study\.json"):
        report_study(tmp_path)
