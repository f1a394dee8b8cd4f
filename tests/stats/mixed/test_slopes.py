"""Exact gradients agree with differences, and the sparse route with the dense one."""

import numpy as np
import polars as pl
import pytest

from felicity.stats.mixed import normal_matrix as cross_products
from felicity.stats.mixed.binomial import fit_glmm, start_logistic
from felicity.stats.mixed.binomial_response import BinomialResponse
from felicity.stats.mixed.cumulative_response import LINKS, CumulativeResponse
from felicity.stats.mixed.laplace_criterion import LaplaceCriterion
from felicity.stats.mixed.linear import fit_lmm
from felicity.stats.mixed.linear_criterion import LinearCriterion
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame

RANDOM_PARTS = [
    "(1 | a)",
    "(1 + x | a)",
    "(x || a)",
    "(1 | a) + (1 | b)",
    "(1 + x | a) + (1 + x | b)",
    "(1 + x | a) + (x || b) + (1 | c)",
    "(1 | c/a)",
]


def make_frame(n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(11)
    a, b, c = (rng.integers(0, k, n) for k in (12, 9, 4))
    x = rng.normal(size=n)
    eta = 0.4 * x + rng.normal(size=12)[a] + 0.5 * rng.normal(size=9)[b] * x + 0.3 * rng.normal(size=4)[c]
    hit = rng.random(n) < 1 / (1 + np.exp(-eta))
    return pl.DataFrame(
        {"y": eta + rng.normal(size=n), "hit": hit.astype(float), "x": x, "a": a, "b": b, "c": c}
    )


def arrays(random: str, *, binomial: bool = False) -> ModelFrame:
    frame = make_frame()
    counts = (frame["hit"].to_numpy(), np.ones(frame.height)) if binomial else None
    return build_model_frame(f"y ~ x + {random}", frame, counts=counts)


def differences(function, at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    steps = np.eye(len(at)) * step
    return np.array([(function(at + s) - function(at - s)) / (2 * step) for s in steps])


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("random", RANDOM_PARTS)
def test_linear_gradient(random: str, reml: bool) -> None:
    data = arrays(random)
    criterion = LinearCriterion(data.y, data.x, data.effects, reml=reml)
    theta = data.effects.start + np.random.default_rng(0).normal(size=data.effects.n_theta) / 5
    point = criterion.at(theta)
    numeric = differences(lambda at: criterion.at(at).deviance, theta)
    # Central differences with step 1e-5 are good to about 1e-6 of a deviance of a thousand.
    assert point.gradient == pytest.approx(numeric, rel=1e-5, abs=1e-5)
    numeric_vcov = differences(lambda at: criterion.at(at).unscaled_vcov, theta)
    assert point.unscaled_vcov_gradient == pytest.approx(numeric_vcov, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("random", RANDOM_PARTS)
def test_binomial_gradient(random: str) -> None:
    data = arrays(random, binomial=True)
    trials = np.ones(data.n)
    start = start_logistic(data.y, trials, data.x, data.names)
    criterion = LaplaceCriterion(BinomialResponse(data.y, trials, data.x, start), data.effects)
    at = criterion.start + np.random.default_rng(0).normal(size=len(criterion.start)) / 5
    numeric = differences(lambda p: criterion.at(p, slopes=False).deviance, at)
    assert criterion.at(at).gradient == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("random", RANDOM_PARTS)
def test_cumulative_gradient(random: str, link: str) -> None:
    data = arrays(random)
    codes = np.digitize(data.y, [-1.5, -0.3, 0.2, 1.4])
    response = CumulativeResponse(codes, 5, data.x[:, 1:], LINKS[link])
    criterion = LaplaceCriterion(response, data.effects)
    at = criterion.start + np.random.default_rng(0).normal(size=len(criterion.start)) / 5
    numeric = differences(lambda p: criterion.at(p, slopes=False).deviance, at)
    assert criterion.at(at).gradient == pytest.approx(numeric, rel=1e-5, abs=1e-5)


def test_linear_deviance_is_that_of_the_multivariate_normal() -> None:
    data = arrays("(1 + x | a) + (1 | b)")
    criterion = LinearCriterion(data.y, data.x, data.effects, reml=False)
    theta = np.array([0.8, 0.2, 0.5, 0.7])
    point = criterion.at(theta)
    v = np.eye(data.n)
    for block, factor in zip(data.effects.blocks, data.effects.factors(theta), strict=True):
        own = block.z @ factor
        v += (own @ own.T) * (block.codes[:, None] == block.codes[None, :])
    inverse = np.linalg.inv(v)
    beta = np.linalg.solve(data.x.T @ inverse @ data.x, data.x.T @ inverse @ data.y)
    e = data.y - data.x @ beta
    sigma2 = e @ inverse @ e / data.n
    expected = data.n * (np.log(2 * np.pi * sigma2) + 1) + np.linalg.slogdet(v)[1]
    assert point.beta == pytest.approx(beta, rel=1e-9)
    assert point.deviance == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("random", RANDOM_PARTS)
def test_sparse_and_dense_routes_agree(random: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = fit_lmm(f"y ~ x + {random}", make_frame())
    for name, value in (("SPARSE_COST", 0.0), ("DENSE_REST", 0)):
        monkeypatch.setattr(cross_products, name, value)
        sparse = fit_lmm(f"y ~ x + {random}", make_frame())
        assert sparse.criterion == pytest.approx(dense.criterion, abs=1e-6)
        assert sparse.fixed["se"].to_list() == pytest.approx(dense.fixed["se"].to_list(), rel=1e-4)


def test_sparse_and_dense_routes_agree_for_binomial_models(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = "hit ~ x + (1 | a) + (1 | c)"
    dense = fit_glmm(formula, make_frame())
    for name, value in (("SPARSE_COST", 0.0), ("DENSE_REST", 0)):
        monkeypatch.setattr(cross_products, name, value)
        sparse = fit_glmm(formula, make_frame())
        assert sparse.criterion == pytest.approx(dense.criterion, abs=1e-5)
        # Without exact slopes the Hessian is one of second differences, good to three digits.
        assert sparse.fixed["se"].to_list() == pytest.approx(dense.fixed["se"].to_list(), rel=1e-3)
