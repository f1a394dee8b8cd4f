"""One entry point to all regressions: the family and the formula say which model is fitted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, log, pi
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.core.wording import decimal, format_df, format_interval, format_number, format_p
from felicity.stats.correlation import check_pairs
from felicity.stats.frames import Frame, Values, Vector, as_polars
from felicity.stats.generalized import GeneralizedRegression, describe_generalized, fit_clm, fit_glm
from felicity.stats.mixed import (
    Coder,
    Contrast,
    FittedModel,
    check_design,
    column_name,
    describe_mixed_fit,
    finite,
    fit_clmm,
    fit_glmm,
    fit_lmm,
    fixed_table,
    parse_formula,
    read_response,
)

TIES = ("drop", "wrong")
TIE = 0.5
# Per family its links, the usual one first.
LINKS = {"gaussian": ("identity",), "binomial": ("logit",), "cumulative": ("logit", "probit")}


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
    log_likelihood: float
    aic: float
    bic: float
    codings: dict[str, dict[str, float]]
    references: dict[str, str]
    fitted: Vector = field(repr=False)
    residuals: Vector = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        plain = (
            "formula n level sigma df_residual r2 r2_adjusted f p log_likelihood aic bic codings references"
        )
        values = {"family": "gaussian", "link": "identity", "fixed": self.fixed.to_dicts(), "random": []}
        values |= {name: getattr(self, name) for name in plain.split()}
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
    coder = Coder(as_polars(frame), contrasts, sides=parsed.sides)
    y = read_response(coder, parsed.response)
    x, names, _ = coder.matrix(parsed.fixed)
    check_design(x, names)
    return _fit(str(parsed), coder, x, y, tuple(names), level)


def _fit(
    formula: str, coder: Coder, x: Vector, y: Vector, names: tuple[str, ...], level: float
) -> Regression:
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
    log_likelihood = -0.5 * n * (log(2.0 * pi * left / n) + 1.0) if left > 0 else float("inf")
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
        log_likelihood=log_likelihood,
        aic=2.0 * (p + 1) - 2.0 * log_likelihood,
        bic=log(n) * (p + 1) - 2.0 * log_likelihood,
        codings=coder.codings(names),
        references=coder.references(names),
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


def describe_regression(fit: Regression, *, effects: bool = True) -> str:
    """What was fitted and, with `effects`, the coefficients in words, with t, df, p and interval."""
    kind = f"Linear regression on {fit.n} rows (R2 = {format_number(fit.r2)})."
    if not effects:
        dfs = f"{fit.fixed.height - ('(Intercept)' in fit.fixed['term'])}, {fit.df_residual}"
        explained = f"F({dfs}) = {format_number(fit.f)}, {format_p(fit.p)}; " if isfinite(fit.f) else ""
        return f"{kind} {explained}AIC {decimal(fit.aic, 1)}, residual SD {format_number(fit.sigma)}."
    sentences = [
        f"{row['term']}: b = {format_number(row['estimate'])}, SE = {format_number(row['se'])}, "
        f"t({format_df(row['df'])}) = {format_number(row['statistic'])}, {format_p(row['p'])}, "
        f"{fit.level:.0%} CI {format_interval(row['low'], row['high'], format_number)}"
        for row in fit.fixed.to_dicts()
    ]
    return f"{kind} " + "; ".join(sentences) + "."


Family = Literal["gaussian", "binomial", "cumulative"]
Ties = Literal["drop", "wrong"]
Fit = FittedModel | Regression | GeneralizedRegression


def fit_model(
    formula: str,
    frame: Frame,
    *,
    family: Family = "gaussian",
    link: str | None = None,
    reml: bool = True,
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
    ties: Ties = "drop",
    penalty: float | None = None,
) -> Fit:
    """Fit what the formula says: a mixed model if it has random terms, else ordinary regression.

    family: 'gaussian' for measurements, 'binomial' for 0 and 1 or counts, 'cumulative' for ordered answers.
    link: of a cumulative model, 'logit' (default) or 'probit'.
    ties: what a binomial model does with judgements of 0.5: 'drop' them, and say how many, or count them
        as 'wrong'.
    penalty: of a binomial or cumulative mixed model, the scale in log-odds of a weak prior on the SDs.

    Raises UnknownName for a family or link that felicity does not have, BadInput for data no model can be
    fitted to.
    """
    if family not in LINKS:
        raise UnknownName("family", str(family), LINKS)
    if link is not None and link not in LINKS[family]:
        raise UnknownName("link", link, LINKS[family], where=f"family {family}")
    if not 0.0 < level < 1.0:
        raise BadInput(f"The level of the intervals is {level:g}; choose one between 0 and 1, such as 0.95.")
    parsed = parse_formula(formula)
    mixed = bool(parsed.random)
    if penalty is not None and (family == "gaussian" or not mixed):
        raise BadInput(
            "A penalty is on the SDs of random effects of a binomial or cumulative model; leave it out here."
        )
    options: dict[str, Any] = {"contrasts": contrasts, "level": level}
    options |= {"penalty": penalty} if mixed else {}
    if family == "binomial":
        table, notes = treat_ties(as_polars(frame), parsed.response, ties)
        fitted: FittedModel | GeneralizedRegression = (fit_glmm if mixed else fit_glm)(
            parsed, table, **options
        )
        return replace(fitted, notes=(*fitted.notes, *notes))
    if family == "cumulative":
        options["link"] = "probit" if link == "probit" else "logit"
        ordinal: Fit = (fit_clmm if mixed else fit_clm)(formula, frame, **options)
        return ordinal
    if mixed:
        return fit_lmm(formula, frame, reml=reml, contrasts=contrasts, level=level)
    return fit_ols(formula, frame, contrasts=contrasts, level=level)


def treat_ties(table: pl.DataFrame, response: str, ties: Ties) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Judgements of 0, 0.5 and 1 as 0 and 1, and a sentence on what became of the ties.

    Raises UnknownName for another way than 'drop' and 'wrong'.
    """
    if ties not in TIES:
        raise UnknownName("treatment of ties", str(ties), TIES)
    name = column_name(response)
    if name not in table.columns or not table[name].dtype.is_float():
        return table, ()
    tied = int((table[name] == TIE).sum())
    if not tied or tied == table.height:
        return table, ()
    note = f"{tied} of {table.height} rows are ties and were"
    if ties == "drop":
        return table.filter(pl.col(name).ne_missing(TIE)), (f"{note} dropped.",)
    settled = pl.when(pl.col(name) == TIE).then(0.0).otherwise(pl.col(name))
    return table.with_columns(settled.alias(name)), (f"{note} counted as wrong.",)


def describe_fit(fit: Fit, *, effects: bool = True) -> str:
    """Any fit in plain words; without `effects`, the text below a table of the coefficients."""
    if isinstance(fit, Regression):
        return describe_regression(fit, effects=effects)
    if isinstance(fit, GeneralizedRegression):
        return describe_generalized(fit, effects=effects)
    return describe_mixed_fit(fit, effects=effects)
