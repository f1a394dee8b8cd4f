"""Word times as they were measured: which are outliers, and how well each rater's browser kept time."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

import polars as pl

# Times outside these bounds are no reading (as in the Natural Stories corpus, Futrell et al. 2021).
FASTEST_MS = 100
SLOWEST_MS = 3_000
# Within them, a time is deviant if its logarithm is so many standard deviations from the rater's mean.
MOST_SD = 3.0
# Times are certified if the clock ticks at least this often and hardly any frame was dropped.
COARSEST_CLOCK_MS = 1.0
MOST_DROPPED = 0.01

TIMING: dict[str, Any] = {
    "rater": pl.String,
    "list": pl.String,
    "trials": pl.Int64,
    "measured": pl.Int64,
    "refresh_hz": pl.Float64,
    "frames": pl.Int64,
    "dropped": pl.Int64,
    "dropped_share": pl.Float64,
    "longest_ms": pl.Float64,
    "clock_ms": pl.Float64,
    "certified": pl.Boolean,
}


def mark_outliers(words: pl.DataFrame) -> pl.DataFrame:
    """Word times with a column `outlier`: fast, slow, deviant or empty; nothing is dropped.

    words: rater, rt_ms. The mean and standard deviation of a rater are those of the times within bounds.
    """
    time = pl.col("rt_ms")
    within = time.is_between(FASTEST_MS, SLOWEST_MS)
    # A time of zero has no logarithm; it is out of bounds in any case.
    log = pl.when(within).then(time).log()
    far = ((log - log.mean().over("rater")).abs() > MOST_SD * log.std().over("rater")).fill_null(False)
    kinds = pl.when(time < FASTEST_MS).then(pl.lit("fast")).when(time > SLOWEST_MS).then(pl.lit("slow"))
    return words.with_columns(kinds.when(far).then(pl.lit("deviant")).otherwise(pl.lit("")).alias("outlier"))


def certify_raters(slots: Mapping[str, Any], trials: Iterable[Any]) -> pl.DataFrame:
    """The timing certificate of each rater: refresh rate, dropped frames and clock, over all timed trials.

    A browser measures them while the words are read. Times are certified if that was done in every trial,
    at most 1% of the frames was dropped and the clock ticks at least every millisecond.
    """
    by_slot: dict[str, list[dict[str, Any] | None]] = {}
    for row in trials:
        by_slot.setdefault(row.slot, []).append(row.detail.get("frames"))
    rows = [
        {"rater": slots[slot].rater, "list": slots[slot].list} | _certify(measured)
        for slot, measured in by_slot.items()
    ]
    return pl.DataFrame(rows, schema=TIMING).sort("rater", "list")


def _certify(trials: list[dict[str, Any] | None]) -> dict[str, Any]:
    measured = [one for one in trials if one is not None]
    frames = int(sum(one["frames"] for one in measured))
    dropped = int(sum(one["dropped"] or 0 for one in measured))
    rates = [one["hz"] for one in measured if one["hz"]]
    gaps = [one["longest_ms"] for one in measured if one["longest_ms"] is not None]
    clocks = [one["clock_ms"] for one in measured if one["clock_ms"] is not None]
    share = dropped / (frames + dropped) if frames else None
    complete = len(measured) == len(trials) and len(clocks) == len(trials) and share is not None
    return {
        "trials": len(trials),
        "measured": len(measured),
        "refresh_hz": round(median(rates), 2) if rates else None,
        "frames": frames,
        "dropped": dropped,
        "dropped_share": round(share, 5) if share is not None else None,
        "longest_ms": max(gaps) if gaps else None,
        "clock_ms": max(clocks) if clocks else None,
        "certified": complete and (share or 0.0) <= MOST_DROPPED and max(clocks) <= COARSEST_CLOCK_MS,
    }
