"""Regressions without random effects: R's numbers, with the call beside them."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.fit import describe_fit, fit_model, fit_ols
from felicity.stats.generalized import GeneralizedRegression, fit_clm, fit_glm
from felicity.stats.mixed.cumulative import LinkName

Classic = Callable[[str], pl.DataFrame]

CBPP = "cbind(incidence, size - incidence) ~ period"


def test_logistic_regression_of_counts(classic: Classic) -> None:
    # R: glm(cbind(incidence, size - incidence) ~ period, binomial, cbpp, control = list(epsilon = 1e-14))
    fit = fit_glm(CBPP, classic("cbpp"))
    expected = {
        "(Intercept)": (-1.269023489, 0.1449197625, -8.756731779, 2.009931830e-18),
        "period2": (-1.170762725, 0.2914677891, -4.016782536, 5.899812006e-05),
        "period3": (-1.301405334, 0.3128814310, -4.159420167, 3.190565109e-05),
        "period4": (-1.782278635, 0.4130564576, -4.314854792, 1.597078465e-05),
    }
    rows = {row["term"]: row for row in fit.fixed.to_dicts()}
    assert list(rows) == list(expected)
    for term, values in expected.items():
        found = tuple(rows[term][name] for name in ("estimate", "se", "statistic", "p"))
        assert found == pytest.approx(values, rel=1e-8)
    # R: logLik(g), AIC(g), BIC(g), deviance(g), g$null.deviance
    found = (fit.log_likelihood, fit.aic, fit.bic, fit.deviance, fit.null_deviance)
    expected_sizes = (
        -99.029199489363,
        206.058398978727,
        214.159805741667,
        114.101691440856,
        154.817464300649,
    )
    assert found == pytest.approx(expected_sizes, rel=1e-10)
    assert fit.df_residual == 52


def test_single_answers_give_the_estimates_of_their_counts(classic: Classic) -> None:
    counts = classic("cbpp")
    rows = [
        {"period": row["period"], "ill": i < row["incidence"]}
        for row in counts.to_dicts()
        for i in range(row["size"])
    ]
    single, whole = fit_glm("ill ~ period", pl.DataFrame(rows)), fit_glm(CBPP, counts)
    assert single.fixed["estimate"].to_list() == pytest.approx(whole.fixed["estimate"].to_list(), abs=1e-8)
    assert single.fixed["se"].to_list() == pytest.approx(whole.fixed["se"].to_list(), abs=1e-8)


def test_ordinal_regression(classic: Classic) -> None:
    # R: clm(rating ~ temp * contact, data = wine, control = list(gradTol = 1e-10))
    fit = fit_clm("rating ~ temp * contact", classic("wine"))
    assert fit.thresholds is not None
    assert fit.thresholds["term"].to_list() == ["1|2", "2|3", "3|4", "4|5"]
    estimates = [-1.4112619647, 1.1435536604, 3.3770824867, 4.9419822563]
    assert fit.thresholds["estimate"].to_list() == pytest.approx(estimates, rel=1e-9)
    ses = [0.5453532343, 0.5096555284, 0.6381617212, 0.7509112609]
    assert fit.thresholds["se"].to_list() == pytest.approx(ses, rel=1e-9)
    assert fit.fixed["term"].to_list() == ["tempwarm", "contactyes", "tempwarm:contactyes"]
    assert fit.fixed["estimate"].to_list() == pytest.approx(
        [2.3211842607, 1.3474604264, 0.3595488802], rel=1e-9
    )
    assert fit.fixed["se"].to_list() == pytest.approx([0.7009479394, 0.6603556502, 0.9238188484], rel=1e-9)
    assert (fit.log_likelihood, fit.aic, fit.bic) == pytest.approx(
        (-86.41620041958, 186.83240083916, 202.76906367227), rel=1e-12
    )
    assert fit.fitted[:3] == pytest.approx([0.5622964100, 0.2086490806, 0.4346730882], rel=1e-8)


def test_ordinal_regression_with_probit(classic: Classic) -> None:
    # R: clm(rating ~ temp + contact, data = wine, link = "probit", control = list(gradTol = 1e-10))
    fit = fit_clm("rating ~ temp + contact", classic("wine"), link="probit")
    assert fit.thresholds is not None
    estimates = [-0.7732627288, 0.7360214898, 2.0446804639, 2.9413449823]
    assert fit.thresholds["estimate"].to_list() == pytest.approx(estimates, rel=1e-9)
    assert fit.fixed["estimate"].to_list() == pytest.approx([1.4993745784, 0.8677435389], rel=1e-9)
    assert fit.fixed["se"].to_list() == pytest.approx([0.2917903911, 0.2669070093], rel=1e-9)
    assert fit.log_likelihood == pytest.approx(-85.761148364777, rel=1e-12)


def test_linear_regression_has_a_likelihood(classic: Classic) -> None:
    # R: l <- lm(Reaction ~ Days, sleepstudy); logLik(l); AIC(l); BIC(l)
    fit = fit_ols("Reaction ~ Days", classic("sleepstudy"))
    expected = (-950.14652817818, 1906.29305635636, 1915.87192690903)
    assert (fit.log_likelihood, fit.aic, fit.bic) == pytest.approx(expected, rel=1e-12)


def test_orthogonal_polynomials(classic: Classic) -> None:
    # R: lm(Reaction ~ poly(Days, 2), sleepstudy)
    fixed = fit_ols("Reaction ~ poly(Days, 2)", classic("sleepstudy")).fixed
    assert fixed["term"].to_list() == ["(Intercept)", "poly(Days, 2)1", "poly(Days, 2)2"]
    assert fixed["estimate"].to_list() == pytest.approx([298.50789167, 403.36416786, 32.85578798], rel=1e-9)
    assert fixed["se"].to_list() == pytest.approx([3.561724204, 47.785544624, 47.785544624], rel=1e-9)


def test_functions_of_a_predictor(classic: Classic) -> None:
    # R: lm(Reaction ~ log2(Days + 1) + scale(Days), sleepstudy)
    fixed = fit_ols("Reaction ~ log2(Days+1) + scale(Days)", classic("sleepstudy")).fixed
    assert fixed["term"].to_list() == ["(Intercept)", "log2(Days + 1)", "scale(Days)"]
    expected = [316.439921446, -8.229075989, 38.027608942]
    assert fixed["estimate"].to_list() == pytest.approx(expected, rel=1e-9)


def test_separation_is_refused(classic: Classic) -> None:
    # R's glm warns and gives coefficients of 25 with standard errors of 84,000 here.
    frame = classic("wine").with_columns(high=pl.col("rating") > 3)
    with pytest.raises(BadInput, match="separates hits from misses perfectly"):
        fit_glm("high ~ temp * contact", frame)
    top = pl.when(pl.col("temp") == "warm").then(5).otherwise(pl.min_horizontal("rating", pl.lit(4)))
    with pytest.raises(BadInput, match="'tempwarm' separates low from high answers"):
        fit_clm("rating ~ temp", frame.with_columns(rating=top))


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("n", [12, 200, 2000])
def test_a_condition_with_the_top_answer_only_is_refused(link: LinkName, n: int) -> None:
    rng = np.random.default_rng(n)
    cond = np.arange(n) % 2
    frame = pl.DataFrame({"cond": cond, "y": np.where(cond == 1, 3, rng.permutation(np.arange(n) // 2 % 4))})
    with pytest.raises(BadInput, match="'cond' separates low from high answers"):
        fit_clm("y ~ cond", frame, link=link)


def test_a_strong_effect_is_not_separation() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=400) * 10
    codes = np.digitize(x + rng.logistic(size=400), [-8.0, 0.0, 8.0])
    fit = fit_clm("y ~ x", pl.DataFrame({"x": x, "y": codes}))
    assert fit.fixed["estimate"][0] == pytest.approx(1.0, abs=0.2)


def test_random_terms_are_for_the_mixed_models(classic: Classic) -> None:
    for fit in (fit_glm, fit_clm):
        with pytest.raises(BadInput, match="use fit_glmm or fit_clmm"):
            fit("rating ~ temp + (1 | judge)", classic("wine"))


def test_formula_family_and_link_say_which_model(classic: Classic) -> None:
    wine = classic("wine")
    plain = fit_model("rating ~ temp", wine, family="cumulative", link="probit")
    assert isinstance(plain, GeneralizedRegression)
    assert (plain.family, plain.link) == ("cumulative", "probit")
    mixed = fit_model("rating ~ temp + (1 | judge)", wine, family="cumulative", link="probit")
    assert (mixed.family, mixed.link) == ("cumulative", "probit")  # type: ignore[union-attr]
    with pytest.raises(UnknownName, match="no link 'probit' in family binomial"):
        fit_model("rating ~ temp", wine, family="binomial", link="probit")


def test_ties_are_dropped_and_counted(classic: Classic) -> None:
    frame = classic("ratings").with_columns(
        passed=pl.when(pl.col("rating") == 3).then(0.5).otherwise((pl.col("rating") > 3).cast(float))
    )
    tied = frame.filter(pl.col("rating") == 3).height
    dropped = fit_model("passed ~ context", frame, family="binomial")
    assert isinstance(dropped, GeneralizedRegression)
    assert dropped.n == frame.height - tied
    assert dropped.notes == (f"{tied} of {frame.height} rows are ties and were dropped.",)
    wrong = fit_model("passed ~ context", frame, family="binomial", ties="wrong")
    high = fit_model("high ~ context", frame.with_columns(high=pl.col("rating") > 3), family="binomial")
    assert wrong.fixed.equals(high.fixed)
    with pytest.raises(UnknownName, match="'half'; known: drop, wrong"):
        fit_model("passed ~ context", frame, family="binomial", ties="half")  # type: ignore[arg-type]


def test_words_name_the_scale_of_the_estimates(classic: Classic) -> None:
    said = describe_fit(fit_model("rating ~ temp", classic("wine"), family="cumulative"))
    assert "A cumulative link model, rating ~ temp, was fitted by maximum likelihood to 72 rows" in said
    assert "log-odds, positive for higher answers" in said
    assert "tempwarm: b = " in said
    short = describe_fit(fit_model(CBPP, classic("cbpp"), family="binomial"), effects=False)
    assert "period2" not in short
    assert "AIC 206.1" in short
