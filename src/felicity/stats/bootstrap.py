"""The bootstrap of a mean, by item or by cluster.

The bootstrap gives the standard error; Student's t with one degree of freedom fewer than there are
independent units gives the critical value, so that few suites make wide intervals.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Vector

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


@lru_cache(maxsize=8)
def count_draws(count: int, *, seed: int, draws: int = DRAWS) -> Vector:
    """How often each cluster is in each draw, one row per draw."""
    chosen = np.random.default_rng(seed).integers(count, size=(draws, count))
    flat = (np.arange(draws)[:, None] * count + chosen).ravel()
    return np.bincount(flat, minlength=draws * count).reshape(draws, count).astype(np.float64)


def bootstrap_mean(
    values: Vector,
    *,
    clusters: Codes | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Interval of a mean over items, resampled singly or by cluster."""
    units = len(values) if clusters is None else int(clusters.max(initial=-1)) + 1
    if units < 2:
        raise BadInput("A bootstrap needs at least two items, or two clusters of items.")
    if clusters is None:
        means = _draw_items(values, seed=seed, draws=draws)
    else:
        times = count_draws(units, seed=seed, draws=draws)
        means = (times @ np.bincount(clusters, values)) / (times @ np.bincount(clusters))
    # A bootstrap's variance is that of the sample, too small by a factor of (k - 1) / k.
    se = float(means.std() * np.sqrt(units / (units - 1)))
    estimate = float(values.mean())
    half_width = float(stats.t.ppf(0.5 + level / 2.0, units - 1)) * se
    return Interval(estimate, se, estimate - half_width, estimate + half_width, units)


def _draw_items(values: Vector, *, seed: int, draws: int) -> Vector:
    """The mean of each draw of single items."""
    sums, sizes, times = _distinct(values)
    units = int(times.sum())
    rng = np.random.default_rng(seed)
    means = []
    for start in range(0, draws, CHUNK):
        counts = rng.multinomial(units, times / units, size=min(CHUNK, draws - start))
        means.append((counts @ sums) / (counts @ sizes))
    return np.concatenate(means)


def _distinct(values: Vector) -> tuple[Vector, Vector, Vector]:
    """Equal items are resampled together, since only their number changes."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > DISTINCT_UP_TO:
        return values, np.ones(len(values)), np.ones(len(values))
    return distinct, np.ones(len(distinct)), counts.astype(np.float64)
