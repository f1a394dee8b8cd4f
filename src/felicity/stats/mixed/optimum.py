"""Minimizing a smooth criterion with its gradient, to more digits than anyone prints.

A quasi-Newton search finds the valley, Newton steps with a Hessian from central differences of the
gradient find its floor. Covariance factors are searched without bounds: a deviance is the same for
either sign of a factor's column, so a variance of zero is an ordinary minimum, not a corner.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from felicity.stats.frames import Vector

Criterion = Callable[[Vector], tuple[float, Vector]]

GRADIENT_GOAL = 1e-6
HESSIAN_STEP = 1e-4
NEWTON_STEPS = 8
SADDLE = -1e-4
ESCAPE = 0.1


@dataclass(frozen=True)
class Optimum:
    """Where a criterion is least; `gradient` is the largest slope left, for a warning."""

    x: Vector
    value: float
    gradient: float
    hessian: Vector
    evaluations: int


def find_minimum(criterion: Criterion, start: Vector) -> Optimum:
    """The minimum nearest to `start`, saddle points left behind."""
    counted = _Counted(criterion)
    x = start
    for _ in range(3):
        solution = minimize(counted, x, jac=True, method="BFGS", options={"gtol": 1e-3, "maxiter": 500})
        x, value, gradient, hessian = _polish(counted, solution.x)
        curvature, directions = np.linalg.eigh(hessian)
        if curvature[0] > SADDLE * max(1.0, curvature[-1]):
            break
        x = x + ESCAPE * directions[:, 0]
    return Optimum(x, value, float(np.abs(gradient).max()), hessian, counted.calls)


class _Counted:
    def __init__(self, criterion: Criterion) -> None:
        self.criterion = criterion
        self.calls = 0

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        self.calls += 1
        return self.criterion(x)


def _polish(criterion: Criterion, x: Vector) -> tuple[Vector, float, Vector, Vector]:
    value, gradient = criterion(x)
    hessian = difference_hessian(lambda at: criterion(at)[1], x)
    for _ in range(NEWTON_STEPS):
        if np.abs(gradient).max() < GRADIENT_GOAL:
            break
        step = -_damped_inverse(hessian) @ gradient
        new_value, new_gradient = criterion(x + step)
        if not new_value < value + 1e-9 * (1.0 + abs(value)):
            break
        moved = np.abs(step).max() > HESSIAN_STEP
        x, value, gradient = x + step, new_value, new_gradient
        if moved:
            hessian = difference_hessian(lambda at: criterion(at)[1], x)
    return x, value, gradient, hessian


def _damped_inverse(hessian: Vector) -> Vector:
    values, vectors = np.linalg.eigh(hessian)
    safe = np.maximum(np.abs(values), 1e-8 * max(1.0, float(np.abs(values).max())))
    return np.asarray((vectors / safe) @ vectors.T)


def difference_hessian(gradient: Callable[[Vector], Vector], x: Vector) -> Vector:
    """Hessian by central differences of an exact gradient."""
    columns = []
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = HESSIAN_STEP * max(1.0, abs(x[i]))
        columns.append((gradient(x + step) - gradient(x - step)) / (2.0 * step[i]))
    hessian = np.array(columns)
    return np.asarray((hessian + hessian.T) / 2.0)
