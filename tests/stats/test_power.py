"""Power of a comparison: exact sums against published figures, brute force and simulation."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from felicity.core.errors import BadInput, NotPossible
from felicity.stats.paired_tests import Pairs, mcnemar_p
from felicity.stats.power import (
    critical_counts,
    describe_power,
    items_needed,
    power_curve,
    power_mcnemar,
    power_of_pairs,
    shares_from_accuracies,
    simulate_power,
    smallest_difference,
)


# Shivagunde et al. (2023), counts of items right for one model only: ROLE-1500, ALBERT-v2-xxl against
# RoBERTa-large, as published (one target is read as '' and RoBERTa's first prediction is '') and
# corrected; TEMP affirmative, GPT-3 against BERT-large.
@pytest.mark.parametrize(
    ("only_first", "only_second", "n", "power"),
    [(165, 121, 1500, 0.722), (146, 137, 1500, 0.069), (81, 77, 770, 0.043)],
)
def test_published_powers(only_first: int, only_second: int, n: int, power: float) -> None:
    assert power_mcnemar(only_first / n, only_second / n, n).power == pytest.approx(power, abs=5e-4)


@pytest.mark.parametrize("mid", [False, True])
def test_power_is_the_sum_over_all_tables(mid: bool) -> None:
    n, p1, p2 = 25, 0.3, 0.1
    right = wrong = size = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            chance = scipy_stats.multinomial.pmf([b, c, n - b - c], n, [p1, p2, 1 - p1 - p2])
            if mcnemar_p(b, c, mid=mid) <= 0.05:
                right += chance * (b > c)
                wrong += chance * (b < c)
                size += chance * abs(b - c) / n
    found = power_mcnemar(p1, p2, n, mid=mid)
    assert found.power == pytest.approx(right, abs=1e-10)
    assert found.type_s == pytest.approx(wrong / (right + wrong), abs=1e-10)
    assert found.type_m == pytest.approx(size / (right + wrong) / (p1 - p2), abs=1e-8)


def test_simulation_agrees_with_the_sum() -> None:
    exact = power_mcnemar(0.11, 0.08, 1500)
    drawn = simulate_power(0.11, 0.08, 1500, trials=40_000, seed=4)
    # A share near .75 of 40,000 trials has a standard error of .0022.
    assert drawn.power == pytest.approx(exact.power, abs=0.008)
    assert drawn.type_m == pytest.approx(exact.type_m, abs=0.01)


def test_critical_counts_are_those_of_the_test() -> None:
    counts = np.arange(0, 120)
    for mid in (False, True):
        reach = critical_counts(counts, 0.05, mid=mid)
        for d, k in zip(counts.tolist(), reach.tolist(), strict=True):
            significant = [i for i in range(d // 2 + 1) if mcnemar_p(i, d - i, mid=mid) <= 0.05]
            assert k == max(significant, default=-1), d


def test_the_sign_of_the_difference_does_not_matter() -> None:
    assert power_mcnemar(0.1, 0.2, 100).power == pytest.approx(power_mcnemar(0.2, 0.1, 100).power, abs=1e-12)


def test_nothing_is_ever_significant_with_five_items() -> None:
    found = power_mcnemar(0.5, 0.1, 5)
    assert found.power == 0.0
    assert found.as_dict()["type_m"] is None
    assert "Type M" not in describe_power(found)


def test_power_of_two_runs_as_they_are() -> None:
    first = np.array([1.0] * 30 + [0.0] * 70)
    second = np.array([1.0] * 10 + [0.0] * 90)
    pairs = Pairs(first, second, None, 0)
    assert power_of_pairs(pairs).power == pytest.approx(power_mcnemar(0.2, 0.0, 100).power, abs=1e-12)
    assert power_of_pairs(pairs, n=1000).power > power_of_pairs(pairs).power


def test_power_curve_rises() -> None:
    curve = power_curve(0.12, 0.08, [100, 400, 1600])
    assert curve["n"].to_list() == [100, 400, 1600]
    assert curve["power"].is_sorted()
    assert curve["type_m"].is_sorted(descending=True)


def test_items_needed_reach_the_goal_and_keep_it() -> None:
    n = items_needed(0.12, 0.06)
    powers = [power_mcnemar(0.12, 0.06, k).power for k in range(n, n + 60)]
    assert min(powers) >= 0.8
    assert power_mcnemar(0.12, 0.06, n - 1).power < 0.8


def test_smallest_difference_is_at_the_goal() -> None:
    found = smallest_difference(1500, 0.19)
    assert found.power == pytest.approx(0.8, abs=1e-6)
    assert found.only_first + found.only_second == pytest.approx(0.19)
    assert items_needed(found.only_first, found.only_second) == pytest.approx(1500, abs=15)


def test_shares_from_accuracies() -> None:
    assert shares_from_accuracies(0.8, 0.7, 0.9) == pytest.approx((0.1, 0.0))
    with pytest.raises(BadInput, match="agree on 0.5 to 0.9 of the items, never on 0.95"):
        shares_from_accuracies(0.8, 0.7, 0.95)
    with pytest.raises(BadInput, match="never on 0.4"):
        shares_from_accuracies(0.8, 0.7, 0.4)
    with pytest.raises(BadInput, match="not between 0 and 1"):
        shares_from_accuracies(1.2, 0.7, 0.4)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: power_mcnemar(0.1, 0.1, 50), "do not differ"),
        (lambda: power_mcnemar(0.7, 0.5, 50), "not probabilities"),
        (lambda: power_mcnemar(0.7, 0.1, 0), "give at least 1"),
        (lambda: power_mcnemar(0.7, 0.1, 10, alpha=2), "between 0 and 1"),
        (lambda: items_needed(0.2, 0.1, power=1.0), "0.8 is customary"),
        (lambda: items_needed(0.2000001, 0.2), "too small to show"),
        (lambda: smallest_difference(10, 0.1), "use more items"),
        (lambda: smallest_difference(10, 1.1), "not between 0 and 1"),
    ],
)
def test_impossible_plans_are_refused(call, complaint: str) -> None:
    with pytest.raises((BadInput, NotPossible), match=complaint):
        call()
