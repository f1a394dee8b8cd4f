"""Additive models against mgcv 1.8-41, on numbers that R and Python make alike."""

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.stats.additive import build_additive, fit_additive
from felicity.stats.smooths import read_smooth


@pytest.fixture(scope="module")
def waves() -> pl.DataFrame:
    # i <- 0:299; x <- ((i*37) %% 101)/10; z <- ((i*53) %% 97)/7; w <- ((i*29) %% 89)/11
    # y <- 3*sin(x/2) + 0.1*(z-6)^2 + 0.05*z*w + ((i*71) %% 83)/40
    i = np.arange(300)
    x, z, w = (i * 37 % 101) / 10, (i * 53 % 97) / 7, (i * 29 % 89) / 11
    y = 3 * np.sin(x / 2) + 0.1 * (z - 6) ** 2 + 0.05 * z * w + (i * 71 % 83) / 40
    # Three rows that no fit sees: predict(m, data.frame(x = c(-1, 4, 12), z = c(2, 5, 20), w = c(1, 3, 9)))
    new = {"x": [-1.0, 4.0, 12.0], "z": [2.0, 5.0, 20.0], "w": [1.0, 3.0, 9.0], "y": [0.0, 1.0, 2.0]}
    return pl.concat([pl.DataFrame({"x": x, "z": z, "w": w, "y": y}), pl.DataFrame(new)])


@pytest.mark.parametrize(
    ("formula", "sig2", "edf", "predicted"),
    [
        # m <- gam(y ~ s(x, bs = "cr", k = 6) + z); m$sig2; sum(m$edf); predict(m, new)
        ("y ~ s(x, k = 6) + z", 3.267420013, 5.974992064, [1.687255178, 6.151475014, 4.671785512]),
        # gam(y ~ x + te(z, w, bs = "cr"))
        ("y ~ x + te(z, w)", 2.021788480, 9.105489842, [6.697455489, 3.049295970, 20.554688164]),
        # gam(y ~ s(x, bs = "cr") + te(z, w, bs = "cr"))
        ("y ~ s(x) + te(z, w)", 0.379430021, 15.086096508, [1.506085497, 4.609967672, 20.373663841]),
    ],
)
def test_smooths_are_those_of_mgcv(
    waves: pl.DataFrame, formula: str, sig2: float, edf: float, predicted: list[float]
) -> None:
    fit = fit_additive(build_additive(formula, waves), np.arange(300))
    assert fit.sigma2 == pytest.approx(sig2, rel=1e-7)
    assert fit.edf.sum() == pytest.approx(edf, rel=1e-6)
    assert fit.predict(np.array([300, 301, 302])) == pytest.approx(predicted, rel=1e-6)


def test_without_a_smooth_it_is_least_squares(waves: pl.DataFrame) -> None:
    fit = fit_additive(build_additive("y ~ x * z", waves))
    design = np.column_stack([np.ones(303), waves["x"], waves["z"], waves["x"] * waves["z"]])
    beta = np.linalg.lstsq(design, waves["y"].to_numpy(), rcond=None)[0]
    assert fit.beta == pytest.approx(beta)
    assert fit.sigma2 == pytest.approx(((waves["y"].to_numpy() - design @ beta) ** 2).sum() / 299)


def test_a_curve_starts_at_zero_and_widens(waves: pl.DataFrame) -> None:
    curve = fit_additive(build_additive("y ~ s(x, k = 6) + z", waves), np.arange(300)).curve("x")
    assert curve["y"][0] == curve["low"][0] == curve["high"][0] == 0.0
    assert (curve["high"][1:] > curve["low"][1:]).all()
    # 3 sin(x / 2) has its maximum at pi, not at an end.
    top = curve.filter(pl.col("x").is_between(0.0, 10.0)).sort("y", descending=True)["x"][0]
    assert abs(top - np.pi) < 0.5


@pytest.mark.parametrize("term", ["s(x, y)", "te(x)", "s(x, bs = 3)", "s(x, k = 2)"])
def test_a_smooth_that_cannot_be_is_refused(term: str) -> None:
    with pytest.raises(BadInput, match="needs|takes"):
        read_smooth(term)


def test_too_few_values_for_the_knots_are_refused(waves: pl.DataFrame) -> None:
    few = waves.with_columns((pl.col("x") > 5).cast(pl.Float64).alias("x"))
    with pytest.raises(BadInput, match="'x' has 2 distinct values"):
        fit_additive(build_additive("y ~ s(x)", few))
