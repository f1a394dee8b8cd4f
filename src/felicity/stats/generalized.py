"""Logistic and ordinal regression without random effects, to the numbers of R's glm and ordinal's clm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.special import expit, xlog1py, xlogy

from felicity.core.errors import BadInput
from felicity.core.wording import decimal
from felicity.stats.frames import Frame, Vector, as_polars, one_thread
from felicity.stats.mixed import (
    Coder,
    Contrast,
    Formula,
    LinkName,
    check_design,
    describe_effect,
    describe_scale,
    deviance_residuals,
    finite,
    fit_thresholds,
    fixed_table,
    log_coefficients,
    ordinal_residuals,
    parse_formula,
    read_counts,
    read_ordered,
    start_logistic,
    threshold_table,
    without_intercept,
)


@dataclass(frozen=True)
class GeneralizedRegression:
    """A fit by maximum likelihood; `fixed` has the columns of a mixed model's table.

    thresholds: term ('1|2'), estimate, se, of a cumulative model; None for a binomial one.
    deviance, null_deviance: of a binomial model as R's glm gives them, else -2 log likelihood of the model
        and of the one without predictors.
    fitted: probability of a hit, or of the answer that was given.
    """

    formula: str
    family: Literal["binomial", "cumulative"]
    link: str
    n: int
    level: float
    fixed: pl.DataFrame
    thresholds: pl.DataFrame | None
    log_likelihood: float
    n_parameters: int
    aic: float
    bic: float
    deviance: float
    null_deviance: float
    df_residual: int
    codings: dict[str, dict[str, float]]
    references: dict[str, str]
    fitted: Vector = field(repr=False)
    residuals: Vector = field(repr=False)
    vcov: Vector = field(repr=False)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        plain = "formula family link n level log_likelihood aic bic deviance null_deviance df_residual"
        values = {name: getattr(self, name) for name in f"{plain} codings references".split()}
        values |= {"fixed": self.fixed.to_dicts(), "random": [], "notes": list(self.notes)}
        if self.thresholds is not None:
            values["thresholds"] = self.thresholds.to_dicts()
        return dict(finite(values))


@one_thread
def fit_glm(
    formula: str | Formula,
    frame: Frame,
    *,
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
) -> GeneralizedRegression:
    """Fit a logistic regression, `correct ~ length * matched` or `cbind(hits, misses) ~ ...`.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to, separation included.
    """
    parsed, table = _parse(formula), as_polars(frame)
    hits, trials = read_counts(Coder(table), parsed.response)
    coder, x, names = _design(parsed, table, contrasts)
    beta = start_logistic(hits, trials, x, names)
    fitted = expit(x @ beta)
    root = np.sqrt(trials * fitted * (1.0 - fitted))
    inverse = np.linalg.inv(np.linalg.qr(x * root[:, None], mode="r"))
    vcov = inverse @ inverse.T
    log_likelihood = log_coefficients(hits, trials) + _binomial_sum(hits, trials, fitted)
    residuals = deviance_residuals(hits, trials, fitted)
    share = hits.sum() / trials.sum() if "(Intercept)" in names else 0.5
    null = deviance_residuals(hits, trials, np.full(len(hits), share))
    n, count = len(hits), len(beta)
    return GeneralizedRegression(
        formula=str(parsed),
        family="binomial",
        link="logit",
        n=n,
        level=level,
        fixed=fixed_table(names, beta, vcov, None, level),
        thresholds=None,
        log_likelihood=log_likelihood,
        n_parameters=count,
        aic=2.0 * count - 2.0 * log_likelihood,
        bic=log(n) * count - 2.0 * log_likelihood,
        deviance=float(residuals @ residuals),
        null_deviance=float(null @ null),
        df_residual=n - count,
        codings=coder.codings(names),
        references=coder.references(names),
        fitted=fitted,
        residuals=residuals,
        vcov=vcov,
    )


@one_thread
def fit_clm(
    formula: str | Formula,
    frame: Frame,
    *,
    link: LinkName = "logit",
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
) -> GeneralizedRegression:
    """Fit an ordinal regression, `rating ~ context`, with flexible thresholds; tests are Wald z.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to, separation included.
    """
    parsed, table = _parse(formula), as_polars(frame)
    answers = read_ordered(table, parsed.response)
    coder, design, all_names = _design(parsed, table, contrasts)
    x, names = without_intercept(design, all_names)
    response = fit_thresholds(answers, x, names, link)
    k, n, count = response.n_thresholds, len(answers.codes), response.size
    estimates = response.natural(response.start)
    vcov = response.natural_covariance(response.start_covariance)
    rows, none = response.at(np.zeros(count)), np.zeros(n)
    log_likelihood = rows.log_likelihood(none)
    sizes = np.bincount(answers.codes)
    return GeneralizedRegression(
        formula=str(parsed),
        family="cumulative",
        link=link,
        n=n,
        level=level,
        fixed=fixed_table(names, estimates[k:], vcov[k:, k:], None, level),
        thresholds=threshold_table(answers.boundaries, estimates[:k], vcov[:k, :k]),
        log_likelihood=log_likelihood,
        n_parameters=count,
        aic=2.0 * count - 2.0 * log_likelihood,
        bic=log(n) * count - 2.0 * log_likelihood,
        deviance=-2.0 * log_likelihood,
        null_deviance=-2.0 * float((sizes * np.log(sizes / n)).sum()),
        df_residual=n - count,
        codings=coder.codings(names),
        references=coder.references(names),
        fitted=np.exp(rows.log_probabilities(none)),
        residuals=ordinal_residuals(rows, none),
        vcov=vcov[k:, k:],
        notes=answers.notes,
    )


def _parse(formula: str | Formula) -> Formula:
    parsed = parse_formula(formula) if isinstance(formula, str) else formula
    if parsed.random:
        raise BadInput(f"The formula '{parsed}' has random terms; use fit_glmm or fit_clmm for those.")
    return parsed


def _design(
    parsed: Formula, table: pl.DataFrame, contrasts: Mapping[str, Contrast] | None
) -> tuple[Coder, Vector, tuple[str, ...]]:
    coder = Coder(table, contrasts, sides=parsed.sides)
    x, names, _ = coder.matrix(parsed.fixed)
    check_design(x, names)
    return coder, x, tuple(names)


def _binomial_sum(hits: Vector, trials: Vector, fitted: Vector) -> float:
    return float((xlogy(hits, fitted) + xlog1py(trials - hits, -fitted)).sum())


def describe_generalized(fit: GeneralizedRegression, *, effects: bool = True) -> str:
    """What was fitted and, with `effects`, the coefficients in words, with z, p and interval."""
    kind = "logistic regression" if fit.family == "binomial" else "cumulative link model"
    sentences = [
        f"A {kind}, {fit.formula}, was fitted by maximum likelihood to {fit.n} rows; "
        f"{describe_scale(fit.family, fit.link)}."
    ]
    if effects:
        sentences += [f"{describe_effect(row, fit.level)}." for row in fit.fixed.to_dicts()]
    sentences.append(f"Log likelihood {decimal(fit.log_likelihood)}, AIC {decimal(fit.aic, 1)}.")
    return " ".join([*sentences, *fit.notes])
