"""Power of a comparison: exact sums against published figures, brute force and simulation."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from felicity.core.errors import BadInput, NotPossible
from felicity.stats.compare import compare_pairs
from felicity.stats.paired_tests import Pairs, mcnemar_p
from felicity.stats.power import (
    ItemTest,
    critical_counts,
    describe_power,
    items_needed,
    power_curve,
    power_mcnemar,
    power_of_pairs,
    power_of_suites,
    shares_from_accuracies,
    simulate_power,
    smallest_difference,
    smallest_difference_of_suites,
    spread_of_suites,
    suites_needed,
)


# Shivagunde et al. (2023), counts of items right for one model only: ROLE-1500, ALBERT-v2-xxl against
# RoBERTa-large, as published (one target is read as '' and RoBERTa's first prediction is '') and
# corrected; TEMP affirmative, GPT-3 against BERT-large.
@pytest.mark.parametrize(
    ("only_first", "only_second", "n", "power"),
    [(165, 121, 1500, 0.722), (146, 137, 1500, 0.069), (81, 77, 770, 0.043)],
)
def test_published_powers(only_first: int, only_second: int, n: int, power: float) -> None:
    assert power_mcnemar(only_first / n, only_second / n, n, test="exact").power == pytest.approx(
        power, abs=5e-4
    )


def p_of(test: ItemTest, b: int, c: int) -> float:
    if test == "score":
        # McNemar's statistic against the normal distribution, without continuity correction.
        return 2 * float(scipy_stats.norm.sf(abs(b - c) / np.sqrt(b + c))) if b + c else 1.0
    return mcnemar_p(b, c, mid=test == "mid")


@pytest.mark.parametrize("test", ["score", "exact", "mid"])
def test_power_is_the_sum_over_all_tables(test: ItemTest) -> None:
    n, p1, p2 = 25, 0.3, 0.1
    right = wrong = size = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            chance = scipy_stats.multinomial.pmf([b, c, n - b - c], n, [p1, p2, 1 - p1 - p2])
            if p_of(test, b, c) <= 0.05:
                right += chance * (b > c)
                wrong += chance * (b < c)
                size += chance * abs(b - c) / n
    found = power_mcnemar(p1, p2, n, test=test)
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
    tests: tuple[ItemTest, ...] = ("score", "exact", "mid")
    for test in tests:
        reach = critical_counts(counts, 0.05, test=test)
        for d, k in zip(counts.tolist(), reach.tolist(), strict=True):
            significant = [i for i in range(d // 2 + 1) if p_of(test, i, d - i) <= 0.05]
            assert k == max(significant, default=-1), d


def test_the_sign_of_the_difference_does_not_matter() -> None:
    assert power_mcnemar(0.1, 0.2, 100).power == pytest.approx(power_mcnemar(0.2, 0.1, 100).power, abs=1e-12)


def test_nothing_is_ever_significant_exactly_with_five_items() -> None:
    found = power_mcnemar(0.5, 0.1, 5, test="exact")
    assert found.power == 0.0
    assert found.as_dict()["type_m"] is None
    assert "Type M" not in describe_power(found, test="exact")


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


def test_power_over_suites_is_the_share_of_samples_that_the_comparison_finds() -> None:
    # Six suites of 20 items; the same truth drawn item by item, tested by the function behind `compare`.
    rng, found = np.random.default_rng(5), []
    first, second, between, suites, size = 0.35, 0.05, 0.1, 6, 20
    split, sd = first / 0.4, between / (2 * 0.4)
    beta = split * (1 - split) / sd**2 - 1
    clusters = np.repeat(np.arange(suites), size)
    for _ in range(400):
        lean = rng.beta(split * beta, (1 - split) * beta, suites)[clusters]
        discordant, gains = rng.random((2, suites * size))
        one = np.where(discordant < 0.4, (gains < lean).astype(float), 1.0)
        other = np.where(discordant < 0.4, 1.0 - one, 1.0)
        found.append(compare_pairs(Pairs(one, other, clusters, 0)).p[0] <= 0.05)
    expected = power_of_suites(first, second, suites * size, suites, between=between)
    # 400 samples have a standard error below .025.
    assert expected.power == pytest.approx(np.mean(found), abs=0.06)


def test_suites_that_differ_need_more_of_them() -> None:
    alike, unlike = (suites_needed(0.3, 0.1, 20, between=sd) for sd in (0.0, 0.3))
    assert alike < unlike
    assert power_of_suites(0.3, 0.1, 20 * unlike, unlike, between=0.3).power >= 0.8
    assert power_of_suites(0.3, 0.1, 20 * (unlike - 1), unlike - 1, between=0.3).power < 0.8
    least = smallest_difference_of_suites(400, 20, 0.4, between=0.1)
    assert least.power == pytest.approx(0.8, abs=0.01)


def test_the_spread_of_suites_is_what_exceeds_that_of_their_items() -> None:
    rng = np.random.default_rng(8)
    clusters = np.repeat(np.arange(400), 30)
    means = rng.normal(0.1, 0.15, 400)[clusters]
    draw = rng.random(12_000)
    differences = (draw < 0.3 + means / 2).astype(float) - (draw > 0.7 + means / 2)
    pairs = Pairs(np.maximum(differences, 0), np.maximum(-differences, 0), clusters, 0)
    assert spread_of_suites(pairs) == pytest.approx(0.15, abs=0.02)
    with pytest.raises(BadInput, match="at least two"):
        spread_of_suites(Pairs(pairs.first, pairs.second, None, 0))


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
        (lambda: smallest_difference(10, 0.1, test="exact"), "use more items"),
        (lambda: power_of_suites(0.2, 0.1, 5, 8, between=0.1), "cannot be tested over suites"),
        (lambda: suites_needed(0.101, 0.1, 5, between=0.3), "suites would be needed"),
        (lambda: smallest_difference_of_suites(8, 2, 0.1, between=0.1), "use more suites"),
        (lambda: smallest_difference(10, 1.1), "not between 0 and 1"),
    ],
)
def test_impossible_plans_are_refused(call, complaint: str) -> None:
    with pytest.raises((BadInput, NotPossible), match=complaint):
        call()
