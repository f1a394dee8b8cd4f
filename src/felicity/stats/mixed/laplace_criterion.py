"""The Laplace deviance of a mixed model whose response is not normal, with its exact gradient.

For each (theta, gamma), gamma being the coefficients of the fixed part, the conditional modes u are found
by Newton's method; with A = Λ'Z'WZΛ + I at the modes, the deviance is -2 log f(y | u) + |u|² + log|A|.
The gradient follows u by implicit differentiation: moving a parameter moves the modes, the modes move
the weights W, and the weights move log|A|. What the response is, a `Response` says row by row.
Reference: Bates et al. (2015); Madsen & Thyregod (2011), section 5.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from felicity.core.errors import NotPossible
from felicity.stats.frames import Vector
from felicity.stats.mixed.normal_matrix import (
    Elimination,
    cross_products,
    has_dense_rest,
    leverages,
    log_det_slopes,
)
from felicity.stats.mixed.optimum import Optimum
from felicity.stats.mixed.random_effects import RandomEffects

MODE_STEPS = 100
MODE_GOAL = 1e-10
HALVINGS = 30
NUMERIC_STEP = 1e-4
FLAT_BELOW = 1e-8


class RowsAt(Protocol):
    """The rows' log likelihood at fixed gamma, as a function of the random part of the predictor."""

    def log_likelihood(self, random: Vector) -> float:
        """Sum over the rows."""

    def score_and_weight(self, random: Vector) -> tuple[Vector, Vector]:
        """Per row, the first derivative in the predictor and minus the second, the weight."""

    def weight_derivative(self, random: Vector) -> Vector:
        """Per row, the derivative of the weight in the predictor."""

    def gradient_in_gamma(self, random: Vector, leverage: Vector, moved: Vector) -> Vector:
        """Gradient in gamma of -2 log likelihood + leverage·weights + moved·slopes, per row and summed."""


class Response(Protocol):
    """A distribution with data; gamma are its coefficients in coordinates that make the deviance round."""

    @property
    def size(self) -> int:
        """Length of gamma; zero is where the search starts."""

    def at(self, gamma: Vector) -> RowsAt:
        """The rows at these coefficients."""


@dataclass(frozen=True)
class LaplacePoint:
    """A mixed model at one (theta, gamma), the modes found; `random` is Zb per row."""

    deviance: float
    gradient: Vector
    u: Vector
    random: Vector
    elimination: Elimination


