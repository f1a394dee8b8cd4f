"""lme4's textbook examples. Every expected number was computed with R; the call stands beside it."""

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.fitted import FittedModel, finite
from felicity.stats.mixed.linear import fit_lmm

Classic = Callable[[str], pl.DataFrame]


def fixed(model: FittedModel, *columns: str) -> dict[str, list[float]]:
    return {row["term"]: [row[column] for column in columns] for row in model.fixed.to_dicts()}


def sds(model: FittedModel) -> list[tuple[str, str | None, float]]:
    return [(row["group"], row["term"], row["sd"]) for row in model.random.to_dicts()]


def check_sds(model: FittedModel, expected: list[tuple[str, str | None, float]]) -> None:
    assert [row[:2] for row in sds(model)] == [row[:2] for row in expected]
    assert [row[2] for row in sds(model)] == pytest.approx([row[2] for row in expected], rel=5e-5)


def test_correlated_slopes_by_reml(classic: Classic) -> None:
    # R: lmer(Reaction ~ Days + (Days | Subject), sleepstudy)
    model = fit_lmm("Reaction ~ Days + (Days | Subject)", classic("sleepstudy"))
    rows = fixed(model, "estimate", "se", "df", "p")
    assert rows["(Intercept)"][:2] == pytest.approx([251.40510485, 6.824596695], rel=1e-5)
    assert rows["Days"][:2] == pytest.approx([10.46728596, 1.545789644], rel=1e-5)
    assert rows["Days"][2:] == pytest.approx([16.99998373, 3.263824470e-06], rel=1e-4)
    check_sds(
        model,
        [
            ("Subject", "(Intercept)", 24.74065799),
            ("Subject", "Days", 5.92213766),
            ("Residual", None, 25.59179572),
        ],
    )
    assert model.random["corr"][1] == pytest.approx(0.06555124, rel=1e-4)
    assert model.criterion == pytest.approx(1743.62827196, abs=1e-6)
    assert [model.aic, model.bic] == pytest.approx([1755.62827196, 1774.78601307], abs=1e-6)


def test_modes_fitted_values_and_residuals(classic: Classic) -> None:
    # R: ranef(m)$Subject; fitted(m); residuals(m), of the same model; lme4 stops at 1e-5 of the optimum.
    model = fit_lmm("Reaction ~ Days + (Days | Subject)", classic("sleepstudy"))
    modes = model.modes.filter(pl.col("level") == "309")
    assert modes["term"].to_list() == ["(Intercept)", "Days"]
    assert modes["value"].to_list() == pytest.approx([-40.3987381, -8.6196806], rel=1e-5)
    assert model.fitted[:3] == pytest.approx([253.663656, 273.329918, 292.996179], rel=1e-6)
    assert model.residuals[:2] == pytest.approx([-4.103656, -14.625218], rel=1e-5)


def test_maximum_likelihood(classic: Classic) -> None:
    # R: lmer(Reaction ~ Days + (Days | Subject), sleepstudy, REML = FALSE)
    model = fit_lmm("Reaction ~ Days + (Days | Subject)", classic("sleepstudy"), reml=False)
    rows = fixed(model, "estimate", "se", "df")
    assert rows["Days"] == pytest.approx([10.46728596, 1.502230214, 18.00017693], rel=1e-4)
    assert model.criterion == pytest.approx(1751.93934449, abs=1e-6)
    assert model.bic == pytest.approx(1783.09708559, abs=1e-5)


def test_uncorrelated_slopes_carry_lme4s_group_names(classic: Classic) -> None:
    # R: lmer(Reaction ~ Days + (Days || Subject), sleepstudy)
    model = fit_lmm("Reaction ~ Days + (Days || Subject)", classic("sleepstudy"))
    expected = [
        ("Subject", "(Intercept)", 25.051328325),
        ("Subject.1", "Days", 5.988186674),
        ("Residual", None, 25.565279202),
    ]
    check_sds(model, expected)
    assert fixed(model, "df")["Days"] == pytest.approx([18.15609129], rel=1e-4)
    assert model.criterion == pytest.approx(1743.66929358, abs=1e-6)
    assert model.correlations.is_empty()


