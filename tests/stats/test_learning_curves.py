"""Learning curves: hand-worked steps, dips that simulated noise rarely gives, and scipy's tau."""

import math

import numpy as np
import pytest
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.learning_curves import compare_orders, find_dip, find_reached, fit_sigmoid

STEPS = np.array([1.0, 10.0, 100.0, 1000.0])


def answer(*accuracies: float, n: int = 200) -> np.ndarray:
    """Nested answers: the better a checkpoint, the more of the same items are right."""
    return np.array([[1.0 if place < share * n else 0.0 for place in range(n)] for share in accuracies])


def test_a_suite_is_reached_where_it_stays_above_the_criterion() -> None:
    found = find_reached(answer(0.5, 0.8, 0.6, 0.9), STEPS, criterion=0.75)
    assert (found.step, found.low, found.high, found.share) == (1000.0, 1000.0, 1000.0, 1.0)
    never = find_reached(answer(0.5, 0.9, 0.9, 0.5), STEPS, criterion=0.75)
    assert never.step is None
    assert math.isinf(never.high)


def test_an_accuracy_at_the_criterion_is_held_in_half_of_the_draws() -> None:
    found = find_reached(answer(0.5, 0.6, 0.7, 0.75, n=400), STEPS, criterion=0.75, draws=4_000)
    # P(X >= 300) of a binomial with n = 400 and p = .75, by scipy.
    assert found.share == pytest.approx(stats.binom.sf(299, 400, 0.75), abs=0.03)


def test_a_fall_and_recovery_is_found_at_its_bottom() -> None:
    dip = find_dip(answer(0.5, 0.9, 0.6, 0.85))
    assert dip is not None
    assert (dip.before, dip.bottom, dip.after) == (1, 2, 3)
    assert dip.depth == pytest.approx(0.25)
    assert dip.p < 1e-6
    assert find_dip(answer(0.5, 0.6, 0.7, 0.9)) is None


def test_the_midpoint_of_a_noisy_sigmoid_lies_in_its_interval() -> None:
    rng = np.random.default_rng(1)
    steps = np.logspace(1, 6, 20)
    curve = 0.5 + 0.45 / (1 + np.exp(-(np.log10(steps) - 3.5) / 0.3))
    inside = 0
    for _ in range(100):
        found = fit_sigmoid(curve + rng.normal(0, 0.02, len(steps)), steps, chance=0.5)
        assert found is not None
        inside += found.low <= 10**3.5 <= found.high
    # 95 are expected; 87 is less than three standard errors below.
    assert inside >= 87


def test_flat_and_short_curves_have_no_sigmoid() -> None:
    assert fit_sigmoid(np.full(6, 0.5), np.logspace(0, 5, 6), chance=0.5) is None
    assert fit_sigmoid(np.array([0.5, 0.7, 0.9]), STEPS[:3], chance=0.5) is None


def test_orders_are_compared_by_kendalls_tau_b() -> None:
    first, second = np.array([1.0, 2.0, 2.0, 5.0, np.inf]), np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    found = compare_orders(first, second)
    ranks = (stats.rankdata(first), stats.rankdata(second))
    assert found.tau == pytest.approx(stats.kendalltau(*ranks).statistic)
    assert found.low <= found.tau <= found.high
    with pytest.raises(BadInput, match="at least 3"):
        compare_orders(first[:2], second[:2])
    with pytest.raises(BadInput, match="not defined"):
        compare_orders(np.ones(4), second[:4])
