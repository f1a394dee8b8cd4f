"""The Laplace deviance of a binomial mixed model (logit), with its exact gradient.

For each (theta, beta) the conditional modes u are found by penalized iteratively reweighted least
squares; with A = Λ'Z'WZΛ + I at the modes, the deviance is -2 log f(y | u) + |u|² + log|A|. The
gradient follows u by implicit differentiation: moving a parameter moves the modes, the modes move
the weights, and the weights move log|A|.
Reference: Bates et al. (2015); Madsen & Thyregod (2011), section 5.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln

from felicity.core.errors import NotPossible
from felicity.stats.frames import Vector
from felicity.stats.mixed.cross_products import cross_products, has_dense_rest
from felicity.stats.mixed.elimination import Elimination
from felicity.stats.mixed.elimination_slopes import leverages, log_det_slopes
from felicity.stats.mixed.random_effects import RandomEffects

MODE_STEPS = 100
MODE_GOAL = 1e-10
HALVINGS = 30
NUMERIC_STEP = 1e-4


@dataclass(frozen=True)
class BinomialPoint:
    """A binomial mixed model at one (theta, beta), the modes found."""

    deviance: float
    gradient: Vector
    u: Vector
    eta: Vector
    elimination: Elimination


class BinomialCriterion:
    """Counts, designs and a scaling of the fixed effects in which the deviance is round.

    Parameters are (theta, gamma) with beta = start_beta + scaling @ gamma.
    """

    def __init__(
        self, hits: Vector, trials: Vector, x: Vector, effects: RandomEffects, start_beta: Vector
    ) -> None:
        self.hits, self.trials, self.x, self.effects = hits, trials, x, effects
        self.start_beta = start_beta
        weights = np.sqrt(trials * _variance(x @ start_beta))
        self.scaling = np.linalg.inv(np.linalg.qr(x * weights[:, None], mode="r"))
        self.basis = x @ self.scaling
        self._u = np.zeros((sum(block.size for block in effects.blocks), 1))

    @property
    def start(self) -> Vector:
        """Identity factors and the fixed effects of an ordinary logistic regression."""
        return np.concatenate([self.effects.start, np.zeros(self.x.shape[1])])

    def split(self, parameters: Vector) -> tuple[Vector, Vector]:
        """Theta and beta."""
        n = self.effects.n_theta
        return parameters[:n], self.start_beta + self.scaling @ parameters[n:]

    def value_and_gradient(self, parameters: Vector) -> tuple[float, Vector]:
        """The Laplace deviance, without the binomial coefficients, and its gradient."""
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

    def at(self, parameters: Vector, *, slopes: bool = True) -> BinomialPoint:
        """The model at one (theta, gamma)."""
        theta, beta = self.split(parameters)
        factors = self.effects.factors(theta)
        u, eta, elimination = self._find_modes(self.x @ beta, factors)
        deviance = self._penalized(u, eta) + elimination.log_det
        gradient = self._gradient(u, eta, elimination) if slopes else np.full(len(parameters), np.nan)
        return BinomialPoint(deviance, gradient, u, eta, elimination)

    def _find_modes(self, offset: Vector, factors: list[Vector]) -> tuple[Vector, Vector, Elimination]:
        effects = self.effects
        u, eta = self._start_modes(offset, factors)
        value, close = self._penalized(u, eta), False
        for _ in range(MODE_STEPS):
            mean = expit(eta)
            weights = self.trials * mean * (1.0 - mean)
            elimination = Elimination(effects, cross_products(effects, weights), factors)
            if close:
                self._u = u
                return u, eta, elimination
            residual = (self.hits - self.trials * mean)[:, None]
            slope = elimination.times_factor(effects.totals(residual), transposed=True) - u
            step = elimination.solve(slope)
            # Newton's method squares the error, so one more step from here reaches rounding error.
            close = float((slope * step).sum()) < MODE_GOAL
            for halving in range(HALVINGS):
                new_u = u + step / 2.0**halving
                new_eta = offset + effects.spread(elimination.times_factor(new_u)[:, 0])
                new_value = self._penalized(new_u, new_eta)
                if new_value <= value + 1e-10 * (1.0 + abs(value)):
                    break
            u, eta, value = new_u, new_eta, new_value
        raise NotPossible(
            "The conditional modes were not found; rescale the predictors or simplify the model."
        )

    def _start_modes(self, offset: Vector, factors: list[Vector]) -> tuple[Vector, Vector]:
        """The last modes, or zero where those are worse."""
        zero = np.zeros_like(self._u)
        pieces, start = [], 0
        for block, factor in zip(self.effects.blocks, factors, strict=True):
            own = self._u[start : start + block.size].reshape(-1, block.width)
            pieces.append((own @ factor.T).ravel())
            start += block.size
        eta = offset + self.effects.spread(np.concatenate(pieces))
        if self._penalized(self._u, eta) <= self._penalized(zero, offset):
            return self._u, eta
        return zero, offset

    def _penalized(self, u: Vector, eta: Vector) -> float:
        # log(1 + exp(eta)), about twice as fast as logaddexp.
        soft = np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))
        fit = float(self.hits @ eta - self.trials @ soft)
        return -2.0 * fit + float((u**2).sum())

    def _gradient(self, u: Vector, eta: Vector, elimination: Elimination) -> Vector:
        effects = self.effects
        mean = expit(eta)
        weights = self.trials * mean * (1.0 - mean)
        residual = self.hits - self.trials * mean
        bend = leverages(elimination) * weights * (1.0 - 2.0 * mean)
        pull = elimination.times_factor(effects.totals(bend[:, None]), transposed=True)
        adjoint = elimination.solve(pull)
        moved = effects.spread(elimination.times_factor(adjoint)[:, 0])
        rows = -2.0 * residual + bend - weights * moved
        totals = effects.totals(np.column_stack([rows, residual]))
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
        return np.concatenate([in_theta, self.basis.T @ rows])


def log_coefficients(hits: Vector, trials: Vector) -> float:
    """Sum of the logarithms of the binomial coefficients."""
    return float((gammaln(trials + 1.0) - gammaln(hits + 1.0) - gammaln(trials - hits + 1.0)).sum())


def _variance(eta: Vector) -> Vector:
    mean = expit(eta)
    return np.asarray(mean * (1.0 - mean))
