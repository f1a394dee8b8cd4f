"""The deviance of a linear mixed model, fixed effects and residual variance profiled out.

Everything is computed from cross-products, once the rows have been summed up: X enters as an
orthonormal basis of its columns, y as the residuals of ordinary least squares, so that little is lost
to cancellation. With V = I + ZΛΛ'Z' and C = (X'V⁻¹X)⁻¹,

    -2 log L(θ, σ) = log|A| + r²/σ² + n log(2πσ²)          (ML)
                     + log|X'V⁻¹X| - p log(2πσ²)           (REML adds this)

The gradient in θ is exact. Reference: Bates et al. (2015), section 3.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi

import numpy as np

from felicity.stats.frames import Vector
from felicity.stats.mixed.normal_matrix import Elimination, cross_products, log_det_slopes
from felicity.stats.mixed.random_effects import RandomEffects


class LinearCriterion:
    """The data of a linear mixed model, summed up; `at(theta)` evaluates it."""

    def __init__(self, y: Vector, x: Vector, effects: RandomEffects, *, reml: bool) -> None:
        self.effects = effects
        self.reml = reml
        self.n, self.p = x.shape
        self.basis, self.r = np.linalg.qr(x)
        self.start_beta = np.linalg.solve(self.r, self.basis.T @ y)
        residuals = y - x @ self.start_beta
        self.right = effects.totals(np.column_stack([self.basis, residuals]))
        self.products = cross_products(effects)
        self.inner = np.zeros((self.p + 1, self.p + 1))
        self.inner[: self.p, : self.p] = np.eye(self.p)
        self.inner[-1, :-1] = self.inner[:-1, -1] = self.basis.T @ residuals
        self.inner[-1, -1] = residuals @ residuals
        self.log_det_r = 2.0 * float(np.log(np.abs(np.diag(self.r))).sum())

    @property
    def df(self) -> int:
        """What the residual sum of squares is divided by."""
        return int(self.n - self.p if self.reml else self.n)

    def at(self, theta: Vector) -> "LinearPoint":
        """The model at one theta."""
        return LinearPoint(self, theta)

    def value_and_gradient(self, theta: Vector) -> tuple[float, Vector]:
        """The profiled deviance and its gradient, for the optimizer."""
        point = self.at(theta)
        return point.deviance, point.gradient


@dataclass(frozen=True)
class LinearPoint:
    """A linear mixed model at one theta, with fixed effects and residual variance at their best."""

    criterion: LinearCriterion
    theta: Vector

    @cached_property
    def elimination(self) -> Elimination:
        """The factored normal matrix."""
        effects = self.criterion.effects
        return Elimination(effects, self.criterion.products, effects.factors(self.theta))

    @cached_property
    def _solved(self) -> tuple[Vector, Vector]:
        """A⁻¹Λ'Z'[X, y] and [X, y]'V⁻¹[X, y]."""
        right = self.elimination.times_factor(self.criterion.right, transposed=True)
        solved = self.elimination.solve(right)
        return solved, self.criterion.inner - right.T @ solved

    @cached_property
    def covariance(self) -> Vector:
        """C on the orthonormal basis: covariance of its coefficients for σ = 1."""
        p = self.criterion.p
        return np.asarray(np.linalg.inv(self._solved[1][:p, :p]))

    @cached_property
    def gamma(self) -> Vector:
        """Coefficients of the basis, beyond ordinary least squares."""
        p = self.criterion.p
        return np.asarray(self.covariance @ self._solved[1][:p, p])

    @cached_property
    def r2(self) -> float:
        """Penalized residual sum of squares."""
        p = self.criterion.p
        return float(self._solved[1][p, p] - self._solved[1][p, :p] @ self.gamma)

    @property
    def sigma2(self) -> float:
        """Residual variance at its best."""
        return self.r2 / self.criterion.df

    @cached_property
    def log_dets(self) -> float:
        """log|A|, and for REML log|X'V⁻¹X| of the true X."""
        total = self.elimination.log_det
        if self.criterion.reml:
            total += self.criterion.log_det_r - float(np.linalg.slogdet(self.covariance)[1])
        return total

    @property
    def deviance(self) -> float:
        """-2 log L, or the REML criterion."""
        return self.log_dets + self.criterion.df * (1.0 + log(2.0 * pi * self.sigma2))

    def deviance_at(self, sigma: float) -> float:
        """The deviance with the residual standard deviation not profiled."""
        return self.log_dets + self.r2 / sigma**2 + self.criterion.df * log(2.0 * pi * sigma**2)

    @property
    def beta(self) -> Vector:
        """Fixed effects of the true X."""
        return np.asarray(self.criterion.start_beta + np.linalg.solve(self.criterion.r, self.gamma))

    @property
    def unscaled_vcov(self) -> Vector:
        """(X'V⁻¹X)⁻¹ of the true X."""
        half = np.linalg.solve(self.criterion.r, self.covariance)
        return np.linalg.solve(self.criterion.r, half.T)

    @property
    def modes(self) -> Vector:
        """Conditional modes of the random effects, on the columns' scaling."""
        return self.elimination.times_factor(self._u_and_w[0][:, -1:])[:, 0]

    @cached_property
    def _u_and_w(self) -> tuple[Vector, Vector]:
        """u = A⁻¹Λ'Z'r and w = Z'V⁻¹r, with r = [X, y - Xγ]."""
        solved = self._solved[0].copy()
        right = self.criterion.right.copy()
        solved[:, -1] -= solved[:, :-1] @ self.gamma
        right[:, -1] -= right[:, :-1] @ self.gamma
        return solved, right - self.elimination.times_products(self.elimination.times_factor(solved))

    @cached_property
    def _parts(self) -> tuple[Vector, Vector, Vector]:
        """Per theta: dlog|A|, dr², and W'dΛU over all columns of [X, residual]."""
        effects = self.criterion.effects
        u, w = self._u_and_w
        k = u.shape[1]
        log_det, mixed, start = [], [], 0
        gradients = log_det_slopes(self.elimination)
        for b, block in enumerate(effects.blocks):
            part = slice(start, start + block.size)
            ub, wb = (m[part].reshape(-1, block.width, k) for m in (u, w))
            for i, j in block.positions:
                mixed.append(wb[:, i, :].T @ ub[:, j, :])
                log_det.append(gradients[b][i, j])
            start = part.stop
        slopes = np.array(mixed)
        return np.array(log_det), -2.0 * slopes[:, -1, -1], slopes

    @cached_property
    def log_dets_gradient(self) -> Vector:
        """Derivative of `log_dets` in theta."""
        log_det, _, slopes = self._parts
        if not self.criterion.reml:
            return log_det
        p = self.criterion.p
        return np.asarray(log_det - 2.0 * np.einsum("tab,ab->t", slopes[:, :p, :p], self.covariance))

    @property
    def r2_gradient(self) -> Vector:
        """Derivative of `r2` in theta."""
        return self._parts[1]

    @property
    def gradient(self) -> Vector:
        """Derivative of the profiled deviance in theta."""
        return self.log_dets_gradient + self.criterion.df * self.r2_gradient / self.r2

    def gradient_at(self, sigma: float) -> Vector:
        """Derivative of `deviance_at` in (theta, sigma)."""
        in_theta = self.log_dets_gradient + self.r2_gradient / sigma**2
        in_sigma = -2.0 * self.r2 / sigma**3 + 2.0 * self.criterion.df / sigma
        return np.append(in_theta, in_sigma)

    @cached_property
    def unscaled_vcov_gradient(self) -> Vector:
        """Derivative of `unscaled_vcov` in each theta, shape (theta, p, p)."""
        p = self.criterion.p
        slopes = self._parts[2][:, :p, :p]
        half = np.linalg.solve(self.criterion.r, self.covariance)
        return np.asarray(half @ (slopes + slopes.transpose(0, 2, 1)) @ half.T)
