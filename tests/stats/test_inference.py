"""The one inference over suites: shares and paired differences, over items and over suites."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, norm, t

from felicity.stats.inference import compare_shares, least_p, share_interval, spread_clusters


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


def spread(values: list[float], sizes: list[float]) -> list:
    """The spread of one cell's clusters, by their means and sizes."""
    weights = np.array(sizes, dtype=float)
    return [spread_clusters(np.zeros(len(sizes), dtype=int), weights * np.array(values), weights, 1)]


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 10), (8, 10), (999, 1000), (7, 7)])
def test_over_items_a_share_has_wilsons_interval(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    low, high = share_interval(one(successes / n), one(n))
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_over_items_a_difference_has_tangos_interval_and_mcnemars_p() -> None:
    # Airway hyper-responsiveness of 21 children, 1 against 7 discordant (Fagerland, Lydersen & Laake 2014,
    # Table 3): Tango's interval is -0.517 to -0.026.
    found = compare_shares(one(1 / 21), one(7 / 21), one(21))
    assert (found.low[0], found.high[0]) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # R: mcnemar.test(matrix(c(1, 1, 7, 12), 2), correct = FALSE), p-value = 0.03389.
    assert found.p[0] == pytest.approx(0.03389, abs=5e-6)


@pytest.mark.parametrize(("gained", "lost", "n"), [(12, 2, 50), (3, 3, 20), (0, 9, 40)])
def test_the_ends_are_where_the_score_statistic_reaches_its_critical_value(
    gained: int, lost: int, n: int
) -> None:
    # The nuisance parameter by direct maximization of the trinomial likelihood, not by Tango's formula.
    found = compare_shares(one(gained / n), one(lost / n), one(n))
    for end in (found.low[0], found.high[0]):

        def against(only_second: float, end: float = end) -> float:
            shares = np.array([only_second + end, only_second, 1 - 2 * only_second - end])
            if shares.min() <= 0:
                return 1e9
            return -float(np.array([gained, lost, n - gained - lost]) @ np.log(shares))

        ends = (max(0.0, -end) + 1e-12, (1 - end) / 2 - 1e-12)
        nuisance = minimize_scalar(against, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
        error = np.sqrt((2 * nuisance + end - end**2) / n)
        assert abs((gained - lost) / n - end) / error == pytest.approx(norm.ppf(0.975), abs=1e-4)


def test_models_that_agree_on_every_item_leave_the_doubt_of_their_items() -> None:
    found = compare_shares(one(0), one(0), one(20), spread([0.0, 0.0, 0.0, 0.0], [5, 5, 5, 5]))
    # Tango's interval without discordant items is -+ z^2 / (n + z^2).
    z = norm.ppf(0.975)
    assert (found.low[0], found.high[0]) == pytest.approx((-(z**2) / (20 + z**2), z**2 / (20 + z**2)))
    assert found.p[0] == 1.0


def test_suites_that_differ_make_a_wilson_interval_of_fewer_answers_with_students_t() -> None:
    shares = [0.5, 0.7, 0.75, 0.9, 0.95, 0.6]
    mean, variance = np.mean(shares), np.var(shares, ddof=1) / 6
    low, high = share_interval(one(mean), one(6 * 200), spread(shares, [200] * 6))
    # By hand: the ends p with (mean - p)^2 = t^2 p (1 - p) / n, where n = mean (1 - mean) / variance.
    n, critical = mean * (1 - mean) / variance, t.ppf(0.975, 5)
    for end in (low[0], high[0]):
        assert (mean - end) ** 2 == pytest.approx(critical**2 * end * (1 - end) / n)


def test_no_suites_are_surer_than_their_items_or_less_sure_than_one_answer_each() -> None:
    agreeing = share_interval(one(0.8), one(40), spread([0.8, 0.8], [20, 20]))
    assert np.ravel(agreeing) == pytest.approx(np.ravel(share_interval(one(0.8), one(40))))
    # Two suites, one right and one wrong throughout, are two answers.
    split = share_interval(one(0.5), one(40), spread([1.0, 0.0], [20, 20]))
    assert np.ravel(split) == pytest.approx(np.ravel(share_interval(one(0.5), one(2))))


def test_one_suite_is_no_sample_of_suites() -> None:
    found = compare_shares(one(0.3), one(0.1), one(30), spread([0.2], [30]))
    items = compare_shares(one(0.3), one(0.1), one(30))
    assert [values[0] for values in found] == [values[0] for values in items]


def test_the_least_p_is_that_of_items_that_all_differ() -> None:
    for n in (3, 4, 50):
        assert least_p(n) == pytest.approx(compare_shares(one(1), one(0), one(n)).p[0])


counts = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12)).filter(lambda row: sum(row) > 0),
    min_size=1,
    max_size=8,
)


@given(counts, st.sampled_from([0.9, 0.95, 0.99]))
def test_an_interval_excludes_nought_exactly_where_p_is_small(
    suites: list[tuple[int, int, int]], level: float
) -> None:
    gained, lost, same = np.array(suites, dtype=float).T
    sizes = gained + lost + same
    n = sizes.sum()
    clusters = spread(list((gained - lost) / sizes), list(sizes))
    found = compare_shares(one(gained.sum() / n), one(lost.sum() / n), one(n), clusters, level=level)
    low, high, p = found.low[0], found.high[0], found.p[0]
    assert -1.0 <= low <= found.estimate[0] <= high <= 1.0
    assert low < high
    # At the very edge both are equal up to rounding.
    if abs(p - (1 - level)) > 1e-9:
        assert (low > 0 or high < 0) == (p < 1 - level)


@given(counts)
def test_an_accuracy_has_an_interval_within_its_range_that_is_never_empty(
    suites: list[tuple[int, int, int]],
) -> None:
    right, wrong, also = np.array(suites, dtype=float).T
    sizes = right + wrong + also
    low, high = share_interval(
        one(right.sum() / sizes.sum()), one(sizes.sum()), spread(list(right / sizes), list(sizes))
    )
    assert 0.0 <= low[0] <= right.sum() / sizes.sum() <= high[0] <= 1.0
    assert low[0] < high[0]
