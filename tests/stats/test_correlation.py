"""Correlations, dependent correlations, regression lines and signed ranks against R and Lau et al."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.correlation import (
    compare_correlations,
    correlate,
    disattenuate,
    steiger_z,
    steiger_z_apart,
    williams_t,
)
from felicity.stats.fit import compare_lines, describe_regression, fit_ols
from felicity.stats.intervals import clopper_pearson, proportion_right
from felicity.stats.paired_tests import signed_rank
from felicity.stats.raters import half_against_half, one_against_rest

Find = Callable[[str], Path]

# R: ?cor.test, Hunter L values and consumers' scores of tuna (Hollander & Wolfe 1973).
X = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]
Y = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8]


def test_pearson_with_fishers_interval() -> None:
    # R: cor.test(x, y)
    row = correlate(X, Y).row(0, named=True)
    expected = [0.5711815576, 0.1081731, -0.1497426330, 0.8955794618]
    assert [row["r"], row["p"], row["low"], row["high"]] == pytest.approx(expected, abs=1e-7)


def test_rank_correlations() -> None:
    # R: cor.test(x, y, method = "spearman", exact = FALSE); cor.test(x, y, method = "kendall")
    spearman = correlate(X, Y, method="spearman").row(0, named=True)
    assert [spearman["r"], spearman["p"]] == pytest.approx([0.6, 0.08762283], abs=1e-7)
    kendall = correlate(X, Y, method="kendall").row(0, named=True)
    assert [kendall["r"], kendall["p"]] == pytest.approx([4 / 9, 0.1194389], abs=1e-7)
    # R, after Bonett & Wright (2000): tanh(atanh(.6) + c(-1, 1) * qnorm(.975) * sqrt((1 + .18) / 6))
    assert [spearman["low"], spearman["high"]] == pytest.approx([-0.1742440698, 0.9157978790], abs=1e-8)


def test_point_biserial_is_pearson_with_a_binary_variable() -> None:
    right = [0, 0, 0, 1, 1, 0, 1, 0, 1]
    assert correlate(right, X, method="point_biserial")["r"][0] == pytest.approx(np.corrcoef(right, X)[0, 1])
    with pytest.raises(BadInput, match="0 or 1"):
        correlate(X, Y, method="point_biserial")


def test_bootstrap_interval_is_near_fishers_on_normal_data() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = 0.6 * x + 0.8 * rng.normal(size=200)
    fisher = correlate(x, y).row(0, named=True)
    drawn = correlate(x, y, interval="bootstrap", draws=1000).row(0, named=True)
    assert [drawn["low"], drawn["high"]] == pytest.approx([fisher["low"], fisher["high"]], abs=0.03)


@pytest.mark.parametrize(
    ("x", "y", "complaint"),
    [
        ([1, 2, 3, 4], [1, 2, 3], "at least 4"),
        ([1, 2, 3, 4, 5], [1, 2, 3, 5], "needs pairs"),
        ([1, 1, 1, 1], [1, 2, 3, 4], "'x' is 1 throughout"),
        ([1, 2, 3, float("nan")], [1, 2, 3, 4], "'x' has 1 value that are NaN"),
        (["a", "b", "c", "d"], [1, 2, 3, 4], "not numbers"),
    ],
)
def test_what_cannot_correlate_is_refused(x: list[float], y: list[float], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        correlate(x, y)


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'pearson'"):
        correlate(X, Y, method="pearsen")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="interval"):
        correlate(X, Y, interval="wald")  # type: ignore[arg-type]


def test_disattenuation() -> None:
    # By hand: .4 / sqrt(.8 * .5).
    assert disattenuate(0.4, 0.8, 0.5) == pytest.approx(0.632456, abs=1e-6)
    with pytest.raises(BadInput, match="reliability"):
        disattenuate(0.4, 1.2)


def test_williams_t() -> None:
    # R: psych::r.test(n = 103, r12 = .4, r13 = .5, r23 = .1)   t -0.891279904761, p 0.374918517491
    t, df, p = williams_t(0.4, 0.5, 0.1, 103)
    assert [t, df, p] == pytest.approx([-0.891279904761, 100, 0.374918517491], abs=1e-10)


def test_steiger_z_without_a_shared_variable() -> None:
    # R: psych::r.test(n = 103, r12 = .5, r34 = .6, r23 = .7, r13 = .5, r14 = .5, r24 = .8)
    z, p = steiger_z_apart(0.5, 0.6, 0.5, 0.5, 0.7, 0.8, 103)
    assert [z, p] == pytest.approx([-1.202657310766, 0.229108959966], abs=1e-10)


def test_steiger_z_with_a_shared_variable_is_near_williams() -> None:
    z, p = steiger_z(0.4, 0.5, 0.1, 103)
    assert p == pytest.approx(williams_t(0.4, 0.5, 0.1, 103)[2], abs=0.005)
    # By hand: s = [.1 (1 - 2 (.45^2)) - .5 (.45^2) (1 - 2 (.45^2) - .01)] / (1 - .45^2)^2 = .000593...
    s = (0.1 * (1 - 2 * 0.2025) - 0.5 * 0.2025 * (1 - 2 * 0.2025 - 0.01)) / (1 - 0.2025) ** 2
    assert z == pytest.approx((np.arctanh(0.4) - np.arctanh(0.5)) * np.sqrt(100 / (2 - 2 * s)))


def test_two_measures_against_ratings() -> None:
    rng = np.random.default_rng(5)
    ratings = rng.normal(size=300)
    good = ratings + 0.5 * rng.normal(size=300)
    poor = ratings + 2.0 * rng.normal(size=300)
    table = compare_correlations(ratings, good, poor)
    assert table["test"].to_list() == ["williams", "steiger"]
    assert table["p"].max() < 1e-6
    with pytest.raises(BadInput, match="of the same measure|are the same|strictly between"):
        compare_correlations(ratings, good, good)
    with pytest.raises(BadInput, match="too few"):
        williams_t(0.1, 0.2, 0.3, 3)


def test_regression_is_rs_lm(classic) -> None:
    # R: summary(lm(Reaction ~ Days, sleepstudy))
    fit = fit_ols("Reaction ~ Days", classic("sleepstudy"))
    row = fit.fixed.row(1, named=True)
    assert [row["estimate"], row["se"], row["df"]] == pytest.approx([10.46728596, 1.238195298, 178], rel=1e-8)
    assert fit.sigma == pytest.approx(47.7147197438, rel=1e-9)
    assert [fit.r2, fit.r2_adjusted, fit.f] == pytest.approx([0.2864713951, 0.2824628074, 71.4644205986])
    assert "t(178) = 8.45, p < .001" in describe_regression(fit)
    assert fit.as_dict()["fixed"][1]["term"] == "Days"


@pytest.mark.parametrize(
    ("formula", "complaint"),
    [
        ("Reaction ~ Days + (1 | Subject)", "use fit_lmm"),
        ("Reaction ~ Days + I(2 * Days)", "rank-deficient"),
        ("I(0 * Reaction) ~ Days", "nothing to explain"),
    ],
)
def test_regressions_that_cannot_be_are_refused(classic, formula: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        fit_ols(formula, classic("sleepstudy"))


def test_exact_signed_rank() -> None:
    # R: wilcox.test(x, y, paired = TRUE, alternative = "greater")   V = 40, p = 0.01953125
    x = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    y = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    row = signed_rank(x, y, alternative="greater").row(0, named=True)
    assert (row["w"], row["p"], row["method"]) == (40.0, 0.01953125, "exact")
    with pytest.raises(BadInput, match="No pair differs"):
        signed_rank([1, 2], [1, 2])
    with pytest.raises(BadInput, match="needs pairs"):
        signed_rank([1, 2], [1, 2, 3])
    with pytest.raises(UnknownName):
        signed_rank([1, 2], [1, 3], alternative="up")  # type: ignore[arg-type]


def test_clopper_pearson() -> None:
    # R: binom.test(8, 10)$conf.int; binom.test(0, 25)$conf.int; binom.test(40, 1000, conf.level = .9)
    assert clopper_pearson(8, 10) == pytest.approx((0.4439045377, 0.9747892737), abs=1e-9)
    assert clopper_pearson(0, 25) == pytest.approx((0.0, 0.1371851715), abs=1e-9)
    assert clopper_pearson(40, 1000, level=0.9) == pytest.approx((0.03033048649, 0.05175340135), abs=1e-9)
    with pytest.raises(BadInput, match="not a proportion"):
        clopper_pearson(11, 10)


def test_three_ways_to_count_a_tie() -> None:
    answers = [1.0, 1.0, 0.5, 0.0]
    shares = [proportion_right(answers, ties=ties)["share"][0] for ties in ("wrong", "half", "drop")]  # type: ignore[arg-type]
    assert shares == pytest.approx([0.5, 0.625, 2 / 3])
    assert proportion_right(answers)["ties"][0] == 1
    with pytest.raises(BadInput, match="must be 1"):
        proportion_right([1.3])
    with pytest.raises(BadInput, match="leaves nothing"):
        proportion_right([0.5], ties="drop")


# Lau et al. (2020), from the released ratings: protocol 2.
@pytest.fixture(scope="module")
def lau(published: Find) -> dict[str, pl.DataFrame]:
    return {
        name: pl.read_csv(published(f"lau2020/human-ratings/context-{name}-ratings.csv")).sort("ID")
        for name in ("none", "real", "random")
    }


def means(frame: pl.DataFrame) -> np.ndarray:
    return frame["mean-ratings"].to_numpy()


@pytest.mark.data
def test_lau_correlations(lau: dict[str, pl.DataFrame]) -> None:
    none, real, random = (means(lau[name]) for name in ("none", "real", "random"))
    found = [correlate(a, b)["r"][0] for a, b in ((real, none), (random, none), (random, real))]
    assert found == pytest.approx([0.9401, 0.9109, 0.8907], abs=5e-5)


@pytest.mark.data
def test_lau_real_context_is_rated_above_random_context(lau: dict[str, pl.DataFrame]) -> None:
    row = signed_rank(means(lau["real"]), means(lau["random"]), alternative="greater").row(0, named=True)
    assert row["p"] == pytest.approx(1.916e-8, rel=5e-4)


@pytest.mark.data
def test_lau_lines_differ_in_offset_not_in_slope(lau: dict[str, pl.DataFrame]) -> None:
    fit = compare_lines(means(lau["none"]), means(lau["real"]), means(lau["random"]))
    p = dict(fit.fixed.select("term", "p").iter_rows())
    assert p["ctx"] == pytest.approx(0.01702, abs=5e-6)
    assert p["x:ctx"] == pytest.approx(0.3626, abs=5e-5)


@pytest.mark.data
def test_lau_shifts_of_good_and_bad_sentences(lau: dict[str, pl.DataFrame]) -> None:
    none, real = means(lau["none"]), means(lau["real"])
    good, bad = none >= 3.5, none <= 1.5
    assert (good.sum(), bad.sum()) == (77, 24)
    shift = real - none
    assert [shift[good].mean(), shift[bad].mean()] == pytest.approx([-0.077, 0.452], abs=5e-4)


@pytest.mark.data
def test_lau_ceilings(lau: dict[str, pl.DataFrame]) -> None:
    # Published over 1000 draws of unstated seed: .751/.726/.747 and .921/.917/.916; the mean of 1000
    # draws has a standard error near .001, and theirs too.
    for name, ub1, ub2 in (("none", 0.751, 0.921), ("real", 0.726, 0.917), ("random", 0.747, 0.916)):
        ratings = [[float(x) for x in text.split(",")] for text in lau[name]["full-ratings"]]
        assert one_against_rest(ratings)["r"][0] == pytest.approx(ub1, abs=0.005)
        assert half_against_half(ratings)["r"][0] == pytest.approx(ub2, abs=0.003)
