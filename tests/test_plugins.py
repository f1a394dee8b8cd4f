"""Packages that add to felicity: one of everything, built, installed and used; and a broken one."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from math import log
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

KINDS = ("dataset", "measure", "rule", "engine", "study", "command")
Felicity = Callable[..., subprocess.CompletedProcess[str]]


def install(project: Path, site: Path) -> None:
    """Build a package and install it into a folder, without a network."""
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(site), str(project)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def use(site: Path, folder: Path) -> Felicity:
    """Call felicity in a process that finds what is installed in `site`."""
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "felicity", *arguments]
        return subprocess.run(
            command, check=False, cwd=folder, env=environment, capture_output=True, text=True
        )

    return call


@pytest.fixture(scope="module")
def felicity(tmp_path_factory: pytest.TempPathFactory) -> Felicity:
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "tests" / "plugin", folder / "project")
    install(folder / "project", folder / "site")
    return use(folder / "site", folder)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Felicity:
    """With a package that offers one of everything and cannot be imported."""
    folder = tmp_path_factory.mktemp("broken")
    points = [
        f'[project.entry-points."felicity.{kind}"]\nwrong_{kind} = "felicity_broken:it"' for kind in KINDS
    ]
    project = folder / "project"
    project.mkdir()
    (project / "felicity_broken.py").write_text("import no_such_module\n")
    head = '[project]\nname = "felicity-broken"\nversion = "0.3"\n'
    tail = '[tool.setuptools]\npy-modules = ["felicity_broken"]\n'
    (project / "pyproject.toml").write_text("\n".join([head, *points, tail]))
    install(project, folder / "site")
    return use(folder / "site", folder)


def run(felicity: Felicity, *arguments: str) -> str:
    done = felicity(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def accuracy(folder: Path, measure: str) -> float:
    overall = pl.read_csv(folder / "estimates.csv").filter(level="overall", measure=measure)
    return float(overall["accuracy"].item())


def test_a_dataset_an_engine_and_measures_are_used_together(felicity: Felicity, tmp_path: Path) -> None:
    """The good sentences are one and two words shorter, so under `uniform:10` they are likelier."""
    measures = ("--measure", "lp", "--measure", "min_lp", "--measure", "surprisal_variance")
    run(felicity, "run", "weather", "-m", "uniform:10", *measures, "-o", str(tmp_path / "run"))
    assert accuracy(tmp_path / "run", "lp") == 1
    assert accuracy(tmp_path / "run", "min_lp") == 0.5  # a tie
    assert accuracy(tmp_path / "run", "surprisal_variance") == 0.5
    scores = pl.read_parquet(tmp_path / "run" / "scores.parquet")
    minima = scores.filter(measure="min_lp")["value"].to_list()
    assert minima == pytest.approx([-log(10)] * 4, abs=1e-6)


def test_a_measure_of_tokens_may_read_unigram_counts(felicity: Felicity, tmp_path: Path) -> None:
    words = ["It", "rains", "rain", "today.", "today", "often.", "Snow", "falls.", "fall", "all", "day."]
    with (tmp_path / "counts.tsv").open("w") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows((word, 1) for word in words)
    counts = ("--unigram", str(tmp_path / "counts.tsv"))
    folder = tmp_path / "run"
    run(felicity, "run", "weather", "-m", "uniform:10", "--measure", "mean_pmi", *counts, "-o", str(folder))
    values = pl.read_parquet(folder / "scores.parquet")["value"].to_list()
    assert values == pytest.approx([log(11) - log(10)] * 4, abs=1e-6)


def test_a_rule_judges_what_a_dataset_gives_it(felicity: Felicity, tmp_path: Path) -> None:
    run(felicity, "run", "weather", "--rule", "weakest", "-m", "uniform:10", "-o", str(tmp_path / "run"))
    assert accuracy(tmp_path / "run", "min_lp") == 0.5
    rules = pl.read_parquet(tmp_path / "run" / "judgements.parquet")["rule"].unique().to_list()
    assert rules == ["weakest"]


def test_a_study_goes_through_the_pipeline(felicity: Felicity, tmp_path: Path) -> None:
    said = run(felicity, "repetition", "weather", "-m", "uniform:10", "-o", str(tmp_path / "run"))
    assert "uniform-10 is right about 100.0% of 2 items." in said
    kept = tmp_path / "run" / "models" / "uniform-10" / "items.parquet"
    assert "It rains today. It rains today." in pl.read_parquet(kept)["text"]
    before = (tmp_path / "run" / "report.html").read_bytes()
    run(felicity, "report", str(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").read_bytes() == before


def test_commands_and_studies_stand_in_the_help(felicity: Felicity) -> None:
    assert run(felicity, "forecast", "Oslo").strip() == "Oslo: acceptable"
    said = run(felicity, "--help")
    assert "Say what the weather will be." in said
    assert "Judge every sentence said several times in a row." in said


def test_what_is_added_is_listed(felicity: Felicity) -> None:
    measures = {row["name"]: row for row in json.loads(run(felicity, "measures", "--json"))}
    assert measures["min_lp"]["meaning"] == "Log-probability of the least likely token."
    assert measures["mean_pmi"]["needs"] == "--unigram"
    assert "weather" in {row["name"] for row in json.loads(run(felicity, "data", "ls", "--json"))}
    assert "uniform-10" in run(felicity, "models", "info", "uniform:10")


def test_an_engine_refuses_in_its_own_words(felicity: Felicity) -> None:
    done = felicity("judge", "It rains.", "It rain.", "-m", "uniform:many")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "-m uniform:many needs the size of the vocabulary, as in uniform:1000.\n"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("dataset", ("run", "wrong_dataset")),
        ("measure", ("run", "starter", "--measure", "wrong_measure")),
        ("engine", ("judge", "It rains.", "It rain.", "-m", "wrong_engine:1")),
        ("study", ("wrong_study", "anything", "--at", "all")),
        ("command", ("wrong_command",)),
    ],
)
def test_a_broken_package_is_one_sentence(broken: Felicity, kind: str, arguments: tuple[str, ...]) -> None:
    done = broken(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        f"The {kind} 'wrong_{kind}' cannot be loaded from the package 'felicity-broken' 0.3 "
        "(ModuleNotFoundError: No module named 'no_such_module'); update or uninstall that package.\n"
    )


def test_a_broken_package_disturbs_nothing_else(broken: Felicity, tiny_model: Path, tmp_path: Path) -> None:
    assert "wrong_command" in run(broken, "--help")
    assert "felicity-broken" in run(broken, "measures", "--json")
    assert "felicity-broken" in run(broken, "data", "ls", "--json")
    (tmp_path / "pairs.csv").write_text("good,bad\nThe cats annoy Tim.,The cats annoys Tim.\n")
    run(broken, "run", str(tmp_path / "pairs.csv"), "-m", str(tiny_model), "-o", str(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").exists()