def test_crossed_factors(classic: Classic) -> None:
    # R: lmer(diameter ~ 1 + (1 | plate) + (1 | sample), Penicillin)
    model = fit_lmm("diameter ~ 1 + (1|plate) + (1|sample)", classic("penicillin"))
    expected = [22.97222222, 0.8085953614, 5.486592362]
    assert fixed(model, "estimate", "se", "df")["(Intercept)"] == pytest.approx(expected, rel=2e-4)
    assert fixed(model, "p")["(Intercept)"] == pytest.approx([3.623520241e-07], rel=2e-3)
    expected_sds = [
        ("plate", "(Intercept)", 0.8467025103),
        ("sample", "(Intercept)", 1.9316137922),
        ("Residual", None, 0.5499226821),
    ]
    check_sds(model, expected_sds)
    assert model.criterion == pytest.approx(330.860589, abs=1e-6)


def test_nested_factors(classic: Classic) -> None:
    # R: lmer(strength ~ 1 + (1 | batch/cask), Pastes)
    model = fit_lmm("strength ~ 1 + (1 | batch/cask)", classic("pastes"))
    expected = [
        ("cask:batch", "(Intercept)", 2.9040774665),
        ("batch", "(Intercept)", 1.2873658811),
        ("Residual", None, 0.8234075234),
    ]
    check_sds(model, expected)
    assert model.criterion == pytest.approx(246.990745853, abs=1e-6)
    assert model.groups == {"cask:batch": 30, "batch": 10}


def test_a_variance_of_zero_is_called_singular(classic: Classic) -> None:
    # R: lmer(Yield ~ 1 + (1 | Batch), Dyestuff2)   "boundary (singular) fit"
    model = fit_lmm("Yield ~ 1 + (1 | Batch)", classic("dyestuff2"))
    assert model.singular
    assert model.random["sd"].to_list() == pytest.approx([0.0, 3.715684274], rel=1e-6)
    assert fixed(model, "se", "df")["(Intercept)"] == pytest.approx([0.6783880312, 29.0], rel=1e-6)
    assert model.criterion == pytest.approx(161.828277812, abs=1e-6)


def test_interaction_of_a_factor_and_a_covariate(classic: Classic) -> None:
    # R: lmer(angle ~ recipe * temp + (1 | recipe:replicate), cake)
    model = fit_lmm("angle ~ recipe * temp + (1 | recipe:replicate)", classic("cake"))
    rows = fixed(model, "estimate", "se", "df", "p")
    assert list(rows) == ["(Intercept)", "recipeB", "recipeC", "temp", "recipeB:temp", "recipeC:temp"]
    assert rows["recipeB"] == pytest.approx([-3.649206349, 8.347822175, 254.0157699, 0.662377802], rel=1e-5)
    assert rows["recipeC:temp"] == pytest.approx([0.002095238, 0.0398914005, 222.0, 0.95815876], rel=1e-5)
    assert model.criterion == pytest.approx(1703.26748008, abs=1e-6)


def test_sum_coding(classic: Classic) -> None:
    # R: contrasts(cake$recipe) <- contr.sum(3); lmer(angle ~ recipe + temp + (1 | replicate), cake)
    formulas = {
        "angle ~ recipe + temp + (1 | replicate)": {"recipe": "sum"},
        "angle ~ C(recipe, Sum) + temp + (1 | replicate)": None,
    }
    for formula, contrasts in formulas.items():
        model = fit_lmm(formula, classic("cake"), contrasts=contrasts)
        rows = fixed(model, "estimate", "se", "p")
        assert rows["recipe1"] == pytest.approx([1.0, 0.41421423781, 0.01648275623], rel=1e-5)
        assert rows["recipe2"] == pytest.approx([-0.4777777778, 0.41421423781, 0.2498162211], rel=1e-5)
        assert model.criterion == pytest.approx(1666.04478892, abs=1e-6)


def test_custom_coding_gives_the_same_model(classic: Classic) -> None:
    # The columns of contr.sum(3), written out.
    coding = {"recipe": {"A": [1, 0], "B": [0, 1], "C": [-1, -1]}}
    model = fit_lmm("angle ~ recipe + temp + (1 | replicate)", classic("cake"), contrasts=coding)
    assert fixed(model, "estimate")["recipe2"] == pytest.approx([-0.4777777778], rel=1e-6)


CBPP = "cbind(incidence, size - incidence) ~ period + (1 | herd)"


