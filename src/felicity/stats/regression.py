"""Ordinary regression, and whether two regression lines differ in height or in slope."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.correlation import Values, check_pairs
from felicity.stats.frames import Frame, Vector, as_polars
from felicity.stats.mixed.coding import Coder, Contrast
from felicity.stats.mixed.fitted import finite
from felicity.stats.mixed.formula import parse_formula
from felicity.stats.mixed.linear import fixed_table
from felicity.stats.mixed.model_frame import check_design
from felicity.stats.wording import say_df, say_number, say_p


@dataclass(frozen=True)
class Regression:
    """An ordinary least-squares fit; `fixed` has the columns of a mixed model's table."""

    formula: str
    n: int
    level: float
    fixed: pl.DataFrame
    sigma: float
    df_residual: int
    r2: float
    r2_adjusted: float
    f: float
    p: float
    fitted: Vector = field(repr=False)
    residuals: Vector = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        plain = ("formula", "n", "level", "sigma", "df_residual", "r2", "r2_adjusted", "f", "p")
        values = {"fixed": self.fixed.to_dicts()} | {name: getattr(self, name) for name in plain}
        return dict(finite(values))


def fit_ols(
    formula: str, frame: Frame, *, contrasts: Mapping[str, Contrast] | None = None, level: float = 0.95
) -> Regression:
    """Fit `y ~ x + group` by ordinary least squares, with R's names for the terms.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to.
    """
    parsed = parse_formula(formula)
    if parsed.random:
        raise BadInput(f"The formula '{formula}' has random terms; use fit_lmm for those.")
    coder = Coder(as_polars(frame), contrasts, formula=formula)
    y = coder.vector(parsed.response)
    if np.ptp(y) == 0:
        raise BadInput(
            f"The response '{parsed.response}' is {y[0]:g} in every row; there is nothing to explain."
        )
    x, names, _ = coder.matrix(parsed.fixed)
    check_design(x, names)
    return _fit(str(parsed), x, y, tuple(names), level)


def _fit(formula: str, x: Vector, y: Vector, names: tuple[str, ...], level: float) -> Regression:
    n, p = x.shape
    basis, r = np.linalg.qr(x)
    beta = np.linalg.solve(r, basis.T @ y)
    fitted = x @ beta
    residuals = y - fitted
    left, df = float(residuals @ residuals), n - p
    inverse = np.linalg.inv(r)
    vcov = inverse @ inverse.T * left / df
    intercept = "(Intercept)" in names
    total = float(((y - y.mean()) ** 2).sum()) if intercept else float(y @ y)
    explained = p - intercept
    f = ((total - left) / explained) / (left / df) if explained and left > 0 else float("nan")
    return Regression(
        formula=formula,
        n=n,
        level=level,
        fixed=fixed_table(names, beta, vcov, [float(df)] * p, level),
        sigma=float(np.sqrt(left / df)),
        df_residual=df,
        r2=1.0 - left / total,
        r2_adjusted=1.0 - (left / df) / (total / (n - intercept)),
        f=f,
        p=float(stats.f.sf(f, explained, df)) if explained else float("nan"),
        fitted=fitted,
        residuals=residuals,
    )


def compare_lines(x: Values, first: Values, second: Values, *, level: float = 0.95) -> Regression:
    """Do two sets of y on the same x lie on two regression lines? (Lau et al. 2020)

    Fits y ~ x + ctx + x:ctx on both sets, ctx being 1 for the first: the test of `ctx` is that of the
    offset, the test of `x:ctx` that of the slope.
    """
    a, b = check_pairs(x, first)
    _, c = check_pairs(x, second)
    ctx = np.repeat([1.0, 0.0], len(a))
    frame = pl.DataFrame({"y": np.concatenate([b, c]), "x": np.tile(a, 2), "ctx": ctx})
    return fit_ols("y ~ x + ctx + x:ctx", frame, level=level)


def describe_regression(fit: Regression) -> str:
    """The coefficients in words, with t, df, p and interval."""
    sentences = [
        f"{row['term']}: b = {say_number(row['estimate'])}, SE = {say_number(row['se'])}, "
        f"t({say_df(row['df'])}) = {say_number(row['statistic'])}, {say_p(row['p'])}, "
        f"{fit.level:.0%} CI [{say_number(row['low'])}, {say_number(row['high'])}]"
        for row in fit.fixed.to_dicts()
    ]
    return f"Linear regression on {fit.n} rows (R2 = {say_number(fit.r2)}). " + "; ".join(sentences) + "."
