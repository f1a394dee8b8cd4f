"""The suites that gain and lose most in context."""

import numpy as np
import polars as pl

from felicity.core.schemas import conform
from felicity.core.sweep import BASELINE, FROM_KINDS, UNPERTURBED
from felicity.studies.context.intervals import difference_interval, mark_clusters, reach_over_clusters, widen
from felicity.studies.context.pairing import ITEM, pair_with_baseline
from felicity.studies.context.tables import GAINS, order_kinds, order_seen

CELL = ["model", "kind", "suite", "phenomenon"]


def rank_gains(judgements: pl.DataFrame, *, perturbation: str = UNPERTURBED, seed: int = 0) -> pl.DataFrame:
    """Rows of GAINS, the largest gain of each model and kind first.

    The change at each length is averaged over lengths; the SD is that of those changes, all of them being
    at hand (population SD). The interval is over items (or the contexts they share), each with its mean
    change over lengths.

    Raises BadInput as `pair_with_baseline` does.
    """
    units = pair_with_baseline(judgements).filter(
        pl.col("kind") != BASELINE, ~pl.col("kind").is_in(list(FROM_KINDS)), perturbation=perturbation
    )
    lengths = units.group_by(*CELL, "length").agg(pl.col("delta").mean())
    changes = lengths.group_by(CELL).agg(
        pl.len().alias("lengths"),
        pl.col("delta").mean().alias("mean"),
        pl.col("delta").std(ddof=0).alias("sd"),
    )
    gains = changes.join(_over_items(units, seed), on=CELL)
    # The mean over lengths and that over items differ where not every item has every length.
    shift = pl.col("mean") - pl.col("item_mean")
    ends = [(pl.col(name) + shift).clip(-1.0, 1.0).alias(name) for name in ("low", "high")]
    ordered = gains.with_columns(ends).sort(
        order_seen(units, "model"), order_kinds(), pl.col("mean").neg(), "suite", maintain_order=True
    )
    return conform(ordered, GAINS)


def pick_extremes(gains: pl.DataFrame, count: int = 5) -> pl.DataFrame:
    """The `count` suites that gain most and lose most of each model and kind, with the column `side`.

    A suite whose accuracy does not rise is no gainer, and one whose accuracy does not fall no loser.
    """
    by = ["model", "kind"]
    rising = gains.filter(pl.col("mean") > 0).sort("mean", descending=True, maintain_order=True)
    falling = gains.filter(pl.col("mean") < 0).sort("mean", maintain_order=True)
    sides = [
        part.group_by(by, maintain_order=True).head(count).with_columns(pl.lit(side).alias("side"))
        for part, side in ((rising, "gain"), (falling, "loss"))
    ]
    return pl.concat(sides).sort(order_seen(gains, "model"), order_kinds(), "side", maintain_order=True)


def _over_items(units: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Number of items, mean and interval of each suite's items' mean changes."""
    items = units.group_by(*CELL, *(name for name in ITEM if name not in CELL), maintain_order=True).agg(
        pl.col("delta").mean(), pl.col("series").first()
    )
    marked = mark_clusters(items, CELL)
    cells = (
        marked.group_by("cell", *CELL)
        .agg(
            pl.len().alias("n"),
            pl.col("delta").mean().alias("item_mean"),
            pl.col("delta").sum().alias("total"),
            pl.col("delta").pow(2).sum().alias("squares"),
        )
        .sort("cell")
    )
    floor = difference_interval(
        cells["total"].to_numpy(), cells["squares"].to_numpy(), cells["n"].to_numpy().astype(np.float64)
    )
    reach = reach_over_clusters(marked, "delta", cells.height, seed=seed)
    low, high = widen(cells["item_mean"].to_numpy(), reach, floor, (-np.inf, np.inf))
    return cells.with_columns(pl.Series("low", low), pl.Series("high", high))
