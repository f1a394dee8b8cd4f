"""Claims computed with a model: each computation gives the figure that the study itself gives."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.papers.reproduce.benchmarks import run_accuracy, run_change, run_suite
from felicity.papers.reproduce.inputs import Files
from felicity.papers.reproduce.shivagunde2023 import run_cell
from tests.conftest import make_tiny_model

Published = Callable[[str], Path]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> fe.Model:
    """A small random model that reads some hundred tokens."""
    return fe.model(str(make_tiny_model(tmp_path_factory.mktemp("wide") / "wide-gpt2", seed=3, window=512)))


def test_accuracy_is_that_of_a_run_and_leaves_suites_out(wide: fe.Model) -> None:
    run = fe.evaluate("starter", wide)
    files = Files({})
    assert run_accuracy(files, wide, dataset="starter") == pytest.approx(
        100 * run.accuracy()["accuracy"][0], abs=1e-9
    )
    suites = run.accuracy("suite")
    left = suites.filter(pl.col("name") != suites["name"][0])["accuracy"].to_numpy().mean()
    without = [suites["name"][0]]
    found = run_accuracy(files, wide, dataset="starter", level="macro", without=without, scale=1)
    assert found == pytest.approx(left)


def test_change_in_context_is_that_of_the_context_study(wide: fe.Model, tmp_path: Path) -> None:
    kinds = ("matched_acceptable", "matched_unacceptable", "unrelated")
    done = fe.context(  # type: ignore[attr-defined]
        "starter", models=wide, out=tmp_path / "study", lengths=(0, 40), kinds=kinds, sample=2, report=False
    )
    files = Files({})
    for kind in kinds:
        delta = done["estimates"].filter(level="overall", kind=kind, length=40)["delta"].item()
        found = run_change(files, wide, dataset="starter", kind=kind, length=40, sample=2)
        assert found == pytest.approx(100 * delta)


@pytest.mark.data
@pytest.mark.slow
def test_a_suite_passes_as_often_as_in_a_run(wide: fe.Model, published: Published) -> None:
    published("syntaxgym")
    run = fe.evaluate("syntaxgym", wide)
    passed = run["judgements"].filter(suite="number_prep")["passed"].sum()
    assert run_suite(Files({}), wide, suite="number_prep") == passed


@pytest.mark.data
def test_a_cloze_cell_is_that_of_a_run(wide: fe.Model, published: Published) -> None:
    published("ettinger2020")
    run = fe.evaluate("neg_136_simp", wide, rule="cloze")
    expected = run.accuracy("prediction").filter(name="sensitivity")["accuracy"].item()
    found = run_cell(Files({}), wide, dataset="NEG-136-SIMP", figure="sensitivity")
    assert found == pytest.approx(100 * expected)