def test_binomial_counts(classic: Classic) -> None:
    # R: glmer(cbind(incidence, size - incidence) ~ period + (1 | herd), cbpp, binomial, control =
    #    glmerControl("bobyqa", tolPwrss = 1e-13, optCtrl = list(rhoend = 1e-9)))
    model = fit_glmm(CBPP, classic("cbpp"))
    rows = fixed(model, "estimate", "se", "statistic", "p")
    expected = {
        "(Intercept)": [-1.3985321444, 0.2324717567, -6.015922812, 1.788647902e-09],
        "period2": [-0.9923326825, 0.3066420739, -3.236126960, 1.211634805e-03],
        "period3": [-1.1286720394, 0.3266374053, -3.455428010, 5.494198892e-04],
        "period4": [-1.5803139028, 0.4274358159, -3.697195799, 2.179942044e-04],
    }
    assert list(rows) == list(expected)
    for term, values in expected.items():
        assert rows[term][0] == pytest.approx(values[0], rel=1e-5)
        assert rows[term][1] == pytest.approx(values[1], rel=1e-3)
        assert rows[term][2] == pytest.approx(values[2], rel=1e-3)
        assert rows[term][3] == pytest.approx(values[3], rel=2e-2)
    assert model.fixed["df"].to_list() == [None] * 4
    check_sds(model, [("herd", "(Intercept)", 0.6422614391)])
    assert [model.criterion, model.aic, model.bic] == pytest.approx(
        [184.052563743, 194.052563743, 204.179322197], abs=1e-6
    )
    # R: ranef(g)$herd; fitted(g); residuals(g)
    modes = dict(model.modes.select("level", "value").iter_rows())
    assert [modes["1"], modes["2"]] == pytest.approx([0.590020016, -0.298897223], rel=1e-4)
    assert model.fitted[:2] == pytest.approx([0.308207643, 0.141748258], rel=1e-5)
    assert model.residuals[:2] == pytest.approx([-1.438031865, 0.988743139], rel=1e-4)


def test_binomial_with_an_effect_per_row(classic: Classic) -> None:
    # R: cbpp$obs <- 1:56; glmer(... ~ period + (1 | herd) + (1 | obs), ...) with the same control
    frame = classic("cbpp").with_row_index("obs")
    model = fit_glmm(CBPP + " + (1 | obs)", frame)
    check_sds(model, [("obs", "(Intercept)", 0.8910784212), ("herd", "(Intercept)", 0.1839472177)])
    assert fixed(model, "estimate")["period4"] == pytest.approx([-1.866264956], rel=1e-5)
    assert fixed(model, "se")["period4"] == pytest.approx([0.5936113108], rel=2e-3)
    assert model.criterion == pytest.approx(174.638311083, abs=1e-6)


def test_single_answers_give_the_estimates_of_their_counts(classic: Classic) -> None:
    counts = classic("cbpp")
    rows = [
        {"herd": row["herd"], "period": row["period"], "ill": i < row["incidence"]}
        for row in counts.to_dicts()
        for i in range(row["size"])
    ]
    single = fit_glmm("ill ~ period + (1 | herd)", pl.DataFrame(rows))
    whole = fit_glmm(CBPP, counts)
    assert single.n == counts["size"].sum()
    assert single.fixed["estimate"].to_list() == pytest.approx(whole.fixed["estimate"].to_list(), abs=1e-8)
    assert single.fixed["se"].to_list() == pytest.approx(whole.fixed["se"].to_list(), abs=1e-8)
    assert len(single.fitted) == single.n
    # The same likelihood without the binomial coefficients, all of them at least 1.
    assert single.criterion > whole.criterion


def test_pandas_frames_are_as_good(classic: Classic) -> None:
    frame = classic("sleepstudy")
    polars = fit_lmm("Reaction ~ Days + (Days | Subject)", frame)
    pandas = fit_lmm("Reaction ~ Days + (Days | Subject)", frame.to_pandas())
    assert pandas.fixed.equals(polars.fixed)


def test_the_dictionary_is_what_the_command_line_prints(classic: Classic) -> None:
    model = fit_lmm("Reaction ~ Days + (Days | Subject)", classic("sleepstudy"))
    said = model.as_dict()
    assert set(said["fixed"][0]) == {"term", "estimate", "se", "df", "statistic", "p", "low", "high"}
    assert set(said["random"][0]) == {"group", "term", "sd", "corr"}
    assert {"criterion", "n", "singular", "r2_marginal", "r2_conditional"} <= set(said)
    assert said["random"][-1] == {"group": "Residual", "term": None, "sd": model.sigma, "corr": None}
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert finite({"a": [float("nan"), 1.0], "b": float("inf")}) == {"a": [None, 1.0], "b": None}
    assert np.isclose(said["fixed"][1]["low"], 7.205956, atol=1e-5)
