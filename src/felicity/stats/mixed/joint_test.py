"""The F test of one term of a linear mixed model, all its contrasts together, as lmerTest's anova()."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Frame, Vector
from felicity.stats.mixed.coding import Contrast
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.formula import expand_terms
from felicity.stats.mixed.linear import satterthwaite_of
from felicity.stats.mixed.model_frame import build_model_frame


def f_test_term(
    model: FittedModel, frame: Frame, term: str, *, contrasts: Mapping[str, Contrast] | None = None
) -> dict[str, float]:
    """F test with Satterthwaite's degrees of freedom of one term: f, df, df_residual, p.

    Raises UnknownName if the model has no such term, BadInput if it is the only fixed effect.
    """
    formula = model.frame.formula
    terms = expand_terms(formula.fixed)
    if term not in terms:
        raise UnknownName("term", term, terms)
    others = [other for other in terms if other != term]
    if not others:
        raise BadInput(f"'{term}' is the only fixed effect of '{formula}'; there is nothing to compare with.")
    smaller = replace(formula, fixed=" + ".join(others if "1" in others else ["0", *others]))
    x0 = build_model_frame(smaller, frame, contrasts=contrasts).x
    statistic, df, df_residual, p = satterthwaite_of(model).f_test(_contrasts(model.frame.x, x0))
    return {"f": statistic, "df": float(df), "df_residual": df_residual, "p": p}


def _contrasts(x: Vector, x0: Vector) -> Vector:
    """Rows L such that L beta = 0 just where x beta lies in the columns of x0."""
    basis = np.linalg.qr(x0)[0]
    left = x - basis @ (basis.T @ x)
    _, sizes, rows = np.linalg.svd(left, full_matrices=False)
    return np.asarray(rows[sizes > 1e-8 * max(1.0, float(np.abs(x).max()))])
