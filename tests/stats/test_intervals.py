"""Accuracy of suites, with intervals over suites or over items."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from felicity.core.errors import UnknownName
from felicity.stats.intervals import estimate_accuracy, estimate_suites, wilson_interval


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (3, 10), (7, 7)])
def test_wilson_equals_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


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
    assert row["interval"] == "Wilson over items"
    assert (row["low"], row["high"]) == pytest.approx(wilson_interval(1, 1))


def test_macro_suites_of_unequal_size_have_the_doubt_of_their_items() -> None:
    # Suites that agree: the variance of a mean of suite means is sum(p q / n_s) / 2^2, that of 92.3 items.
    macro = estimate_suites(np.array([0.5, 0.5]), np.array([100.0, 30.0]), macro=True)
    answers = 4 / (1 / 100 + 1 / 30)
    # Wilson's interval of a share of a half is 1/2 -+ z / (2 sqrt(n + z^2)).
    half = 1.959964 / (2 * (answers + 1.959964**2) ** 0.5)
    assert (macro["low"], macro["high"]) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)


def test_over_items_suites_are_not_generalized_over() -> None:
    judged = judgements()
    row = estimate_accuracy(judged, units="items").filter(level="overall").row(0, named=True)
    assert (row["low"], row["high"]) == pytest.approx(wilson_interval(2.5, 4))
    assert (row["suites"], row["interval"]) == (3, "Wilson over items")
    wide = estimate_accuracy(judged).filter(level="overall").row(0, named=True)
    assert wide["interval"] == "Wilson over suites"
    assert wide["high"] - wide["low"] > row["high"] - row["low"]
    with pytest.raises(UnknownName, match="no unit 'pairs'"):
        estimate_accuracy(judged, units="pairs")  # type: ignore[arg-type]
