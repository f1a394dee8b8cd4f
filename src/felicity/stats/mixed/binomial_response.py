"""Counts of hits with a logit link, row by row, for the Laplace approximation."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln

from felicity.stats.frames import Vector


class BinomialResponse:
    """Counts and their fixed design; beta = start_beta + scaling @ gamma."""

    def __init__(self, hits: Vector, trials: Vector, x: Vector, start_beta: Vector) -> None:
        self.hits, self.trials, self.x, self.start_beta = hits, trials, x, start_beta
        mean = expit(x @ start_beta)
        weights = np.sqrt(trials * mean * (1.0 - mean))
        self.scaling = np.linalg.inv(np.linalg.qr(x * weights[:, None], mode="r"))
        self.basis = x @ self.scaling

    @property
    def size(self) -> int:
        """Number of fixed effects."""
        return int(self.x.shape[1])

    def beta(self, gamma: Vector) -> Vector:
        """The fixed effects that gamma stands for."""
        return self.start_beta + self.scaling @ gamma

    def covariance(self, of_gamma: Vector) -> Vector:
        """Covariance of the fixed effects."""
        return np.asarray(self.scaling @ of_gamma @ self.scaling.T)

    def at(self, gamma: Vector) -> "BinomialRows":
        """The rows at these coefficients."""
        return BinomialRows(self, self.x @ self.beta(gamma))


@dataclass(frozen=True)
class BinomialRows:
    """Counts at a given fixed part of the predictor."""

    response: BinomialResponse
    fixed: Vector

    def log_likelihood(self, random: Vector) -> float:
        """Sum over the rows, without the binomial coefficients."""
        eta = self.fixed + random
        # log(1 + exp(eta)), about twice as fast as logaddexp.
        soft = np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))
        return float(self.response.hits @ eta - self.response.trials @ soft)

    def score_and_weight(self, random: Vector) -> tuple[Vector, Vector]:
        """Hits above expectation, and the binomial variance."""
        mean = expit(self.fixed + random)
        trials = self.response.trials
        return self.response.hits - trials * mean, trials * mean * (1.0 - mean)

    def weight_derivative(self, random: Vector) -> Vector:
        """Derivative of the variance."""
        mean = expit(self.fixed + random)
        return np.asarray(self.response.trials * mean * (1.0 - mean) * (1.0 - 2.0 * mean))

    def gradient_in_gamma(self, random: Vector, leverage: Vector, moved: Vector) -> Vector:
        """Gradient in gamma, through the predictor alone."""
        residual, weights = self.score_and_weight(random)
        return np.asarray(
            self.response.basis.T
            @ (-2.0 * residual + leverage * self.weight_derivative(random) - weights * moved)
        )


def log_coefficients(hits: Vector, trials: Vector) -> float:
    """Sum of the logarithms of the binomial coefficients."""
    return float((gammaln(trials + 1.0) - gammaln(hits + 1.0) - gammaln(trials - hits + 1.0)).sum())
