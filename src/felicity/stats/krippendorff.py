"""Krippendorff's alpha: agreement of any number of raters, any kind of scale, gaps allowed.

alpha = 1 - observed / expected disagreement, from the coincidences of values within items.
Reference: Krippendorff (2011), Computing Krippendorff's alpha-reliability.
"""

from typing import Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Frame, Vector, as_polars, column, level_codes

Scale = Literal["nominal", "ordinal", "interval", "ratio"]
SCALES = ("nominal", "ordinal", "interval", "ratio")


def krippendorff_alpha(
    ratings: Frame,
    *,
    item: str = "item",
    rating: str = "rating",
    scale: Scale = "interval",
    level: float = 0.95,
    draws: int = 1_000,
    seed: int = 0,
) -> pl.DataFrame:
    """One row: items, answers, alpha, low, high, from one row per answer.

    Items with one answer say nothing and are left out. The interval is a bootstrap over items.

    Raises BadInput where no item has two answers, or all answers are the same.
    """
    if scale not in SCALES:
        raise UnknownName("scale", str(scale), SCALES)
    counts, values = _count_values(as_polars(ratings), item, rating, scale)
    alpha = _alpha(counts, values, scale)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        drawn = counts[rng.integers(0, len(counts), len(counts))]
        if (drawn.sum(axis=0) > 0).sum() > 1:
            found.append(_alpha(drawn, values, scale))
    low, high = np.quantile(found, [0.5 - level / 2.0, 0.5 + level / 2.0]) if found else (np.nan, np.nan)
    row = {"items": len(counts), "answers": int(counts.sum()), "scale": scale, "alpha": alpha}
    return pl.DataFrame([row | {"low": float(low), "high": float(high)}])


def _count_values(frame: pl.DataFrame, item: str, rating: str, scale: Scale) -> tuple[Vector, Vector]:
    """How often each item got each value, and the values as numbers."""
    items, _ = level_codes(column(frame, item))
    given = column(frame, rating)
    if scale != "nominal" and not given.dtype.is_numeric():
        raise BadInput(f"Column '{rating}' is not numeric; only the nominal scale takes names.")
    codes, names = level_codes(given)
    values = np.sort(given.unique().to_numpy()).astype(float) if scale != "nominal" else np.arange(len(names))
    counts = np.zeros((int(items.max()) + 1, len(names)))
    np.add.at(counts, (items, codes), 1.0)
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        raise BadInput("No item has two answers, so nothing can agree.")
    if (counts.sum(axis=0) > 0).sum() < 2:
        raise BadInput("All answers are the same, so agreement by chance is certain.")
    return counts, np.asarray(values, dtype=np.float64)


def _alpha(counts: Vector, values: Vector, scale: Scale) -> float:
    per_item = counts.sum(axis=1)
    weights = counts / (per_item - 1.0)[:, None]
    coincidences = weights.T @ counts - np.diag(weights.sum(axis=0))
    totals = coincidences.sum(axis=0)
    distance = _distance(values, totals, scale)
    n = float(totals.sum())
    observed = float((coincidences * distance).sum())
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1.0)
    return 1.0 - observed / expected


def _distance(values: Vector, totals: Vector, scale: Scale) -> Vector:
    if scale == "nominal":
        return 1.0 - np.eye(len(values))
    if scale == "ordinal":
        # Squared number of answers between two values, their own counted half.
        ranks = np.cumsum(totals) - totals / 2.0
        return np.asarray(np.subtract.outer(ranks, ranks) ** 2)
    apart = np.subtract.outer(values, values)
    if scale == "interval":
        return np.asarray(apart**2)
    total = np.add.outer(values, values)
    return np.asarray(np.divide(apart, total, out=np.zeros_like(apart), where=total != 0) ** 2)
