"""Nakagawa's R²: the share of variance that the fixed effects explain, and with the random ones.

Marginal = var(fixed) / total, conditional = (var(fixed) + var(random)) / total; a random slope counts
with its variance averaged over the rows (Johnson 2014). The residual of a logit model is π²/3.
Reference: Nakagawa, Johnson & Schielzeth (2017), J. R. Soc. Interface 14.
"""

from math import pi

import numpy as np

from felicity.stats.frames import Vector
from felicity.stats.mixed.random_effects import RandomEffects
from felicity.stats.mixed.variance_tables import covariances

LOGIT_VARIANCE = pi**2 / 3.0


def nakagawa_r2(
    fixed: Vector, effects: RandomEffects, theta: Vector, sigma: float | None, weights: Vector | None = None
) -> tuple[float, float]:
    """Marginal and conditional R² from the linear predictor of the fixed effects.

    sigma: the residual's, None for a logit model. weights: how many rows each value stands for.
    """
    of_fixed = _variance(fixed, weights)
    of_random = 0.0
    for block, covariance in zip(effects.blocks, covariances(effects, theta, sigma or 1.0), strict=True):
        z = block.z * block.scale
        of_random += float(np.average(np.einsum("ni,ij,nj->n", z, covariance, z), weights=weights))
    total = of_fixed + of_random + (LOGIT_VARIANCE if sigma is None else sigma**2)
    return of_fixed / total, (of_fixed + of_random) / total


def _variance(values: Vector, weights: Vector | None) -> float:
    n = len(values) if weights is None else float(weights.sum())
    mean = np.average(values, weights=weights)
    return float(np.average((values - mean) ** 2, weights=weights) * n / (n - 1.0))
