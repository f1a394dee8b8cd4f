"""Linear mixed models by REML or ML, with Satterthwaite tests of the fixed effects."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose, sqrt

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.frames import Frame, Vector, one_thread
from felicity.stats.mixed.coding import Contrast
from felicity.stats.mixed.fitted import FittedModel, assemble_fit
from felicity.stats.mixed.formula import Formula
from felicity.stats.mixed.linear_criterion import LinearCriterion, LinearPoint
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame
from felicity.stats.mixed.optimum import difference_hessian, find_minimum

FLAT_BELOW = 1e-8
EXACT_BELOW = 1e-10


@dataclass(frozen=True)
class Satterthwaite:
    """What degrees of freedom of any contrast are computed from.

    jacobian: derivative of `vcov` in each variance parameter, shape (parameters, p, p).
    """

    beta: Vector
    vcov: Vector
    jacobian: Vector
    vcov_parameters: Vector

    def df(self, contrast: Vector) -> float:
        """Degrees of freedom of one contrast of the fixed effects."""
        variance = float(contrast @ self.vcov @ contrast)
        gradient = np.einsum("a,tab,b->t", contrast, self.jacobian, contrast)
        spread = float(gradient @ self.vcov_parameters @ gradient)
        return 2.0 * variance**2 / spread if spread > 0 else float("inf")

    def f_test(self, contrasts: Vector) -> tuple[float, int, float, float]:
        """F, numerator df, denominator df and p of several contrasts being zero together."""
        inner = contrasts @ self.vcov @ contrasts.T
        values, vectors = np.linalg.eigh((inner + inner.T) / 2.0)
        kept = values > FLAT_BELOW * values.max()
        rotated = vectors[:, kept].T @ contrasts
        squares = (rotated @ self.beta) ** 2 / values[kept]
        count = int(kept.sum())
        statistic = float(squares.sum() / count)
        denominator = _pooled_df([self.df(row) for row in rotated])
        return statistic, count, denominator, float(stats.f.sf(statistic, count, denominator))


def _pooled_df(dfs: list[float]) -> float:
    """Denominator df of an F test from those of its one-dimensional parts (Fai & Cornelius 1996)."""
    if len(dfs) == 1:
        return dfs[0]
    if all(isclose(df, dfs[0], abs_tol=1e-8) for df in dfs):
        return float(np.mean(dfs))
    if min(dfs) <= 2:
        return 2.0
    expected = sum(df / (df - 2.0) if np.isfinite(df) else 1.0 for df in dfs)
    return 2.0 * expected / (expected - len(dfs))


def prepare_satterthwaite(criterion: LinearCriterion, theta: Vector, sigma: float) -> Satterthwaite:
    """The derivatives at a fit that degrees of freedom need."""
    point = criterion.at(theta)
    scale = np.append(criterion.effects.parameter_scale, 1.0)
    hessian = _hessian(criterion, point, sigma) * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(hessian)
    kept = values > FLAT_BELOW
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    unscaled = point.unscaled_vcov
    in_theta = point.unscaled_vcov_gradient * sigma**2 * criterion.effects.parameter_scale[:, None, None]
    return Satterthwaite(
        beta=point.beta,
        vcov=unscaled * sigma**2,
        jacobian=np.concatenate([in_theta, 2.0 * sigma * unscaled[None]]),
        vcov_parameters=2.0 * inverse,
    )


def _hessian(criterion: LinearCriterion, point: LinearPoint, sigma: float) -> Vector:
    """Second derivatives of the deviance in (theta, sigma), exact in sigma."""
    k = len(point.theta)
    out = np.empty((k + 1, k + 1))
    out[:k, :k] = difference_hessian(lambda at: criterion.at(at).gradient_at(sigma)[:-1], point.theta)
    out[k, :k] = out[:k, k] = -2.0 * point.r2_gradient / sigma**3
    out[k, k] = 6.0 * point.r2 / sigma**4 - 2.0 * criterion.df / sigma**2
    return out


@one_thread
def fit_lmm(
    formula: str | Formula,
    frame: Frame,
    *,
    reml: bool = True,
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
) -> FittedModel:
    """Fit a linear mixed model, `rt ~ cond + (1 + cond | subj) + (1 | item)`, to lme4's numbers.

    reml: restricted maximum likelihood, else maximum likelihood.
    contrasts: per factor 'treatment' (default), 'sum', or the numbers of each level.
    level: of the Wald intervals, which use the Satterthwaite degrees of freedom.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to.
    """
    return fit_linear_frame(build_model_frame(formula, frame, contrasts=contrasts), reml=reml, level=level)


@one_thread
def fit_linear_frame(data: ModelFrame, *, reml: bool, level: float = 0.95) -> FittedModel:
    """Fit a model whose arrays are built already."""
    criterion = LinearCriterion(data.y, data.x, data.effects, reml=reml)
    if criterion.inner[-1, -1] <= EXACT_BELOW * float(((data.y - data.y.mean()) ** 2).sum()):
        raise BadInput("The fixed effects explain the response exactly; there is no residual to model.")
    optimum = find_minimum(criterion.value_and_gradient, data.effects.start)
    theta = data.effects.with_positive_diagonal(optimum.x)
    point = criterion.at(theta)
    return _describe(data, point, optimum.gradient, level)


def fixed_table(
    names: tuple[str, ...], estimates: Vector, vcov: Vector, dfs: list[float] | None, level: float
) -> pl.DataFrame:
    """Wald tests and intervals of the fixed effects: t with these df, or z without."""
    se = np.sqrt(np.diag(vcov))
    statistic = estimates / se
    spread = stats.t(np.array(dfs)) if dfs is not None else stats.norm()
    half_width = spread.ppf(0.5 + level / 2.0) * se
    return pl.DataFrame(
        {
            "term": pl.Series(names, dtype=pl.String),
            "estimate": estimates,
            "se": se,
            "df": pl.Series(dfs if dfs is not None else [None] * len(names), dtype=pl.Float64),
            "statistic": statistic,
            "p": 2.0 * spread.sf(np.abs(statistic)),
            "low": estimates - half_width,
            "high": estimates + half_width,
        }
    )


@one_thread
def satterthwaite_of(model: FittedModel) -> Satterthwaite:
    """What further contrasts of a linear model are tested with."""
    point: LinearPoint = model.core
    return prepare_satterthwaite(point.criterion, point.theta, sqrt(point.sigma2))


def _describe(data: ModelFrame, point: LinearPoint, slope: float, level: float) -> FittedModel:
    criterion, theta, sigma = point.criterion, point.theta, sqrt(point.sigma2)
    tests = prepare_satterthwaite(criterion, theta, sigma)
    dfs = [tests.df(row) for row in np.eye(criterion.p)]
    predictor = data.x @ point.beta
    fitted = predictor + data.effects.spread(point.modes)
    return assemble_fit(
        data,
        family="gaussian",
        method="REML" if criterion.reml else "ML",
        level=level,
        fixed=fixed_table(data.names, point.beta, tests.vcov, dfs, level),
        theta=theta,
        sigma=sigma,
        modes=point.modes,
        predictor=predictor,
        deviance=point.deviance,
        slope=slope,
        fitted=fitted,
        residuals=data.y - fitted,
        vcov=tests.vcov,
        core=point,
    )
