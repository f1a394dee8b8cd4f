import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, sem, t

from felicity.stats.intervals import bootstrap_suites, estimate_accuracy, wilson_interval


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 10), (8, 10), (999, 1000), (7, 7)])
def test_wilson_equals_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_bootstrap_over_equal_suites_is_students_t_over_their_accuracies() -> None:
    rng = np.random.default_rng(3)
    suites = [rng.binomial(1, share, 200).astype(float) for share in (0.5, 0.7, 0.75, 0.9, 0.95, 0.6)]
    means = [suite.mean() for suite in suites]
    expected = t.interval(0.95, len(means) - 1, loc=np.mean(means), scale=sem(means))
    assert bootstrap_suites(suites, seed=0, macro=True) == pytest.approx(expected, abs=0.01)


def test_suites_that_agree_still_leave_the_doubt_of_their_items() -> None:
    perfect = [np.ones(3), np.ones(3)]
    assert bootstrap_suites(perfect, seed=0, macro=False) == pytest.approx(wilson_interval(6, 6))


@pytest.mark.parametrize(("suites", "items"), [(3, 15), (6, 15), (12, 100), (48, 15)])
def test_intervals_cover_the_truth_about_95_times_in_100(suites: int, items: int) -> None:
    # Suites' accuracies from a beta distribution with mean 4 / 5.5; 600 samples give +-.018 at .95.
    rng = np.random.default_rng(suites)
    covered = 0
    for _ in range(600):
        drawn = [rng.binomial(1, share, items).astype(float) for share in rng.beta(4.0, 1.5, suites)]
        low, high = bootstrap_suites(drawn, seed=0, macro=False, draws=400)
        covered += low <= 4 / 5.5 <= high
    assert 0.92 <= covered / 600 <= 0.975


def judgements() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": ["a/1", "a/2", "b/1", "c/1"],
            "suite": ["a", "a", "b", "c"],
            "phenomenon": ["p", "p", "p", "q"],
            "measure": ["lp"] * 4,
            "rule": ["pair"] * 4,
            "passed": [1.0, 0.5, 0.0, 1.0],
            "margin": [1.0, 0.0, -1.0, 2.0],
            "stable": [True, False, True, True],
        }
    )


def test_micro_averages_items_and_macro_suites() -> None:
    estimates = estimate_accuracy(judgements())
    overall = estimates.filter(level="overall").row(0, named=True)
    macro = estimates.filter(level="macro").row(0, named=True)
    assert overall["accuracy"] == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert macro["accuracy"] == pytest.approx((0.75 + 0 + 1) / 3)
    assert (overall["n"], overall["suites"], overall["ties"], overall["unstable"]) == (4, 3, 1, 1)


def test_a_phenomenon_of_one_suite_has_wilsons_interval() -> None:
    row = estimate_accuracy(judgements()).filter(level="phenomenon", name="q").row(0, named=True)
    assert row["interval"] == "Wilson"
    assert (row["low"], row["high"]) == pytest.approx(wilson_interval(1, 1))


def test_the_same_seed_gives_the_same_intervals() -> None:
    assert estimate_accuracy(judgements(), seed=4).equals(estimate_accuracy(judgements(), seed=4))
