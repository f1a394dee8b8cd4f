"""Learning curves: when a suite is reached and held, falls and recoveries, sigmoids, and orders compared.

Answers are a matrix with one row per checkpoint, in training order, and one column per item: 1 right, 0
wrong, 0.5 a tie. Uncertainty comes from drawing items again, the same for all checkpoints, so that what they
share cancels.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from felicity.core.errors import BadInput
from felicity.stats.frames import Vector

DRAWS = 1_000
FEWEST_POINTS = 4
Z_95 = 1.959963984540054
# Points of a curve that was fitted, in terms of the logarithm of the step.
LEAST_SCALE, MOST_SCALE = 0.02, 5.0


@dataclass(frozen=True)
class Reached:
    """The step from which accuracy stays at or above the criterion, None if it does not at the end.

    low, high: 95% of draws, infinite where a draw does not hold it at the end; share: of draws that do.
    """

    step: float | None
    low: float
    high: float
    share: float


def draw_curves(answers: Vector, *, draws: int = DRAWS, seed: int = 0) -> Vector:
    """Accuracy at every checkpoint (columns) for items drawn again with replacement (rows).

    >>> draw_curves(np.array([[0.0, 0.0], [1.0, 1.0]]), draws=2).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    n = answers.shape[1]
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=draws)
    return np.asarray(weights @ answers.T / n)


