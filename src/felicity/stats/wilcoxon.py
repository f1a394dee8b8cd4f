"""Wilcoxon's signed-rank test: do paired values differ, whatever their distribution?"""

from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.correlation import Values
from felicity.stats.frames import numbers

SIDES = ("two-sided", "greater", "less")


def signed_rank(
    x: Values, y: Values, *, alternative: Literal["two-sided", "greater", "less"] = "two-sided"
) -> pl.DataFrame:
    """One row: n (pairs that differ), zeros, w (rank sum of positive differences), p, effect.

    Pairs without difference are dropped (Wilcoxon 1945). p is exact up to 50 pairs without ties, else
    normal with the variance corrected for ties. effect is the matched-pairs rank-biserial correlation.

    Raises BadInput for unequal lengths and where no pair differs.
    """
    if alternative not in SIDES:
        raise UnknownName("alternative", str(alternative), SIDES)
    a, b = numbers(x, "x"), numbers(y, "y")
    if len(a) != len(b):
        raise BadInput(f"x has {len(a)} values and y {len(b)}; a signed-rank test needs pairs.")
    differences = a - b
    kept = differences[differences != 0.0]
    if not len(kept):
        raise BadInput("No pair differs, so there is nothing to test.")
    ranks = stats.rankdata(np.abs(kept))
    positive = float(ranks[kept > 0].sum())
    tied = len(np.unique(np.abs(kept))) < len(kept)
    method = "exact" if len(kept) <= 50 and not tied else "approx"
    found = stats.wilcoxon(kept, alternative=alternative, method=method)
    row = {
        "n": len(kept),
        "zeros": len(a) - len(kept),
        "w": positive,
        "p": float(found.pvalue),
        "alternative": alternative,
        "method": method,
        "effect": 2.0 * positive / float(ranks.sum()) - 1.0,
    }
    return pl.DataFrame([row])
