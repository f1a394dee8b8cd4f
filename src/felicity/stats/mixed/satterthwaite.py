"""Degrees of freedom by Satterthwaite's method, as lmerTest computes them.

For a contrast c, df = 2 (c'Vc)² / (g'Ag): V is the covariance of the fixed effects, g the gradient of
c'Vc in the variance parameters (theta, sigma), A the asymptotic covariance of those, twice the inverse
of the deviance's Hessian. Directions in which the deviance is flat (a singular fit) are left out.
Reference: Kuznetsova, Brockhoff & Christensen (2017), Journal of Statistical Software 82(13).
"""

from dataclasses import dataclass
from math import isclose

import numpy as np
from scipy import stats

from felicity.stats.frames import Vector
from felicity.stats.mixed.linear_criterion import LinearCriterion, LinearPoint
from felicity.stats.mixed.optimum import difference_hessian

FLAT_BELOW = 1e-8


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
