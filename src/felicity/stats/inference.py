"""The one inference over suites: shares, and paired differences of shares, with an interval and its p.

Both are score methods on an effective number of answers: Wilson's (1927) interval for a share, Tango's
(1998) for a paired difference, whose test against 0 is McNemar's. If answers come in suites, the variance
between suites gives the effective number, as in surveys (Korn & Graubard 1998; Dean & Pagano 2015), with
Student's t for the critical value. It lies within two limits that hold for any suites: no estimate is surer
than that of independent answers, and none less sure than if every suite were a single answer.

So a hypothesis is rejected if it is rejected over answers and over suites. Every function takes arrays and
works cell by cell, so that the hundreds of cells of a study are one call; nothing is drawn at random.

Throughout, `ratio` is the squared critical value divided by the effective number: an interval has the values
whose squared distance from the estimate is at most `ratio` times the variance of an answer under that value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from felicity.stats.frames import Codes, Vector

# A variance below this is rounding error.
NEGLIGIBLE = 1e-14
HALVINGS = 50


class Clusters(NamedTuple):
    """How clusters of answers spread: the variance of their mean, and Kish's effective number of them.

    Both have one entry per cell. A cell with a single cluster has the number 1 and tells nothing of others.
    """

    variance: Vector
    number: Vector

    @property
    def df(self) -> Vector:
        """Degrees of freedom of the variance; at least 1, though unequal clusters may count as fewer."""
        return np.maximum(self.number - 1.0, 1.0)

    @property
    def several(self) -> np.ndarray:
        """Whether a cell has clusters to generalize over."""
        return np.isfinite(self.variance)


class Estimates(NamedTuple):
    """Estimates with their intervals and two-sided p, one entry per cell."""

    estimate: Vector
    low: Vector
    high: Vector
    p: Vector


def spread_clusters(cell: Codes, sums: Vector, sizes: Vector, cells: int) -> Clusters:
    """The spread of each cell's clusters around the cell's mean, a ratio of sums (Cochran 1977, 6.4).

    One entry per cluster: its cell, the sum of its values, and its weight: its number of answers, or 1 (with
    its mean as the sum) if clusters count alike.
    """
    clusters = np.bincount(cell, minlength=cells)
    # A cell without clusters has no mean; 1 keeps its numbers finite.
    total = np.where(clusters > 0, np.bincount(cell, sizes, minlength=cells), 1.0)
    mean = np.bincount(cell, sums, minlength=cells) / total
    squares = np.bincount(cell, (sums - mean[cell] * sizes) ** 2, minlength=cells)
    many = np.maximum(clusters, 2)
    variance = np.where(clusters > 1, squares / total**2 * many / (many - 1), np.nan)
    squared = np.where(clusters > 0, np.bincount(cell, sizes**2, minlength=cells), 1.0)
    return Clusters(variance, total**2 / squared)


def share_interval(
    share: Vector, answers: Vector, clusters: Sequence[Clusters] = (), *, level: float = 0.95
) -> tuple[Vector, Vector]:
    """The interval of shares of right answers; `clusters` from the finest to the coarsest.

    >>> low, high = share_interval(np.array([0.8]), np.array([10.0]))
    >>> round(float(low[0]), 4), round(float(high[0]), 4)
    (0.4902, 0.9433)
    """
    share = np.asarray(share, dtype=np.float64)
    ratio = _ratio(share * (1.0 - share), answers, clusters, level)
    centre = share + ratio / 2.0
    half_width = np.sqrt(ratio * share * (1.0 - share) + ratio**2 / 4.0)
    low, high = (centre - half_width) / (1.0 + ratio), (centre + half_width) / (1.0 + ratio)
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)


def compare_shares(
    gained: Vector,
    lost: Vector,
    answers: Vector,
    clusters: Sequence[Clusters] = (),
    *,
    level: float = 0.95,
    ends: bool = True,
) -> Estimates:
    """Paired differences of shares: interval and p of the same test.

    gained, lost: the shares of the answers that only the first, and only the second, gets right; a tie
        against a right or wrong answer is half an answer gained or lost. The difference is gained - lost.
    ends: False leaves the interval out (NaN), if only p is asked for.

    >>> found = compare_shares(np.array([0.24]), np.array([0.04]), np.array([50.0]))
    >>> [round(float(values[0]), 4) for values in found]
    [0.2, 0.0611, 0.3447, 0.0075]
    """
    gained, lost = np.asarray(gained, dtype=np.float64), np.asarray(lost, dtype=np.float64)
    difference = gained - lost
    variance = gained + lost - difference**2
    low = high = np.full_like(difference, np.nan)
    if ends:
        ratio = _ratio(variance, answers, clusters, level)
        low, high = (_tango_end(gained, lost, ratio, end) for end in (-1.0, 1.0))
    # Under the hypothesis of no difference an answer's variance is the share of discordant answers.
    discordant = gained + lost
    squared = np.where(discordant > 0.0, difference**2 / np.where(discordant > 0.0, discordant, 1.0), 0.0)
    return Estimates(difference, low, high, _p_value(squared, variance, answers, clusters))


def least_p(answers: Vector | float) -> Vector:
    """The smallest p that so many answers allow: all of them differ in the same direction."""
    return np.asarray(2.0 * ndtr(-np.sqrt(answers)))


def _ratio(variance: Vector, answers: Vector, clusters: Sequence[Clusters], level: float) -> Vector:
    """Squared critical value by effective number, over answers and over every kind of cluster."""
    z = ndtri(0.5 + level / 2.0)
    ratio = np.broadcast_to(z**2 / np.asarray(answers, dtype=np.float64), variance.shape)
    for each in clusters:
        spread = stdtrit(each.df, 0.5 + level / 2.0) ** 2 * _relative(each, variance)
        ratio = np.where(each.several, np.minimum(np.maximum(ratio, spread), z**2 / each.number), ratio)
    return ratio


def _p_value(squared: Vector, variance: Vector, answers: Vector, clusters: Sequence[Clusters]) -> Vector:
    """Two-sided p of squared distances in units of an answer's variance under the hypothesis."""
    p = 2.0 * ndtr(-np.sqrt(squared * answers))
    for each in clusters:
        relative = np.maximum(_relative(each, variance), NEGLIGIBLE)
        over = 2.0 * stdtr(each.df, -np.sqrt(squared / relative))
        single = 2.0 * ndtr(-np.sqrt(squared * each.number))
        p = np.where(each.several, np.minimum(np.maximum(p, over), single), p)
    return np.asarray(p)


def _relative(clusters: Clusters, variance: Vector) -> Vector:
    """The variance of the estimate over clusters in units of an answer's: one by the effective number."""
    spread = np.where(clusters.several, clusters.variance, 0.0)
    defined = (spread > NEGLIGIBLE) & (variance > NEGLIGIBLE)
    return np.where(defined, spread / np.where(defined, variance, 1.0), 0.0)


def _tango_end(gained: Vector, lost: Vector, ratio: Vector, end: float) -> Vector:
    """The last difference towards `end` that is not rejected, by bisection."""
    inside, outside = gained - lost, np.full_like(gained, end)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2.0
        kept = (gained - lost - middle) ** 2 <= ratio * _tango_variance(gained, lost, middle)
        inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
    return inside


def _tango_variance(gained: Vector, lost: Vector, difference: Vector) -> Vector:
    """An answer's variance if the true difference is `difference`, the rest estimated (Tango 1998, eq. 9)."""
    linear = (2.0 - gained + lost) * difference - gained - lost
    constant = lost * difference * (1.0 - difference)
    only_second = (np.sqrt(np.maximum(linear**2 + 8.0 * constant, 0.0)) - linear) / 4.0
    return np.maximum(2.0 * only_second + difference * (1.0 - difference), 0.0)
