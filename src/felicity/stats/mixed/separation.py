"""Ordinary logistic regression for a start, and the refusal of data that have no finite answer.

Where a direction of the predictors splits hits from misses, its coefficient has no maximum. Such a
direction is looked for by linear programming (Konis 2007) when the regression runs away.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit

from felicity.core.errors import BadInput
from felicity.stats.frames import Vector

FAR = 10.0
STEPS = 40


def start_logistic(hits: Vector, trials: Vector, x: Vector, names: tuple[str, ...]) -> Vector:
    """Coefficients of the logistic regression without random effects.

    Raises BadInput naming a predictor that separates hits from misses.
    """
    eta = np.log((hits + 0.5) / (trials - hits + 0.5))
    beta = np.zeros(x.shape[1])
    for _ in range(STEPS):
        mean = expit(eta)
        weights = trials * np.maximum(mean * (1.0 - mean), 1e-10)
        working = eta + (hits - trials * mean) / weights
        root = np.sqrt(weights)
        new = np.linalg.lstsq(x * root[:, None], working * root, rcond=None)[0]
        done = np.abs(new - beta).max() < 1e-6 * (1.0 + np.abs(new).max())
        beta, eta = new, np.clip(x @ new, -30.0, 30.0)
        if done:
            break
    if np.abs(eta).max() > FAR:
        _refuse_separation(hits, trials, x, names)
    return beta


def _refuse_separation(hits: Vector, trials: Vector, x: Vector, names: tuple[str, ...]) -> None:
    scale = np.abs(x).max(axis=0)
    signed = x / scale
    mixed = (hits > 0) & (hits < trials)
    sides = np.where(hits == trials, 1.0, -1.0)[~mixed, None] * signed[~mixed]
    pure = np.unique(sides, axis=0)
    both = np.unique(signed[mixed], axis=0)
    found = linprog(
        -pure.sum(axis=0),
        A_ub=-pure,
        b_ub=np.zeros(len(pure)),
        A_eq=both if len(both) else None,
        b_eq=np.zeros(len(both)) if len(both) else None,
        bounds=[(-1.0, 1.0)] * x.shape[1],
    )
    if found.status == 0 and -found.fun > 1e-6:
        direction = np.abs(found.x)
        candidates = [i for i, name in enumerate(names) if name != "(Intercept)"] or [0]
        culprit = max(candidates, key=lambda i: direction[i])
        raise BadInput(
            f"'{names[culprit]}' separates hits from misses perfectly, so its coefficient is infinite; "
            f"leave it out or merge its levels."
        )
