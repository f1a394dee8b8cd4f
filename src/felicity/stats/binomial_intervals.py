"""A proportion with an exact interval, and the three ways to count a tie."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Vector, numbers
from felicity.stats.pairing import TIE, Ties


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion (Clopper & Pearson 1934): never too narrow, often too wide.

    >>> tuple(round(end, 4) for end in clopper_pearson(8, 10))
    (0.4439, 0.9748)

    Raises BadInput for counts that are no counts.
    """
    if n < 1 or not 0 <= successes <= n:
        raise BadInput(f"{successes} successes in {n} trials is no proportion.")
    alpha = 1.0 - level
    low = float(stats.beta.ppf(alpha / 2.0, successes, n - successes + 1)) if successes else 0.0
    high = float(stats.beta.ppf(1.0 - alpha / 2.0, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


def proportion_right(
    answers: Sequence[float] | pl.Series | Vector, *, ties: Ties = "wrong", level: float = 0.95
) -> pl.DataFrame:
    """One row: n, ties, the share of right answers with its exact interval.

    ties: an answer of 0.5 is counted as 'wrong', as 'half' (the interval is then that of the rounded
        number of successes), or 'drop'ped.
    """
    values = numbers(answers, "answers")
    if not np.isin(values, (0.0, TIE, 1.0)).all():
        raise BadInput("An answer must be 1 (right), 0 (wrong) or 0.5 (a tie).")
    if ties not in ("wrong", "half", "drop"):
        raise UnknownName("treatment of ties", str(ties), ("wrong", "half", "drop"))
    tied = values == TIE
    kept = values[~tied] if ties == "drop" else values
    if not len(kept):
        raise BadInput("Every answer is a tie, so dropping ties leaves nothing.")
    right = float(kept.sum()) if ties == "half" else float((kept == 1.0).sum())
    low, high = clopper_pearson(round(right), len(kept), level=level)
    row = {"n": len(kept), "ties": int(tied.sum()), "share": right / len(kept), "low": low, "high": high}
    return pl.DataFrame([row])