def find_held(curves: Vector, criterion: float) -> Vector:
    """The place from which each curve (row) stays at or above the criterion; its length if it does not.

    >>> find_held(np.array([[0.5, 0.8, 0.7, 0.9], [0.5, 0.6, 0.9, 0.7]]), 0.75).tolist()
    [3, 4]
    """
    above = curves >= criterion
    held = np.logical_and.accumulate(above[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.where(held[:, -1], held.argmax(axis=1), curves.shape[1]))


def find_reached(
    answers: Vector, steps: Vector, *, criterion: float, draws: int = DRAWS, seed: int = 0
) -> Reached:
    """When a suite is reached and held, with its uncertainty over items."""
    ends = np.append(steps.astype(np.float64), math.inf)
    place = int(find_held(answers.mean(axis=1)[None, :], criterion)[0])
    drawn = np.sort(ends[find_held(draw_curves(answers, draws=draws, seed=seed), criterion)])
    low, high = (float(drawn[round(share * (draws - 1))]) for share in (0.025, 0.975))
    step = None if place == len(steps) else float(steps[place])
    return Reached(step, low, high, float(np.isfinite(drawn).mean()))


@dataclass(frozen=True)
class Dip:
    """A fall and recovery: accuracy before, at the bottom and after, by place, and the smaller of the two.

    p: one-sided, of a depth above 0, for these three checkpoints; they were chosen as the deepest, so p is
    too small by itself and needs to be adjusted over suites.
    """

    before: int
    bottom: int
    after: int
    depth: float
    p: float


def find_dip(answers: Vector) -> Dip | None:
    """The deepest fall with a recovery; None if there is none.

    The depth is the smaller of fall and rise, each tested over the items that both checkpoints answered.
    """
    accuracy = answers.mean(axis=1)
    best: tuple[float, int, int, int] | None = None
    for bottom in range(1, len(accuracy) - 1):
        before = int(accuracy[:bottom].argmax())
        after = bottom + 1 + int(accuracy[bottom + 1 :].argmax())
        depth = float(min(accuracy[before], accuracy[after]) - accuracy[bottom])
        if depth > 0 and (best is None or depth > best[0]):
            best = depth, before, bottom, after
    if best is None:
        return None
    depth, before, bottom, after = best
    p = max(_test_above(answers[side] - answers[bottom]) for side in (before, after))
    return Dip(before, bottom, after, depth, p)


def _test_above(differences: Vector) -> float:
    """One-sided p of a mean difference above 0 over items."""
    spread = differences.std(ddof=1)
    if spread == 0.0:
        return 0.0 if differences.mean() > 0 else 1.0
    return float(stats.norm.sf(differences.mean() / (spread / math.sqrt(len(differences)))))


@dataclass(frozen=True)
class Sigmoid:
    """Accuracy as a sigmoid of the logarithm of the step, from chance to `top`.

    midpoint: the step at which it is halfway, with its 95% interval; r2: the share of variance explained.
    """

    midpoint: float
    low: float
    high: float
    top: float
    scale: float
    r2: float


def fit_sigmoid(accuracy: Vector, steps: Vector, *, chance: float) -> Sigmoid | None:
    """Fit a curve as for age of acquisition (Chang & Bergen 2022); None if it cannot be fitted.

    It cannot with fewer than four checkpoints, with a flat curve, or if the midpoint lies outside them.

    >>> steps = np.array([10.0, 100.0, 1000.0, 10000.0, 100000.0])
    >>> curve = 0.5 + 0.4 / (1 + np.exp(-(np.log10(steps) - 3) / 0.4))
    >>> found = fit_sigmoid(curve, steps, chance=0.5)
    >>> round(found.midpoint), round(found.top, 2)
    (1000, 0.9)
    """
    x = np.log10(np.maximum(steps.astype(np.float64), 1.0))
    if len(x) < FEWEST_POINTS or np.ptp(accuracy) == 0.0 or accuracy.max() <= chance:
        return None

    def curve(at: Vector, top: float, middle: float, scale: float) -> Vector:
        return np.asarray(chance + (top - chance) / (1.0 + np.exp(-(at - middle) / scale)))

    start = (min(float(accuracy.max()), 1.0 - 1e-6), float(np.median(x)), 0.5)
    bounds = ((chance, x[0], LEAST_SCALE), (1.0, x[-1], MOST_SCALE))
    try:
        found, covariance = optimize.curve_fit(curve, x, accuracy, p0=start, bounds=bounds, maxfev=5_000)
    except (RuntimeError, ValueError):
        return None
    top, middle, scale = (float(value) for value in found)
    at_edge = min(middle - x[0], x[-1] - middle) < 1e-6 * max(np.ptp(x), 1.0)
    left = float(((accuracy - curve(x, top, middle, scale)) ** 2).sum())
    error = math.sqrt(covariance[1, 1]) if np.isfinite(covariance[1, 1]) else math.inf
    if at_edge:
        return None
    low, high = (_power(middle + sign * Z_95 * error) for sign in (-1, 1))
    total = float(((accuracy - accuracy.mean()) ** 2).sum())
    return Sigmoid(10.0**middle, low, high, top, scale, 1.0 - left / total)


def _power(exponent: float) -> float:
    return math.inf if exponent > 300 else 0.0 if exponent < -300 else 10.0**exponent


@dataclass(frozen=True)
class OrderAgreement:
    """Kendall's tau-b of two orders of acquisition, with its 95% interval over suites drawn again."""

    tau: float
    low: float
    high: float
    n: int


def compare_orders(first: Vector, second: Vector, *, draws: int = DRAWS, seed: int = 0) -> OrderAgreement:
    """How alike two models order suites by the step at which each is reached; infinite if it is not.

    Raises BadInput for fewer than three suites, or if one order is all ties.
    """
    if len(first) != len(second) or len(first) < 3:
        raise BadInput(f"Orders of {len(first)} and {len(second)} suites; both need the same, at least 3.")
    tau = _kendall(first, second)
    if not math.isfinite(tau):
        raise BadInput("All suites are reached at the same step by one model; their order is not defined.")
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(first), size=(draws, len(first)))
    drawn = [value for one in rows if math.isfinite(value := _kendall(first[one], second[one]))]
    low, high = np.quantile(drawn, [0.025, 0.975]) if drawn else (math.nan, math.nan)
    return OrderAgreement(tau, float(low), float(high), len(first))


def _kendall(first: Vector, second: Vector) -> float:
    return float(stats.kendalltau(stats.rankdata(first), stats.rankdata(second)).statistic)
