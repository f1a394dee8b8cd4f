"""Ordered categories with flexible thresholds, row by row: P(y ≤ j) = F(threshold_j - predictor).

With a and b the thresholds above and below a row's category, less its predictor, the row's likelihood is
P = F(a) - F(b). All derivatives are sums of g = f/P at a and at b times a polynomial of the link.
The search runs over the lowest threshold and the logarithms of the gaps, so that thresholds never cross.
Reference: Christensen (2018), Cumulative link models for ordinal regression with the R package ordinal.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import log, pi
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_ndtr

from felicity.stats.frames import Codes, Vector

NEWTON_STEPS = 100
NEWTON_GOAL = 1e-16
HALVINGS = 40
# Beyond this span of the predictor, in standard deviations of the link, an estimate may be infinite.
FAR = 5.0


@dataclass(frozen=True)
class Link:
    """A symmetric distribution: log F, log f, f'/f, f''/f, and the variance of the latent residual."""

    name: str
    log_cdf: Callable[[Vector], Vector]
    log_density: Callable[[Vector], Vector]
    first: Callable[[Vector], Vector]
    second: Callable[[Vector], Vector]
    variance: float


def _logistic_second(z: Vector) -> Vector:
    mean = expit(z)
    return np.asarray(1.0 - 6.0 * mean * (1.0 - mean))


LINKS = {
    "logit": Link(
        "logit",
        log_expit,
        lambda z: log_expit(z) + log_expit(-z),
        lambda z: 1.0 - 2.0 * expit(z),
        _logistic_second,
        pi**2 / 3.0,
    ),
    "probit": Link(
        "probit",
        log_ndtr,
        lambda z: -0.5 * z**2 - 0.5 * log(2.0 * pi),
        lambda z: -z,
        lambda z: z**2 - 1.0,
        1.0,
    ),
}


