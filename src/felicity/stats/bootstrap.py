"""Bootstrap intervals of paired differences, by item or by suite.

The bootstrap gives the standard error; Student's t with one degree of freedom less than there are
independent units gives the reach, so that few suites make wide intervals.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Vector
from felicity.stats.pairing import Pairs

DRAWS = 5_000
CHUNK = 500
DISTINCT_UP_TO = 100


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap standard error and interval; units are items or clusters."""

    estimate: float
    se: float
    low: float
    high: float
    units: int


def bootstrap_difference(pairs: Pairs, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Interval of the difference in accuracy; whole clusters are drawn again where there are any.

    Raises BadInput for fewer than two items or clusters.
    """
    return bootstrap_mean(pairs.differences, clusters=pairs.clusters, level=level, draws=draws, seed=seed)


def bootstrap_mean(
    values: Vector,
    *,
    clusters: Codes | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Interval of a mean over items, drawn again singly or by cluster."""
    if clusters is None:
        sums, sizes, times = _distinct(values)
    else:
        sums = np.bincount(clusters, values).astype(np.float64)
        sizes = np.bincount(clusters).astype(np.float64)
        times = np.ones(len(sums))
    units = int(times.sum())
    if units < 2:
        raise BadInput("A bootstrap needs at least two items, or two clusters of items.")
    rng = np.random.default_rng(seed)
    means = []
    for start in range(0, draws, CHUNK):
        counts = rng.multinomial(units, times / units, size=min(CHUNK, draws - start))
        means.append((counts @ sums) / (counts @ sizes))
    # A bootstrap's variance is that of the sample, short by a factor of (k - 1) / k.
    se = float(np.concatenate(means).std() * np.sqrt(units / (units - 1)))
    estimate = float(values.mean())
    reach = float(stats.t.ppf(0.5 + level / 2.0, units - 1)) * se
    return Interval(estimate, se, estimate - reach, estimate + reach, units)


def _distinct(values: Vector) -> tuple[Vector, Vector, Vector]:
    """Equal items are drawn together: their number is what a draw changes."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > DISTINCT_UP_TO:
        return values, np.ones(len(values)), np.ones(len(values))
    return distinct, np.ones(len(distinct)), counts.astype(np.float64)
