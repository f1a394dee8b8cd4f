"""Fits that separate right from wrong: called degenerate, and fitted with a penalty."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from felicity.core.errors import BadInput
from felicity.stats.fit import fit_model
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.cumulative import fit_clmm
from tests.conftest import Answer


def separated() -> pl.DataFrame:
    """24 items at ten lengths; nearly every item is always right or always wrong."""
    rng = np.random.default_rng(3)
    rows = []
    for item in range(24):
        for length in range(1, 11):
            rows.append((f"i{item}", float(length), int(item % 4 != 0)))
    frame = pl.DataFrame(rows, schema=["item", "x", "passed"], orient="row")
    flip = pl.Series(rng.random(frame.height) < 0.02)
    return frame.with_columns(pl.when(flip).then(1 - pl.col("passed")).otherwise("passed").alias("passed"))


def plain() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    item = np.repeat(np.arange(15), 12)
    x = np.tile([-0.5, 0.5], 90)
    chance = expit(0.4 + 0.8 * x + rng.normal(0, 1.2, 15)[item])
    return pl.DataFrame({"item": item.astype(str), "x": x, "passed": (rng.random(180) < chance).astype(int)})


def laplace(frame: pl.DataFrame, sd: float, beta: np.ndarray) -> float:
    """The Laplace deviance of `passed ~ x + (1 | item)`, item by item, by scalar minimization."""
    total = 0.0
    for _, part in frame.group_by("item"):
        y, x = part["passed"].to_numpy(), part["x"].to_numpy()

        def joint(u: float, y: np.ndarray = y, x: np.ndarray = x) -> float:
            eta = beta[0] + beta[1] * x + sd * u
            return float(-2 * (y * eta - np.logaddexp(0, eta)).sum() + u**2)

        mode = minimize_scalar(joint, bracket=(-1, 1), tol=1e-12)
        mean = expit(beta[0] + beta[1] * x + sd * mode.x)
        total += mode.fun + np.log1p(sd**2 * (mean * (1 - mean)).sum())
    return total


@pytest.mark.parametrize("scale", [0.7])
def test_the_penalized_fit_is_the_minimum_of_deviance_and_prior(scale: float) -> None:
    frame = plain()
    fitted = fit_glmm("passed ~ x + (1 | item)", frame, penalty=scale)
    found = np.array([fitted.random["sd"][0], *fitted.fixed["estimate"]])

    def objective(at: np.ndarray) -> float:
        # -2 log of sd^1.5 exp(-sd^2 / (2 scale^2)), beside the deviance.
        return laplace(frame, at[0], at[1:]) - 3 * np.log(at[0]) + at[0] ** 2 / scale**2

    best = minimize(objective, found * 1.05, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7})
    assert found == pytest.approx(best.x, abs=2e-4)
    assert fitted.criterion == pytest.approx(laplace(frame, found[0], found[1:]), abs=1e-6)


def test_a_weak_penalty_leaves_an_ordinary_fit_about_as_it_is() -> None:
    free, held = (fit_glmm("passed ~ x + (1 | item)", plain(), penalty=scale) for scale in (None, 2.0))
    assert not free.degenerate
    assert held.fixed["estimate"].to_numpy() == pytest.approx(free.fixed["estimate"].to_numpy(), abs=0.05)
    assert "Wishart prior with a scale of 2 log-odds" in " ".join(held.notes)


def test_a_fit_that_separates_is_degenerate_and_a_penalty_mends_it() -> None:
    free = fit_glmm("passed ~ x + (1 | item)", separated())
    assert free.degenerate
    (note,) = [note for note in free.notes if note.startswith("The fit is degenerate")]
    assert "the SD of (Intercept) by item is" in note
    held = fit_glmm("passed ~ x + (1 | item)", separated(), penalty=2.0)
    assert not held.degenerate
    assert held.random["sd"][0] < 10 < free.random["sd"][0]


def test_units_of_a_predictor_do_not_make_a_fit_degenerate() -> None:
    fitted = fit_glmm("passed ~ x + (1 | item)", plain().with_columns(pl.col("x") / 1000))
    assert fitted.fixed["estimate"][1] > 100
    assert not fitted.degenerate


def test_slopes_and_ordered_answers_have_the_penalty_too() -> None:
    frame = plain().with_columns(rating=pl.col("passed") * 2 + (pl.col("x") > 0))
    slopes = fit_glmm("passed ~ x + (1 + x | item)", frame, penalty=1.0)
    # The determinant keeps a correlation from 1, and an SD from 0.
    assert not slopes.singular
    ordinal = fit_clmm("rating ~ 1 + (1 | item)", frame, penalty=1.0)
    assert ordinal.penalty == 1.0
    assert ordinal.random["sd"][0] != fit_clmm("rating ~ 1 + (1 | item)", frame).random["sd"][0]


def test_a_penalty_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="give the scale"):
        fit_glmm("passed ~ x + (1 | item)", plain(), penalty=-1.0)
    with pytest.raises(BadInput, match="binomial or cumulative"):
        fit_model("passed ~ x + (1 | item)", plain(), penalty=2.0)


def test_the_command_says_that_a_fit_is_degenerate_and_penalizes_it(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    path = tmp_path / "separated.csv"
    separated().write_csv(path)
    asked = ("fit", "passed ~ x + (1|item)", path, "--family", "binomial")
    assert "The fit is degenerate" in cli(*asked).out
    told = json.loads(cli(*asked, "--penalty", 2, "--json").out)
    assert (told["degenerate"], told["penalty"]) == (False, 2.0)