@dataclass(frozen=True)
class CumulativeRows:
    """Categories at given thresholds minus the fixed part of the predictor; infinite at the ends.

    The last results are cached, since derivatives and gradients are needed one after the other.
    """

    link: Link
    above: Vector
    below: Vector
    response: "CumulativeResponse"
    thresholds: Vector
    last: dict[str, tuple[Vector, Any]] = field(default_factory=dict, repr=False, compare=False)

    def log_likelihood(self, random: Vector) -> float:
        """Sum of the log probabilities of the categories that were given."""
        return float(self.log_probabilities(random).sum())

    def log_probabilities(self, random: Vector) -> Vector:
        """log(F(a) - F(b)) per row, from the smaller tail."""
        return np.asarray(self._kept("log_p", random, self._log_probabilities))

    def _log_probabilities(self, random: Vector) -> Vector:
        a, b = self.above - random, self.below - random
        flip = a + b > 0
        high, low = np.where(flip, -b, a), np.where(flip, -a, b)
        log_high = self.link.log_cdf(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = self.link.log_cdf(low) - log_high
            return np.asarray(np.where(gap < 0, log_high + np.log(-np.expm1(gap)), -np.inf))

    def parts(self, random: Vector) -> "Derivatives":
        """The components of the derivatives."""
        derivatives: Derivatives = self._kept("parts", random, self._parts)
        return derivatives

    def _kept(self, name: str, random: Vector, compute: Callable[[Vector], Any]) -> Any:
        if name not in self.last or self.last[name][0] is not random:
            self.last[name] = (random, compute(random))
        return self.last[name][1]

    def _parts(self, random: Vector) -> "Derivatives":
        log_p = self.log_probabilities(random)
        return Derivatives(*(self._end(end - random, log_p) for end in (self.above, self.below)))

    def _end(self, z: Vector, log_p: Vector) -> tuple[Vector, Vector, Vector]:
        inside = np.isfinite(z)
        at = np.where(inside, z, 0.0)
        g = np.where(inside, np.exp(self.link.log_density(at) - log_p), 0.0)
        return g, g * self.link.first(at), g * self.link.second(at)

    def score_and_weight(self, random: Vector) -> tuple[Vector, Vector]:
        """First derivative in the predictor, and minus the second."""
        d = self.parts(random)
        return -d.s, d.s**2 - d.d1

    def weight_derivative(self, random: Vector) -> Vector:
        """Derivative of the weight in the predictor."""
        d = self.parts(random)
        return np.asarray(2.0 * d.s**3 - 3.0 * d.s * d.d1 + d.d2)

    def gradient_in_gamma(self, random: Vector, leverage: Vector, moved: Vector) -> Vector:
        """Gradient in gamma, through the thresholds and the predictor."""
        d = self.parts(random)
        in_above = -2.0 * d.g_a + leverage * (2.0 * d.s * d.s_a - d.d1_a) - moved * d.s_a
        in_below = 2.0 * d.g_b + leverage * (2.0 * d.s * d.s_b - d.d1_b) - moved * d.s_b
        return self.response.gamma_gradient(in_above, in_below, self.thresholds)


class Derivatives:
    """g, g' and g'' (f, f', f'' over P) at both ends, and the derivatives of log P they make.

    s, d1, d2: the differences between the ends; s is the slope of log P when both ends rise together.
    s_a, d1_a: derivatives of s and d1 in the upper end alone; s_b, d1_b: in the lower end.
    """

    def __init__(self, a: tuple[Vector, Vector, Vector], b: tuple[Vector, Vector, Vector]) -> None:
        (self.g_a, self.g1_a, g2_a), (self.g_b, self.g1_b, g2_b) = a, b
        self.s, self.d1, self.d2 = self.g_a - self.g_b, self.g1_a - self.g1_b, g2_a - g2_b
        self.s_a, self.d1_a = self.g1_a - self.s * self.g_a, g2_a - self.d1 * self.g_a
        self.s_b, self.d1_b = self.s * self.g_b - self.g1_b, self.d1 * self.g_b - g2_b


class CumulativeResponse:
    """Category codes 0, 1, ... and a fixed design without intercept.

    The design is centred and made orthonormal inside; `natural` gives thresholds and effects as R has them.
    The regression without random effects is fitted on construction and is where gamma is zero.
    """

    def __init__(self, codes: Codes, n_levels: int, x: Vector, link: Link) -> None:
        self.codes, self.n_thresholds, self.link = codes, n_levels - 1, link
        self.center = x.mean(axis=0)
        basis, r = np.linalg.qr(x - self.center)
        self.basis = basis * np.sqrt(len(x))
        self.to_beta = np.linalg.inv(r) * np.sqrt(len(x))
        self.start, information = self._fit_without_random()
        jacobian = self._gap_jacobian(self.start[: self.n_thresholds])
        scaled = jacobian.T @ information @ jacobian
        self.scaling = np.linalg.inv(np.linalg.cholesky(scaled)).T
        self.start_covariance: Vector = np.asarray(np.linalg.inv(information), np.float64)

    @property
    def is_far(self) -> bool:
        """Whether the regression without random effects went so far that separation must be checked for."""
        span = float(np.ptp(self.basis @ self.start[self.n_thresholds :]))
        return bool(span > FAR * self.link.variance**0.5)

    @property
    def size(self) -> int:
        """Thresholds and effects."""
        return self.n_thresholds + int(self.basis.shape[1])

    def at(self, gamma: Vector) -> CumulativeRows:
        """The rows at these coefficients."""
        return self._rows(self.inner(gamma))

    def inner(self, gamma: Vector) -> Vector:
        """Thresholds and effects on the centred, orthonormal design."""
        k = self.n_thresholds
        start = self.start
        moves = self.scaling @ gamma
        gaps = np.diff(start[:k]) * np.exp(moves[1:k])
        return np.concatenate([start[0] + moves[0] + np.append(0.0, np.cumsum(gaps)), start[k:] + moves[k:]])

    def natural(self, inner: Vector) -> Vector:
        """Thresholds and effects on the design as given."""
        return np.asarray(self._natural_map @ inner)

    def covariance(self, of_gamma: Vector, gamma: Vector) -> Vector:
        """Covariance of thresholds and effects from that of gamma."""
        jacobian = self._gap_jacobian(self.inner(gamma)[: self.n_thresholds]) @ self.scaling
        return self.natural_covariance(jacobian @ of_gamma @ jacobian.T)

    def natural_covariance(self, inner: Vector) -> Vector:
        """Covariance of thresholds and effects on the design as given."""
        return np.asarray(self._natural_map @ inner @ self._natural_map.T)

    @cached_property
    def _natural_map(self) -> Vector:
        k = self.n_thresholds
        out = np.eye(self.size)
        out[k:, k:] = self.to_beta
        out[:k, k:] = self.center @ self.to_beta
        return out

    def gamma_gradient(self, in_above: Vector, in_below: Vector, thresholds: Vector) -> Vector:
        """A gradient in gamma from the rows' derivatives in their upper and lower ends."""
        k = self.n_thresholds
        in_thresholds = np.bincount(self.codes, in_above, minlength=k + 1)[:k]
        in_thresholds += np.bincount(self.codes, in_below, minlength=k + 1)[1:]
        in_inner = np.concatenate([in_thresholds, -self.basis.T @ (in_above + in_below)])
        return np.asarray(self.scaling.T @ (self._gap_jacobian(thresholds).T @ in_inner))

    def _gap_jacobian(self, thresholds: Vector) -> Vector:
        """Derivative of (thresholds, effects) in (lowest threshold, logarithms of the gaps, effects)."""
        k = self.n_thresholds
        out = np.eye(self.size)
        out[:k, :k] = np.tril(np.broadcast_to(np.append(1.0, np.diff(thresholds)), (k, k)))
        return out

    def _rows(self, inner: Vector) -> CumulativeRows:
        k = self.n_thresholds
        ends = np.concatenate([[-np.inf], inner[:k], [np.inf]])
        fixed = self.basis @ inner[k:]
        return CumulativeRows(
            self.link, ends[self.codes + 1] - fixed, ends[self.codes] - fixed, self, inner[:k]
        )

    def _fit_without_random(self) -> tuple[Vector, Vector]:
        """Maximum likelihood by Newton's method (the log likelihood is concave), with the information."""
        k, n = self.n_thresholds, len(self.codes)
        none = np.zeros(n)
        shares = np.cumsum(np.bincount(self.codes, minlength=k + 1))[:k] / n
        inner = np.concatenate([np.log(shares / (1.0 - shares)), np.zeros(self.size - k)])
        value = self._rows(inner).log_likelihood(none)
        for _ in range(NEWTON_STEPS):
            gradient, information = self._newton_parts(inner)
            step = np.linalg.lstsq(information, gradient, rcond=None)[0]
            if gradient @ step < NEWTON_GOAL * n:
                return inner, information
            for halving in range(HALVINGS):
                new = inner + step / 2.0**halving
                new_value = self._rows(new).log_likelihood(none)
                if new_value >= value - 1e-12 * abs(value):
                    break
            else:
                break
            inner, value = new, new_value
        return inner, information

    def _newton_parts(self, inner: Vector) -> tuple[Vector, Vector]:
        k, n = self.n_thresholds, len(self.codes)
        d = self._rows(inner).parts(np.zeros(n))
        upper, lower = (np.zeros((n, k + 1)) for _ in range(2))
        upper[np.arange(n), self.codes] = 1.0
        above = self.codes > 0
        lower[above.nonzero()[0], self.codes[above] - 1] = 1.0
        a, b = (np.hstack([part[:, :k], -self.basis]) for part in (upper, lower))
        # The ends at infinity have g = 0, so their rows of the design do not matter.
        aa, bb, ab = d.g_a**2 - d.g1_a, d.g_b**2 + d.g1_b, -d.g_a * d.g_b
        cross = a.T @ (ab[:, None] * b)
        information = a.T @ (aa[:, None] * a) + b.T @ (bb[:, None] * b) + cross + cross.T
        return a.T @ d.g_a - b.T @ d.g_b, information
