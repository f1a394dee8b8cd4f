"""Model comparison and joint tests, against R."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.mixed.compare_models import compare_models
from felicity.stats.mixed.joint_test import f_test_term
from felicity.stats.mixed.linear import fit_lmm, satterthwaite_of

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


def test_the_test_of_a_term_is_lmertests(classic: Classic) -> None:
    # R: step(lmer(angle ~ recipe * temp + (1 | replicate) + (1 | recipe:replicate), cake)), fixed part
    cake = classic("cake")
    random = "(1 | replicate) + (1 | recipe:replicate)"
    expected = {
        "recipe * temp": ("recipe:temp", 0.04169, 222.0, 0.95917),
        "recipe + temp": ("recipe", 1.57805, 28.0, 0.22419),
    }
    for fixed, (term, f, df_residual, p) in expected.items():
        row = f_test_term(fit_lmm(f"angle ~ {fixed} + {random}", cake), cake, term)
        assert [row["f"], row["df"], row["p"]] == pytest.approx([f, 2, p], abs=1e-5)
        assert row["df_residual"] == pytest.approx(df_residual, abs=1e-3)
    with pytest.raises(UnknownName, match="did you mean 'temp'"):
        f_test_term(fit_lmm(f"angle ~ temp + {random}", cake), cake, "temo")
    with pytest.raises(BadInput, match="the only fixed effect"):
        f_test_term(fit_lmm(f"angle ~ 1 + {random}", cake), cake, "1")


def test_joint_test_of_a_factor(classic: Classic) -> None:
    # R: anova(lmer(angle ~ recipe * temp + (1 | recipe:replicate), cake), type = 3), recipe:temp
    model = fit_lmm("angle ~ recipe * temp + (1 | recipe:replicate)", classic("cake"))
    f, df, df_residual, p = satterthwaite_of(model).f_test(np.eye(6)[4:])
    assert [f, df, df_residual, p] == pytest.approx([0.04169, 2, 222.0000048, 0.95917], abs=1e-5)
