"""Model comparison, reduction and profile intervals, against R."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.stats.mixed.backward_elimination import drop_random_terms, reduce_lmm
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.compare_models import compare_models
from felicity.stats.mixed.linear import fit_lmm, satterthwaite_of
from felicity.stats.mixed.profile import profile_intervals

Classic = Callable[[str], pl.DataFrame]

SLOPES = "Reaction ~ Days + (Days | Subject)"
INTERCEPTS = "Reaction ~ Days + (1 | Subject)"


def test_likelihood_ratio_test_refits_by_ml(classic: Classic) -> None:
    # R: anova(lmer(Reaction ~ Days + (1 | Subject)), lmer(Reaction ~ Days + (Days | Subject)))
    frame = classic("sleepstudy")
    table = compare_models([fit_lmm(SLOPES, frame), fit_lmm(INTERCEPTS, frame)])
    assert table["n_parameters"].to_list() == [4, 6]
    assert table["aic"].to_list() == pytest.approx([1802.078643, 1763.939345], abs=1e-5)
    assert table["bic"].to_list() == pytest.approx([1814.850470, 1783.097086], abs=1e-5)
    assert table.row(1, named=True)["chisq"] == pytest.approx(42.1393, abs=5e-5)
    assert table.row(1, named=True)["p"] == pytest.approx(7.0724e-10, rel=1e-4)


def test_models_of_different_rows_are_not_compared(classic: Classic) -> None:
    frame = classic("sleepstudy")
    with pytest.raises(BadInput, match="not models of the same rows"):
        compare_models([fit_lmm(SLOPES, frame), fit_lmm(INTERCEPTS, frame.head(170))])
    with pytest.raises(BadInput, match="at least two"):
        compare_models([fit_lmm(SLOPES, frame)])
    no_slope = fit_lmm("Reaction ~ 1 + (1 | Subject)", frame)
    with pytest.raises(BadInput, match="different fixed effects"):
        compare_models([fit_lmm(INTERCEPTS, frame), no_slope], refit=False)
    with pytest.raises(BadInput, match="one by ML"):
        compare_models([fit_lmm(INTERCEPTS, frame), fit_lmm(SLOPES, frame, reml=False)], refit=False)


def test_random_slope_is_tested_by_reml(classic: Classic) -> None:
    # R: ranova(lmer(Reaction ~ Days + (Days | Subject), sleepstudy))
    frame = classic("sleepstudy")
    row = drop_random_terms(fit_lmm(SLOPES, frame), frame).row(0, named=True)
    assert row["term"] == "Days in (Days | Subject)"
    assert [row["chisq"], row["df"], row["p"]] == pytest.approx([42.83681343, 2, 4.99e-10], rel=1e-3)


def test_backward_reduction_takes_lmertests_steps(classic: Classic) -> None:
    # R: step(lmer(angle ~ recipe * temp + (1 | replicate) + (1 | recipe:replicate), cake))
    # (with a random slope of temp lme4 does not converge: max|grad| = 0.75, criterion 0.45 too high)
    formula = "angle ~ recipe * temp + (1 + temp | replicate) + (1 | recipe:replicate)"
    found = reduce_lmm(formula, classic("cake"))
    assert found.model.formula == "angle ~ 1 + temp + (1 | replicate) + (1 | recipe:replicate)"
    random = {row["term"]: row for row in found.random.to_dicts()}
    assert random["temp in (1 + temp | replicate)"]["eliminated"] == 1
    assert random["(1 | recipe:replicate)"]["chisq"] == pytest.approx(7.68863390, abs=1e-5)
    assert random["(1 | recipe:replicate)"]["p"] == pytest.approx(0.005557, rel=1e-3)
    assert random["(1 | replicate)"]["p"] == pytest.approx(7.4477e-10, rel=1e-3)
    fixed = found.fixed.to_dicts()
    assert [(row["term"], row["eliminated"]) for row in fixed] == [
        ("recipe:temp", 1),
        ("recipe", 2),
        ("temp", 0),
    ]
    assert [row["f"] for row in fixed] == pytest.approx([0.04169, 1.57805, 94.97591], abs=5e-5)
    assert [row["df_residual"] for row in fixed] == pytest.approx([222.0, 28.0, 224.0], abs=1e-3)
    assert [row["p"] for row in fixed[:2]] == pytest.approx([0.95917, 0.22419], abs=1e-5)


def test_joint_test_of_a_factor(classic: Classic) -> None:
    # R: anova(lmer(angle ~ recipe * temp + (1 | recipe:replicate), cake), type = 3), recipe:temp
    model = fit_lmm("angle ~ recipe * temp + (1 | recipe:replicate)", classic("cake"))
    f, df, df_residual, p = satterthwaite_of(model).f_test(np.eye(6)[4:])
    assert [f, df, df_residual, p] == pytest.approx([0.04169, 2, 222.0000048, 0.95917], abs=1e-5)


def test_profile_intervals(classic: Classic) -> None:
    # R: confint(lmer(Reaction ~ Days + (Days | Subject), sleepstudy), oldNames = FALSE)
    # lme4 interpolates its profiles, which is good to five digits or so.
    table = profile_intervals(fit_lmm(SLOPES, classic("sleepstudy")))
    expected = {
        "(Intercept)": [237.68069551, 265.12951468],
        "Days": [7.35865328, 13.57591875],
    }
    fixed = {row["term"]: [row["low"], row["high"]] for row in table.to_dicts() if row["kind"] == "fixed"}
    for term, ends in expected.items():
        assert fixed[term] == pytest.approx(ends, rel=1e-6)
    sds = [(row["low"], row["high"]) for row in table.to_dicts() if row["kind"] == "sd"]
    assert sds[0] == pytest.approx((14.38141816, 37.71599532), rel=1e-5)
    assert sds[1] == pytest.approx((3.80116405, 8.75338075), rel=1e-5)
    assert sds[2] == pytest.approx((22.89826688, 28.85799651), rel=1e-5)


def test_profile_of_a_singular_model_starts_at_zero(classic: Classic) -> None:
    # R: confint(lmer(Yield ~ 1 + (1 | Batch), Dyestuff2))
    table = profile_intervals(fit_lmm("Yield ~ 1 + (1 | Batch)", classic("dyestuff2")))
    intercept, batch, residual = table.to_dicts()
    assert [batch["low"], batch["high"]] == pytest.approx([0.0, 2.084043], abs=1e-4)
    assert [residual["low"], residual["high"]] == pytest.approx([2.892831, 4.815833], abs=1e-4)
    assert [intercept["low"], intercept["high"]] == pytest.approx([4.3121, 7.019092], abs=2e-3)


def test_binomial_models_have_no_profile(classic: Classic) -> None:
    model = fit_glmm("cbind(incidence, size - incidence) ~ period + (1 | herd)", classic("cbpp"))
    with pytest.raises(BadInput, match="Wald intervals"):
        profile_intervals(model)
