"""McNemar's test of two models on the same items, exact and mid-p.

Only items that one model gets right and the other wrong say anything about which is better. Under the
null each such item is a fair coin; the exact p is binomial. Mid-p counts the observed table half, which
keeps the level on average instead of always (Fagerland, Lydersen & Laake 2013).
"""

import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.pairing import Pairs


def mcnemar_p(only_first: int, only_second: int, *, mid: bool = False) -> float:
    """Two-sided p of a table with these discordant counts; 1 where there are none.

    >>> round(mcnemar_p(74, 59), 4)
    0.2246
    """
    if min(only_first, only_second) < 0:
        raise BadInput("A count of items is negative; pass the two discordant counts.")
    n, least = only_first + only_second, min(only_first, only_second)
    tail = float(stats.binom.cdf(least, n, 0.5))
    if mid:
        tail -= 0.5 * float(stats.binom.pmf(least, n, 0.5))
        return 2.0 * tail
    return min(1.0, 2.0 * tail)


def compare_mcnemar(pairs: Pairs) -> pl.DataFrame:
    """One row: accuracies, their difference, discordant counts, exact and mid-p."""
    only_first, only_second = pairs.discordant
    return pl.DataFrame(
        {
            "n": [pairs.n],
            "accuracy_first": [float(pairs.first.mean())],
            "accuracy_second": [float(pairs.second.mean())],
            "difference": [float(pairs.differences.mean())],
            "only_first": [only_first],
            "only_second": [only_second],
            "p_exact": [mcnemar_p(only_first, only_second)],
            "p_mid": [mcnemar_p(only_first, only_second, mid=True)],
            "ties": [pairs.ties],
        }
    )
