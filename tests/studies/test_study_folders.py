"""Folders of finished studies, read, reported, exported, compared and fitted like those of runs."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.run import read_run
from felicity.studies import read_study, report_study
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
    named = {*found.tables, *found.record["kept"], "tokens", "judgements"}
    assert {path.stem for path in written} >= named
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


def flip_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(bytes(content))


def test_a_study_whose_files_have_changed_is_refused_and_read_anyway(cli: Cli, study: Path) -> None:
    record = json.loads((study / "study.json").read_text(encoding="utf-8"))
    assert record["digests"]
    for name in record["digests"]:
        whole = (study / name).read_bytes()
        flip_middle(study / name)
        for command in (("report", study), ("export", study, "-o", study / "out")):
            told = cli(*command)
            assert told.code == 2, (name, command)
            assert f"{study / name} was changed since the study wrote it" in told.err
        (study / name).unlink()
        assert f"{study / name} is missing since" in cli("report", study).err
        (study / name).write_bytes(whole)
    table = next(name for name in record["digests"] if name.endswith(".csv"))
    (study / table).write_bytes((study / table).read_bytes() + b"\n")
    assert cli("report", study).code == 2
    assert cli("report", study, "--force").code == 0
    assert cli("export", study, "--force", "-o", study / "out").code == 0


def test_a_changed_record_of_a_study_is_refused(cli: Cli, study: Path) -> None:
    path = study / "study.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"created": "2', '"created": "3'))
    told = cli("report", study)
    assert told.code == 2
    assert f"{path} was changed since felicity wrote it" in told.err


@pytest.mark.slow
def test_tables_that_the_models_of_a_context_study_share_are_checked_with_each_run(
    cli: Cli, models: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "pairs.csv").write_text(PAIRS)
    out = tmp_path / "study"
    asked = ("context", tmp_path / "pairs.csv", "--lengths", "0,30", "-m", models[0], "-o", out, "-q")
    assert cli(*asked).code == 0
    whole = (out / "contexts.parquet").read_bytes()
    flip_middle(out / "contexts.parquet")
    lines = [
        ("fit", "margin ~ kind", out),
        ("explore", out, "--static", tmp_path / "page.html"),
        (
            "context",
            tmp_path / "pairs.csv",
            "--contexts",
            out / "contexts.parquet",
            "-m",
            models[0],
            "-o",
            "x",
        ),
        asked,
    ]
    for line in lines:
        told = cli(*line)
        assert told.code == 2, line
        assert "contexts.parquet was changed" in told.err
    (out / "contexts.parquet").write_bytes(whole)
    flip_middle(out / "estimates.csv")
    assert cli(*asked).code == 0  # written again
    assert cli("report", out).code == 0
