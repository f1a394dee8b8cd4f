"""Ordinal models: every expected number was computed with R's ordinal; the call stands beside it.

clmm's optimizer stops some 1e-5 short of its optimum. Values "at the optimum" come from clmm's own objective,
searched to its floor in units of the standard errors, with standard errors from its numerical Hessian:

    floor <- function(formula, data, link = "logit") {
      general <- clmm.control(useMatrix = TRUE)
      m <- clmm(formula, data, link = link, control = general)
      rho <- clmm(formula, data, link = link, control = general, doFit = FALSE); rho$ctrl$gradTol <- 1e-7
      f <- function(par) ordinal:::getNLA(rho, par)
      x <- m$optRes$par; se <- c(sqrt(diag(vcov(m))), rep(.1, 9))[seq_along(x)]
      o <- optim(0 * x, \\(z) f(x + se * z), method = "BFGS",
                 control = list(reltol = 1e-16, ndeps = rep(1e-4, length(x)), maxit = 500))
      par <- x + se * o$par
      cbind(par, se = sqrt(diag(solve(numDeriv::hessian(f, par))))) }
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.compare_models import compare_models
from felicity.stats.mixed.cumulative import LinkName, fit_clmm, read_ordered
from felicity.stats.mixed.cumulative_response import LINKS, CumulativeResponse, CumulativeRows
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.formula import parse_formula

Classic = Callable[[str], pl.DataFrame]
Find = Callable[[str], Path]
Expected = dict[str, tuple[float, float]]

WINE = "rating ~ temp + contact + (1 | judge)"


def coefficients(model: FittedModel) -> Expected:
    assert model.thresholds is not None
    rows = [*model.thresholds.to_dicts(), *model.fixed.to_dicts()]
    return {row["term"]: (row["estimate"], row["se"]) for row in rows}


def check(model: FittedModel, expected: Expected, *, estimate: float = 5e-6, se: float = 5e-5) -> None:
    found = coefficients(model)
    assert list(found) == list(expected)
    for term, values in expected.items():
        assert found[term][0] == pytest.approx(values[0], rel=estimate, abs=2e-8)
        assert found[term][1] == pytest.approx(values[1], rel=se)


def test_wine_as_clmm_gives_it(classic: Classic) -> None:
    # R: clmm(rating ~ temp + contact + (1 | judge), data = wine)
    model = fit_clmm(WINE, classic("wine"))
    expected = {
        "1|2": (-1.623666924, 0.6824410320),
        "2|3": (1.513365183, 0.6037533304),
        "3|4": (4.228526688, 0.8089660503),
        "4|5": (6.088772558, 0.9724536542),
        "tempwarm": (3.062996626, 0.5953761831),
        "contactyes": (1.834884922, 0.5125293320),
    }
    check(model, expected, estimate=1e-5, se=1e-4)
    rows = model.fixed.to_dicts()
    assert [row["statistic"] for row in rows] == pytest.approx([5.144640838, 3.580058365], rel=1e-4)
    assert [row["p"] for row in rows] == pytest.approx([2.680331075e-07, 3.435174713e-04], rel=1e-3)
    assert model.random["sd"].to_list() == pytest.approx([1.131132578], rel=1e-5)
    assert [model.log_likelihood, model.aic, model.bic] == pytest.approx(
        [-81.565409292, 177.130818584, 193.067481417], abs=1e-5
    )
    # R: ranef(m)$judge; fitted(m)
    assert model.modes["value"][:3].to_list() == pytest.approx([1.696178, -0.565783, 0.968808], rel=5e-5)
    assert model.fitted[:3] == pytest.approx([0.4195269888, 0.4719550716, 0.5502679366], rel=1e-5)
    assert model.converged
    assert not model.singular


def test_wine_at_the_optimum(classic: Classic) -> None:
    # R: floor(rating ~ temp + contact + (1 | judge), wine)
    model = fit_clmm(WINE, classic("wine"))
    expected = {
        "1|2": (-1.623669475, 0.6824365561),
        "2|3": (1.513356904, 0.6037351050),
        "3|4": (4.228520415, 0.8089554208),
        "4|5": (6.088769362, 0.9724558813),
        "tempwarm": (3.063000405, 0.5953909896),
        "contactyes": (1.834900625, 0.5125582552),
    }
    check(model, expected)
    assert model.random["sd"].to_list() == pytest.approx([1.131139559], rel=5e-6)
    assert model.log_likelihood == pytest.approx(-81.565412776, abs=1e-6)


def test_crossed_intercepts(classic: Classic) -> None:
    # R: floor(rating ~ context * bias + (1 | rater) + (1 | item), ratings)
    model = fit_clmm("rating ~ context * bias + (1 | rater) + (1 | item)", classic("ratings"))
    expected = {
        "1|2": (-2.50829689153, 0.3393330421),
        "2|3": (-1.05561963801, 0.3186648496),
        "3|4": (0.03291275501, 0.3141155957),
        "4|5": (1.47200868866, 0.3220315141),
        "contextnone": (-0.37553982528, 0.1893135049),
        "bias": (0.24703221138, 0.2523135153),
        "contextnone:bias": (0.03918638589, 0.2112103230),
    }
    check(model, expected)
    assert model.random["sd"].to_list() == pytest.approx([0.96041363633, 0.76647301885], rel=5e-6)
    assert model.log_likelihood == pytest.approx(-642.775459693, abs=1e-6)


def test_probit_link(classic: Classic) -> None:
    # R: floor(rating ~ context * bias + (1 | rater) + (1 | item), ratings, "probit")
    formula = "rating ~ context * bias + (1 | rater) + (1 | item)"
    model = fit_clmm(formula, classic("ratings"), link="probit")
    expected = {
        "1|2": (-1.46372925334, 0.19634953867),
        "2|3": (-0.62750269111, 0.18842954529),
        "3|4": (0.02074184252, 0.18647161703),
        "4|5": (0.86916189421, 0.18947476258),
        "contextnone": (-0.22395834290, 0.11195894511),
        "bias": (0.15016415219, 0.14920241920),
        "contextnone:bias": (0.01586834766, 0.12271149011),
    }
    check(model, expected)
    assert model.random["sd"].to_list() == pytest.approx([0.56624415866, 0.45611119335], rel=5e-6)
    assert model.log_likelihood == pytest.approx(-642.473114195, abs=1e-6)


def test_correlated_slopes(classic: Classic) -> None:
    # R: floor(rating ~ context + bias + (1 + context | rater) + (1 | item), ratings)
    model = fit_clmm("rating ~ context + bias + (1 + context | rater) + (1 | item)", classic("ratings"))
    expected = {
        "1|2": (-2.66779703741, 0.4263961901),
        "2|3": (-1.11507541475, 0.4076129822),
        "3|4": (0.03582510665, 0.4037608528),
        "4|5": (1.56598215286, 0.4107111664),
        "contextnone": (-0.40925718586, 0.2999197695),
        "bias": (0.29697272810, 0.2445515681),
    }
    check(model, expected)
    assert model.log_likelihood == pytest.approx(-631.339601724, abs=1e-6)
    # R: VarCorr(m) of the fit with clmm.control(gradTol = 1e-6, rel.tol = 1e-13), at 1e-5 of the optimum.
    sds = [1.521776308, 1.172627819, 0.8184368342]
    assert model.random["sd"].to_list() == pytest.approx(sds, rel=3e-5)
    assert model.random["corr"][1] == pytest.approx(-0.8779564949, rel=3e-5)


@pytest.mark.data
def test_ratings_of_huynh_et_al(published: Find) -> None:
    # R: h <- merge(subset(ratings, selected == 1), stimuli[c("idx", "item", "bias")])
    #    h$strength <- abs(h$bias) / 100; h$rating <- factor(h$rating, ordered = TRUE)
    #    floor(rating ~ strength + (1 | idx) + (1 | participant) + (1 | item), h)
    stimuli = pl.read_csv(published("huynh2022/experiment2_selection.csv")).select("idx", "item", "bias")
    ratings = pl.read_csv(published("huynh2022/ratings_long_anonymous.csv")).filter(pl.col("selected") == 1)
    frame = ratings.join(stimuli, on="idx").with_columns(strength=pl.col("bias").abs() / 100)
    model = fit_clmm("rating ~ strength + (1 | idx) + (1 | participant) + (1 | item)", frame)
    assert model.n == 3000
    expected = {
        "1|2": (-1.45485820330, 0.29917604049),
        "2|3": (0.06724363373, 0.29723032900),
        "3|4": (0.87276197688, 0.29786468337),
        "4|5": (3.03340659479, 0.30575025058),
        "strength": (0.74233529509, 0.27930575773),
    }
    check(model, expected)
    sds = [2.08496479779, 0.62016112966, 0.61243617662]
    assert model.random["sd"].to_list() == pytest.approx(sds, rel=5e-6)
    assert model.log_likelihood == pytest.approx(-4285.7907218664, abs=1e-5)


def test_a_two_point_scale_with_probit(classic: Classic) -> None:
    # R: ratings$two <- factor(as.integer(ratings$rating) > 3)
    #    floor(two ~ context + (1 | rater), ratings, "probit")
    frame = classic("ratings").with_columns(two=(pl.col("rating") > 3).cast(int))
    model = fit_clmm("two ~ context + (1 | rater)", frame, link="probit")
    check(
        model,
        {"0|1": (-0.008901155791, 0.1361885173), "contextnone": (-0.351904903185, 0.1273248413)},
        estimate=1e-5,
    )
    assert model.random["sd"].to_list() == pytest.approx([0.500533588832], rel=5e-6)
    assert "With two levels" in model.notes[0]


def test_a_two_point_scale_is_the_binomial_model(classic: Classic) -> None:
    frame = classic("ratings").with_columns(high=pl.col("rating") > 3)
    ordinal = fit_clmm("high ~ context + (1 + context | rater)", frame)
    binomial = fit_glmm("high ~ context + (1 + context | rater)", frame)
    found = coefficients(ordinal)
    intercept, slope = binomial.fixed.to_dicts()
    assert found["FALSE|TRUE"] == pytest.approx((-intercept["estimate"], intercept["se"]), rel=1e-5)
    assert found["contextnone"] == pytest.approx((slope["estimate"], slope["se"]), rel=1e-5)
    assert ordinal.log_likelihood == pytest.approx(binomial.log_likelihood, abs=1e-8)
    assert ordinal.r2_conditional == pytest.approx(binomial.r2_conditional, rel=1e-5)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_a_reversed_scale_reverses_every_sign(classic: Classic, link: LinkName) -> None:
    frame = classic("wine")
    there = coefficients(fit_clmm(WINE, frame, link=link))
    back = coefficients(fit_clmm(WINE, frame.with_columns(rating=6 - pl.col("rating")), link=link))
    for term, other in {"1|2": "4|5", "2|3": "3|4", "tempwarm": "tempwarm"}.items():
        assert back[term] == pytest.approx((-there[other][0], there[other][1]), rel=1e-6)


def test_the_origin_of_a_predictor_moves_only_the_thresholds(classic: Classic) -> None:
    frame = classic("ratings").with_columns(year=pl.col("bias") + 2000.0)
    near = coefficients(fit_clmm("rating ~ bias + (1 | rater)", frame))
    far = coefficients(fit_clmm("rating ~ year + (1 | rater)", frame))
    assert far["year"] == pytest.approx(near["bias"], rel=1e-7)
    assert far["2|3"][0] == pytest.approx(near["2|3"][0] + 2000.0 * near["bias"][0], rel=1e-9)


def test_without_predictors_there_are_thresholds_only(classic: Classic) -> None:
    model = fit_clmm("rating ~ 1 + (1 | rater)", classic("ratings"))
    assert model.fixed.is_empty()
    assert list(coefficients(model)) == ["1|2", "2|3", "3|4", "4|5"]
    assert model.r2_marginal == 0.0


def test_a_group_without_variance_is_called_singular() -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {"rating": np.tile([1, 2, 3, 4], 30), "x": rng.normal(size=120), "g": np.repeat(np.arange(10), 12)}
    )
    model = fit_clmm("rating ~ x + (1 + x | g)", frame)
    assert model.singular
    assert "singular" in model.notes[0]
    assert model.fixed["se"].is_finite().all()


def test_likelihood_ratio_test(classic: Classic) -> None:
    # R: anova(clmm(rating ~ temp + (1 | judge), wine), clmm(rating ~ temp + contact + (1 | judge), wine))
    models = [
        fit_clmm(f"rating ~ {side} + (1 | judge)", classic("wine")) for side in ("temp", "temp + contact")
    ]
    row = compare_models(models).row(1, named=True)
    assert (row["chisq"], row["df"], row["p"]) == pytest.approx((14.34681, 1, 0.00015204), rel=1e-4)
    with pytest.raises(BadInput, match="not models of the same rows"):
        compare_models([models[0], fit_clmm(WINE, classic("wine"), link="probit")])


def test_the_dictionary_has_thresholds_beside_fixed_and_random(classic: Classic) -> None:
    told = fit_clmm(WINE, classic("wine")).as_dict()
    assert [row["term"] for row in told["thresholds"]] == ["1|2", "2|3", "3|4", "4|5"]
    assert set(told["thresholds"][0]) == {"term", "estimate", "se"}
    assert (told["family"], told["link"], told["converged"]) == ("cumulative", "logit", True)
    assert told["random"][0]["group"] == "judge"


def test_residuals_are_the_chance_of_less_minus_that_of_more() -> None:
    frame = pl.DataFrame({"rating": [1, 2, 2, 3] * 6, "g": (["a"] * 4 + ["b"] * 4) * 3})
    model = fit_clmm("rating ~ 1 + (1 | g)", frame)
    assert model.singular
    # Shares are 1/4, 1/2, 1/4: the lowest answer has 3/4 above it, the middle one as much below as above.
    assert model.residuals[:4] == pytest.approx([-0.75, 0.0, 0.0, 0.75], abs=1e-6)
    assert model.fitted[:4] == pytest.approx([0.25, 0.5, 0.5, 0.25], abs=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_tails_are_exact_on_both_sides(link: str) -> None:
    ends = np.array([30.0, 31.0])
    response = CumulativeResponse(
        np.array([0, 1, 1, 0]), 2, np.array([[0.0], [1.0], [0.0], [1.0]]), LINKS[link]
    )
    high, low = (
        CumulativeRows(LINKS[link], np.array([b]), np.array([a]), response, ends).log_probabilities(
            np.zeros(1)
        )[0]
        for a, b in (ends, -ends[::-1])
    )
    assert high == low
    # log(F(-30) - F(-31)): for the logistic tail e^-30 (1 - 1/e) to rounding; for the normal one, R:
    # pnorm(-30, log.p = TRUE) + log1p(-exp(pnorm(-31, log.p = TRUE) - pnorm(-30, log.p = TRUE)))
    assert low == pytest.approx({"logit": -30.0 + np.log(1 - np.exp(-1)), "probit": -454.3212439563}[link])


def test_levels_keep_the_order_they_are_given() -> None:
    words = ["bad", "fair", "good"]
    frame = pl.DataFrame({"x": ["good", "bad", "fair", "good"]})
    assert read_ordered(frame.cast(pl.Enum(words[::-1])), "x").boundaries == ("good|fair", "fair|bad")
    assert read_ordered(frame, "factor(x)").boundaries == ("bad|fair", "fair|good")
    numbers = pl.DataFrame({"my rating": [10, 9, 2, 2]})
    assert read_ordered(numbers, "`my rating`").boundaries == ("2|9", "9|10")


def test_points_of_the_scale_that_nobody_chose_are_named() -> None:
    answers = read_ordered(pl.DataFrame({"x": [1, 2, 5, 4]}), "x")
    assert answers.boundaries == ("1|2", "2|4", "4|5")
    assert answers.notes == ("Nobody answered 3; those levels have no threshold of their own.",)


REFUSED = [
    ("x ~ b + (1 | g)", "contains 0.5; a cumulative model needs single answers as whole numbers"),
    ("word ~ b + (1 | g)", "is text, so the order of its levels is unknown"),
    ("same ~ b + (1 | g)", "is 3 in every row"),
    ("gap ~ b + (1 | g)", "Column 'gap' has 1 missing value"),
    ("rating ~ gap + (1 | g)", "Column 'gap' has 1 missing value"),
    ("many ~ b + (1 | g)", "has 240 different values"),
    ("rating ~ word1 + (1 | g)", "has only one level"),
    ("rating ~ b + (1 | word1)", "has only one level"),
    ("rating ~ 0 + b + (1 | g)", "thresholds for its intercept"),
    ("rating ~ apart + (1 | g)", "'apart' separates low from high answers"),
    ("rating ~ b + c + (1 | g)", "rank-deficient: 'c'"),
    ("cbind(rating, 1) ~ b + (1 | g)", "needs a binomial model"),
    ("rating ~ b", "no random term"),
]


@pytest.mark.parametrize(("formula", "complaint"), REFUSED)
def test_data_without_an_answer_are_refused(formula: str, complaint: str) -> None:
    n = np.arange(240)
    b = np.sin(n)
    rating = n % 4 + 1
    frame = pl.DataFrame({"rating": rating, "b": b, "c": 2 * b, "g": n % 7, "x": n / 2, "many": n})
    frame = frame.with_columns(
        word=pl.Series(["low", "mid", "high"] * 80),
        word1=pl.lit("only"),
        same=pl.lit(3),
        gap=pl.Series([None, *rating[1:].tolist()]),
        apart=pl.Series(np.where(rating > 2, 1.0, -1.0)),
    )
    with pytest.raises(BadInput, match=complaint):
        fit_clmm(formula, frame)


def test_another_link_is_refused(classic: Classic) -> None:
    with pytest.raises(UnknownName, match="no link 'cloglog'"):
        fit_clmm(parse_formula(WINE), classic("wine"), link="cloglog")  # type: ignore[arg-type]
