"""Two models on the same items: pairing, McNemar, permutation, bootstrap, all pairs."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.bootstrap import bootstrap_mean
from felicity.stats.compare import (
    adjust_bh,
    adjust_holm,
    compare_all,
    compare_groups,
    compare_pairs,
    describe_comparison,
    describe_test,
)
from felicity.stats.paired_tests import (
    Pairs,
    mcnemar_p,
    pair_answers,
    permute_differences,
    permute_pairs,
)


def answers(values: list[float], suites: list[str] | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"item": [f"i{i}" for i in range(len(values))], "passed": [float(v) for v in values]},
        schema_overrides={"passed": pl.Float64},
    )
    return frame if suites is None else frame.with_columns(pl.Series("suite", suites))


def pairs(first: list[float], second: list[float]) -> Pairs:
    return pair_answers(answers(first), answers(second))


def test_answers_are_paired_by_item_whatever_their_order() -> None:
    first, second = answers([1, 0, 1]), answers([0, 0, 1])
    shuffled = pair_answers(first, second.reverse())
    assert shuffled.differences.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ([1, 0, 1], [1, 0], "1 item without an answer in the second table, such as 'i2'"),
        ([1, 0], [1, 0, 1], "without an answer in the first table"),
        ([1, float("nan")], [1, 0], "missing value"),
        ([1, 3], [1, 0], "answers must be between 0 and 1"),
        ([], [], "no rows"),
    ],
)
def test_what_does_not_pair_is_refused(first: list[float], second: list[float], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        pairs(first, second)


def test_an_item_answered_twice_is_refused_until_it_is_told_apart() -> None:
    twice = pl.concat([answers([1, 0]), answers([0, 1])])
    with pytest.raises(BadInput, match="'i0' occurs more than once in the first table"):
        pair_answers(twice, twice)
    told_apart = twice.with_columns(length=pl.Series([10, 10, 20, 20]))
    assert pair_answers(told_apart, told_apart, on=["item", "length"]).n == 4


@pytest.mark.parametrize(("ties", "n", "discordant"), [("wrong", 4, (2, 1)), ("drop", 2, (1, 1))])
def test_ties_are_wrong_or_dropped(ties: str, n: int, discordant: tuple[int, int]) -> None:
    made = pair_answers(answers([1, 1, 0, 0.5]), answers([0.5, 0, 1, 0.5]), ties=ties)  # type: ignore[arg-type]
    assert made.n == n
    assert made.discordant == discordant
    assert made.ties == 3


def test_mcnemar_leaves_tied_items_out_and_counts_them() -> None:
    made = pair_answers(answers([1, 0.5, 0.5]), answers([0, 1, 1]))
    assert made.discordant == (1, 0)
    runs = {"a": answers([1, 0.5, 0.5]), "b": answers([0, 1, 1])}
    row = compare_all(runs, test="exact").row(0, named=True)
    assert (row["left_out"], row["p"]) == (2, 1.0)
    # Halves: 1 + 0.5 + 0.5 against 0 + 1 + 1.
    assert row["difference"] == 0.0


def test_what_cannot_be_done_with_ties_is_refused() -> None:
    with pytest.raises(BadInput, match="leaves nothing"):
        pair_answers(answers([0.5]), answers([1]), ties="drop")
    with pytest.raises(UnknownName, match="treatment of ties"):
        pair_answers(answers([0.5]), answers([1]), ties="right")  # type: ignore[arg-type]


def test_exact_mcnemar_is_the_binomial_test() -> None:
    # R: binom.test(74, 133)$p.value; Shivagunde et al. 2023, TEMP, GPT-3 against GPT2-xl: .2246.
    assert mcnemar_p(74, 59) == pytest.approx(0.2246299299, abs=1e-10)
    # ROLE-1500, ALBERT-v2-xxl against RoBERTa-large as published: .0109.
    assert mcnemar_p(165, 121) == pytest.approx(0.0109, abs=5e-5)


def test_mid_p_by_hand() -> None:
    # 1 against 5: 2 (P(X <= 1) - P(X = 1) / 2) with X ~ Bin(6, 1/2): 2 (7 - 3) / 64.
    assert mcnemar_p(1, 5, mid=True) == pytest.approx(0.125)
    assert mcnemar_p(3, 3, mid=True) == pytest.approx(1.0)
    assert mcnemar_p(0, 0) == mcnemar_p(0, 0, mid=True) == 1.0
    with pytest.raises(BadInput, match="negative"):
        mcnemar_p(-1, 2)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30))
def test_permutation_of_right_and_wrong_is_exact_mcnemar(b: int, c: int, same: int) -> None:
    made = permute_differences(np.array([1.0] * b + [-1.0] * c + [0.0] * same))
    assert made.exact
    assert made.p == pytest.approx(mcnemar_p(b, c), abs=1e-12)


def test_permutation_of_suites_counts_all_sign_patterns() -> None:
    # Suite sums 3, 2, 2: |sum| >= 7 in 2 of 8 patterns.
    suites = ["a"] * 3 + ["b"] * 2 + ["c"] * 2
    made = pair_answers(answers([1] * 7, suites), answers([0] * 7), cluster="suite")
    found = permute_pairs(made)
    assert (found.exact, found.p, found.difference) == (True, 0.25, 1.0)


def test_permutation_of_any_numbers_is_exact_where_small_and_drawn_where_large() -> None:
    rng = np.random.default_rng(0)
    few = rng.normal(size=10) + 0.4
    reference = scipy_stats.permutation_test((few,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert permute_differences(few).p == pytest.approx(reference.pvalue, abs=1e-12)
    many = rng.normal(size=60) + 0.2
    drawn = permute_differences(many, draws=20_000)
    assert not drawn.exact
    # The t-test is close to the permutation test here; 20,000 draws have a standard error below .004.
    assert drawn.p == pytest.approx(scipy_stats.ttest_1samp(many, 0).pvalue, abs=0.015)


def test_bootstrap_by_item_has_the_standard_error_of_the_mean() -> None:
    rng = np.random.default_rng(1)
    values = rng.choice([-1.0, 0.0, 1.0], 400, p=[0.1, 0.7, 0.2])
    interval = bootstrap_mean(values, draws=20_000)
    # sd / sqrt(n); 20,000 draws give a standard error to half a per cent.
    assert interval.se == pytest.approx(values.std(ddof=1) / 20, rel=0.02)
    assert interval.low < values.mean() < interval.high


def test_suites_that_differ_make_the_interval_wider() -> None:
    rng = np.random.default_rng(2)
    suites = np.repeat(np.arange(20), 30)
    chance = 0.5 + 0.4 * rng.uniform(-1, 1, 20)[suites]
    first = (rng.random(600) < chance).astype(float).tolist()
    left = answers(first, [f"s{i}" for i in suites])
    right = answers([0.0] * 600)
    by_item = compare_pairs(pair_answers(left, right))
    by_suite = compare_pairs(pair_answers(left, right, cluster="suite"))
    assert by_suite.high - by_suite.low > 1.5 * (by_item.high - by_item.low)


def test_adjusted_p_values_are_rs() -> None:
    # R: p.adjust(c(.01, .02, .03, .04, .005, .9), "holm"); p.adjust(..., "BH")
    p = [0.01, 0.02, 0.03, 0.04, 0.005, 0.9]
    assert adjust_holm(p).tolist() == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.03, 0.90])
    assert adjust_bh(p).tolist() == pytest.approx([0.030, 0.040, 0.045, 0.048, 0.030, 0.900])
    with pytest.raises(BadInput, match="outside 0 to 1"):
        adjust_holm([0.5, 1.5])
    with pytest.raises(BadInput, match="NaN"):
        adjust_bh([0.5, float("nan")])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_never_kinder_than_benjamini_hochberg(p: list[float]) -> None:
    assert (adjust_holm(p) >= adjust_bh(p) - 1e-12).all()
    assert (adjust_bh(p) >= np.array(p) - 1e-12).all()


def test_all_pairs_of_models() -> None:
    runs = {"a": answers([1] * 12), "b": answers([1] * 6 + [0] * 6), "c": answers([0] * 12)}
    table = compare_all(runs, test="exact")
    assert table.select("first", "second").rows() == [("a", "b"), ("a", "c"), ("b", "c")]
    assert table["p"].to_list() == pytest.approx([2 / 2**6, 2 / 2**12, 2 / 2**6])
    assert table["p_holm"].to_list() == pytest.approx([0.0625, 3 * 2 / 2**12, 0.0625])
    said = describe_comparison(table)
    assert "a: 100.0% of 12 items judged right, b: 50.0%; a difference of 50.00 points" in said
    assert "6 against 0 discordant items, p = .031, Holm-adjusted p = .062): no detectable" in said


def test_without_suites_the_test_is_mcnemars_without_correction() -> None:
    # R: mcnemar.test(matrix(c(0, 3, 9, 0), 2), correct = FALSE)$p.value is 0.08326452.
    runs = {"a": answers([1] * 9 + [0] * 3), "b": answers([0] * 9 + [1] * 3)}
    row = compare_all(runs).row(0, named=True)
    assert (row["test"], row["over"], row["clusters"]) == ("score", "items", None)
    assert row["p"] == pytest.approx(0.08326452, abs=1e-8)
    assert row["low"] < 0 < row["high"]


SUITES = ["x", "x", "y", "y", "z", "z", "w", "w"]


def test_clusters_are_respected_by_default() -> None:
    runs = {"a": answers([1, 1, 1, 1, 1, 1, 0, 0], SUITES), "b": answers([0] * 8, SUITES)}
    row = compare_all(runs, cluster="suite").row(0, named=True)
    # Differences of 1, 1, 1, 0: mean .75, V = .75/12; an answer's variance is .75 - .75^2, and .75 under no
    # difference. T^2 = .75^2 / .75 * (.1875 / .0625) = 2.25; R: 2 * pt(-1.5, 3) is 0.2306, but four
    # suites as single answers have 2 * pnorm(-sqrt(3)), which is 0.0833.
    assert (row["test"], row["clusters"], row["over"]) == ("score", 4, "suites")
    assert row["p"] == pytest.approx(0.0832645, abs=1e-6)
    assert "over 4 suites (score test, p = .083)" in describe_comparison(compare_all(runs, cluster="suite"))
    items = compare_all(runs, cluster="suite", items=True).row(0, named=True)
    assert (items["over"], items["clusters"]) == ("items", 4)
    assert items["p"] == pytest.approx(0.0143059, abs=1e-6)  # R: 2 * pnorm(-sqrt(6))


def test_a_permutation_of_few_suites_says_what_it_cannot_show() -> None:
    runs = {"a": answers([1] * 8, SUITES), "b": answers([0] * 8, SUITES)}
    table = compare_all(runs, cluster="suite", test="permutation")
    row = table.row(0, named=True)
    assert (row["p"], row["least_p"]) == (2 / 2**4, 2 / 2**4)
    assert "This comparison cannot reach p < 0.05" in describe_test(table)[-1]
    assert "cannot reach" not in " ".join(describe_test(compare_all(runs, cluster="suite")))


def test_groups_of_one_suite_are_compared_over_items_and_say_so() -> None:
    frames = {
        name: answers(values, SUITES).with_columns(group=pl.Series(["p"] * 6 + ["q"] * 2))
        for name, values in (("a", [1, 0, 1, 1, 1, 0, 1, 1]), ("b", [0] * 8))
    }
    table = compare_groups(frames, by="group", cluster="suite")
    assert table.select("group", "clusters", "over").rows() == [("p", 3, "suites"), ("q", 1, "items")]
    assert "over items where there is one suite" in " ".join(describe_test(table))


def test_mcnemars_exact_test_is_not_for_several_suites() -> None:
    runs = {"a": answers([1] * 8, SUITES), "b": answers([0] * 8, SUITES)}
    with pytest.raises(BadInput, match="takes items as independent, but these come from 4 suites"):
        compare_all(runs, cluster="suite", test="exact")


def test_comparisons_that_are_none_are_refused() -> None:
    with pytest.raises(BadInput, match="at least two models"):
        compare_all({"a": answers([1, 0])})
    with pytest.raises(UnknownName, match="no test 'sign'"):
        compare_all({"a": answers([1, 0]), "b": answers([1, 0])}, test="sign")  # type: ignore[arg-type]
