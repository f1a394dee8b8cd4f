"""Half precision reaches the verdicts of float32, and says what that took."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.engines.devices import ISA, prepare_dtype
from felicity.run.precision import SAFETY, draw_sample, settle


class Simulated:
    """Margins that half precision shifts by known amounts; counts what is scored again."""

    def __init__(self, margin: np.ndarray, shift: np.ndarray) -> None:
        self.items = pl.Series("item", [f"i{place}" for place in range(len(margin))])
        self.margin, self.shift = margin, shift
        self.exact: set[str] = set()

    def judge(self, exact_items: pl.Series, *, noise: float) -> pl.DataFrame:
        exact = self.items.is_in(exact_items.implode()).to_numpy()
        margin = np.where(exact, self.margin, self.margin + self.shift)
        error = np.where(exact, 2e-4, 2 * noise)
        columns = {"item": self.items, "measure": "lp", "rule": "pair", "margin": margin, "error": error}
        return pl.DataFrame(columns).with_columns(stable=pl.Series(np.abs(margin) > error))

    def score_exactly(self, items: pl.Series, turn: int) -> None:
        assert not self.exact & set(items)
        self.exact |= set(items)

    def settle(self) -> pl.DataFrame:
        settled = settle(self.items, self.judge, self.score_exactly, least=1e-4, seed=0)
        assert set(settled.exact_items) == self.exact
        return self.judge(settled.exact_items, noise=settled.noise)


def test_verdicts_are_those_of_float32_on_every_item_though_hundreds_would_have_turned() -> None:
    rng = np.random.default_rng(1)
    run = Simulated(rng.normal(0, 8, 20_000), rng.normal(0, 0.3, 20_000))
    turned = ((run.margin + run.shift > 0) != (run.margin > 0)).sum()
    assert turned > 100
    judged = run.settle()
    assert ((judged["margin"].to_numpy() > 0) == (run.margin > 0)).all()
    assert len(run.exact) < 0.4 * len(run.items)


def test_the_bound_grows_with_what_scoring_again_brings_to_light() -> None:
    # The sample sees no shift; the one close item does, and what it shows reaches another.
    margin, shift = np.full(1000, 50.0), np.zeros(1000)
    sample = set(draw_sample(pl.Series([f"i{place}" for place in range(1000)]), seed=0))
    close, next_close = (place for place in range(1000) if f"i{place}" not in sample and place % 7 == 0), 3.9
    first, second = next(close), next(close)
    margin[first], shift[first] = 0.0, 1e-4
    margin[second], shift[second] = next_close, 0.0
    run = Simulated(margin, shift)
    run.shift[first] = 1e-4
    run.settle()
    assert f"i{first}" in run.exact
    assert f"i{second}" not in run.exact
    wide = Simulated(margin.copy(), shift.copy())
    wide.margin[first], wide.shift[first] = 2.0, -2.0
    wide.settle()
    assert f"i{second}" in wide.exact
    assert next_close < SAFETY * 2.0


def test_a_small_run_is_scored_twice_as_a_whole() -> None:
    run = Simulated(np.linspace(-9, 9, 20), np.full(20, 0.1))
    run.settle()
    assert len(run.exact) == 20


def test_a_run_in_bfloat16_has_the_verdicts_of_float32(tiny_model: Path, tmp_path: Path) -> None:
    """In a process of its own, as a user would; torch is not there yet when the processor is tried."""
    table = tmp_path / "three.csv"
    names = ("cat", "dog", "Tim", "cats", "bird", "she")
    verbs = {"good": "annoys", "bare": "annoy", "past": "annoyed"}
    rows = [
        f"{one} {two},{condition},The {one} {verb} {two}."
        for one in names
        for two in names
        for condition, verb in verbs.items()
    ]
    rows += [f"level,{condition},She saw." for condition in verbs]
    table.write_text("\n".join(["item,condition,text", *rows]) + "\n", encoding="utf-8")
    few = "import sys, felicity.run.precision as p; p.SAMPLE_ITEMS = 5; sys.argv[0] = 'felicity'"
    program = [sys.executable, "-c", f"{few}; from felicity.cli.app import main; main()"]
    program += ["run", str(table), "-m", str(tiny_model)]
    judged = {}
    for dtype in ("bfloat16", "float32"):
        folder = tmp_path / dtype
        options = ["--dtype", dtype, "-o", str(folder), "--measure", "lp", "--measure", "mean_lp"]
        done = subprocess.run(
            [*program, *options, "--no-report", "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        judged[dtype] = fe.read_run(folder)
        told = json.loads(done.stdout)["manifest"]
        assert told["model"]["dtype"] == dtype
        assert ("precision" in told) == (dtype == "bfloat16")
    both = judged["bfloat16"]["judgements"].join(
        judged["float32"]["judgements"], on=["item", "measure"], suffix="_exact"
    )
    assert both.height == judged["float32"]["judgements"].height
    assert both["passed"].to_list() == both["passed_exact"].to_list()
    precision = judged["bfloat16"].manifest["precision"]
    assert 5 == precision["sampled"] <= precision["rescored"] < precision["items"] == 37
    errors = judged["bfloat16"]["scores"].filter(pl.col("measure") == "lp")["error"]
    assert errors.min() == pytest.approx(1e-4)
    assert errors.max() == pytest.approx(precision["error_bound"])
    assert not list((tmp_path / "bfloat16").glob("pending*"))


def test_a_processor_that_dies_at_half_precision_is_noticed_before_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The child is asked for an operation that kills it, as an announced but missing instruction does."""
    import torch  # noqa: F401

    from felicity.core.errors import NotPossible

    monkeypatch.setattr(
        "felicity.engines.devices.PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    )
    with pytest.raises(NotPossible, match=f"torch dies at bfloat16 products .* set {ISA}="):
        prepare_dtype("bfloat16", "cpu")


def test_float32_asks_nothing_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felicity.engines.devices.PROBE", "raise SystemExit(1)")
    before = os.environ.get(ISA)
    prepare_dtype("float32", "cpu")
    assert os.environ.get(ISA) == before


def test_a_pair_too_close_to_call_is_judged_in_float32(tiny_model: Path, cli: Callable[..., object]) -> None:
    command = ["judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", str(tiny_model), "--json"]
    code = (
        f"import sys; sys.argv = ['felicity', *{[*command, '--dtype', 'bfloat16']!r}]; "
        "from felicity.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dtype"] == "float32"