class LaplaceCriterion:
    """The deviance as a function of (theta, gamma), with the `penalty` of `penalize_covariances`, if any."""

    def __init__(self, response: Response, effects: RandomEffects, penalty: float | None = None) -> None:
        self.response, self.effects, self.penalty = response, effects, penalty
        self._u = np.zeros((sum(block.size for block in effects.blocks), 1))

    @property
    def start(self) -> Vector:
        """Identity factors and the coefficients of the regression without random effects."""
        return np.concatenate([self.effects.start, np.zeros(self.response.size)])

    def split(self, parameters: Vector) -> tuple[Vector, Vector]:
        """Theta and gamma."""
        n = self.effects.n_theta
        return parameters[:n], parameters[n:]

    def value_and_gradient(self, parameters: Vector) -> tuple[float, Vector]:
        """The Laplace deviance, penalized if asked for, and its gradient."""
        value, gradient = self._deviance_and_gradient(parameters)
        if self.penalty is None:
            return value, gradient
        n = self.effects.n_theta
        extra, slope = penalize_covariances(self.effects, parameters[:n], self.penalty)
        return value + extra, gradient + np.concatenate([slope, np.zeros(len(parameters) - n)])

    def _deviance_and_gradient(self, parameters: Vector) -> tuple[float, Vector]:
        if has_dense_rest(self.effects):
            point = self.at(parameters)
            return point.deviance, point.gradient
        gradient = np.empty(len(parameters))
        for i in range(len(parameters)):
            step = np.zeros(len(parameters))
            step[i] = NUMERIC_STEP
            ends = [self.at(parameters + s, slopes=False).deviance for s in (step, -step)]
            gradient[i] = (ends[0] - ends[1]) / (2.0 * NUMERIC_STEP)
        return self.at(parameters, slopes=False).deviance, gradient

    def at(self, parameters: Vector, *, slopes: bool = True) -> LaplacePoint:
        """The model at one (theta, gamma)."""
        theta, gamma = self.split(parameters)
        rows = self.response.at(gamma)
        u, random, elimination = self._find_modes(rows, self.effects.factors(theta))
        deviance = _penalized(rows, u, random) + elimination.log_det
        gradient = (
            self._gradient(rows, u, random, elimination) if slopes else np.full(len(parameters), np.nan)
        )
        return LaplacePoint(deviance, gradient, u, random, elimination)

    def gamma_covariance(self, optimum: Optimum) -> Vector:
        """Covariance of gamma, the inverse of the observed information of (theta, gamma).

        Raises NotPossible if a coefficient of the fixed part has no curvature.
        """
        n = self.effects.n_theta
        values, vectors = np.linalg.eigh(optimum.hessian)
        flat = values <= FLAT_BELOW * values[-1]
        # A singular fit is flat where factors of the random part rotate; that moves no coefficient.
        if (np.abs(vectors[n:, flat]) > FLAT_BELOW**0.5).any():
            raise NotPossible(
                "The likelihood is flat in some direction, so standard errors do not exist; "
                "simplify the model."
            )
        kept = vectors[n:, ~flat]
        return np.asarray(2.0 * (kept / values[~flat]) @ kept.T)

    def _find_modes(self, rows: RowsAt, factors: list[Vector]) -> tuple[Vector, Vector, Elimination]:
        effects = self.effects
        u, random = self._start_modes(rows, factors)
        value, close = _penalized(rows, u, random), False
        for _ in range(MODE_STEPS):
            residual, weights = rows.score_and_weight(random)
            elimination = Elimination(effects, cross_products(effects, weights), factors)
            if close:
                self._u = u
                return u, random, elimination
            slope = elimination.times_factor(effects.totals(residual[:, None]), transposed=True) - u
            step = elimination.solve(slope)
            # Newton's method squares the error, so one more step from here reaches rounding error.
            close = float((slope * step).sum()) < MODE_GOAL
            for halving in range(HALVINGS):
                new_u = u + step / 2.0**halving
                new_random = effects.spread(elimination.times_factor(new_u)[:, 0])
                new_value = _penalized(rows, new_u, new_random)
                if new_value <= value + 1e-10 * (1.0 + abs(value)):
                    break
            u, random, value = new_u, new_random, new_value
        raise NotPossible(
            "The conditional modes were not found; rescale the predictors or simplify the model."
        )

    def _start_modes(self, rows: RowsAt, factors: list[Vector]) -> tuple[Vector, Vector]:
        """The last modes, or zero if those are worse."""
        pieces, start = [], 0
        for block, factor in zip(self.effects.blocks, factors, strict=True):
            modes = self._u[start : start + block.size].reshape(-1, block.width)
            pieces.append((modes @ factor.T).ravel())
            start += block.size
        random = self.effects.spread(np.concatenate(pieces))
        zero, none = np.zeros_like(self._u), np.zeros_like(random)
        if _penalized(rows, self._u, random) <= _penalized(rows, zero, none):
            return self._u, random
        return zero, none

    def _gradient(self, rows: RowsAt, u: Vector, random: Vector, elimination: Elimination) -> Vector:
        effects = self.effects
        residual, weights = rows.score_and_weight(random)
        leverage = leverages(elimination)
        weight_derivative = leverage * rows.weight_derivative(random)
        pull = elimination.times_factor(effects.totals(weight_derivative[:, None]), transposed=True)
        adjoint = elimination.solve(pull)
        moved = effects.spread(elimination.times_factor(adjoint)[:, 0])
        in_predictor = -2.0 * residual + weight_derivative - weights * moved
        totals = effects.totals(np.column_stack([in_predictor, residual]))
        in_theta: list[float] = []
        start = 0
        log_det = log_det_slopes(elimination)
        for b, block in enumerate(effects.blocks):
            part = slice(start, start + block.size)
            a, c = (totals[part, k].reshape(-1, block.width) for k in (0, 1))
            ub, sb = (v[part, 0].reshape(-1, block.width) for v in (u, adjoint))
            slope = log_det[b] + a.T @ ub + c.T @ sb
            in_theta.extend(slope[i, j] for i, j in block.positions)
            start = part.stop
        return np.concatenate([in_theta, rows.gradient_in_gamma(random, leverage, moved)])


def penalize_covariances(effects: RandomEffects, theta: Vector, scale: float) -> tuple[float, Vector]:
    """Minus twice the log density of a Wishart prior on each term's covariance, and its gradient in theta.

    The degrees of freedom are blme's default, the width of the term plus 2.5 (Chung et al. 2013), so that the
    density is proportional to |Σ|^.75 exp(-tr Σ / (2 scale²)): of a single SD, σ^1.5 exp(-σ² / (2 scale²)).
    It keeps an SD from 0, and with a finite scale also from infinity. Constants are left out.
    """
    value = 0.0
    slopes: list[float] = []
    for block, factor in zip(effects.blocks, effects.factors(theta), strict=True):
        deviations = factor / block.scale[:, None]
        value += float(-3.0 * np.log(np.abs(np.diag(deviations))).sum() + (deviations**2).sum() / scale**2)
        slope = 2.0 * deviations / (block.scale[:, None] * scale**2) - 3.0 * np.diag(1.0 / np.diag(factor))
        slopes.extend(slope[i, j] for i, j in block.positions)
    return value, np.array(slopes)


def _penalized(rows: RowsAt, u: Vector, random: Vector) -> float:
    return -2.0 * rows.log_likelihood(random) + float((u**2).sum())
