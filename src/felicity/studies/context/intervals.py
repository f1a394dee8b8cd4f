"""Intervals of many means at once, over suites, shared contexts or items.

Accuracies and changes in accuracy have the score intervals of every other estimate (`felicity.stats`): the
answers of a cell are clustered by item, if an item is judged in several draws, and by suite or by the context
that items share.
Any other mean has Student's interval over clusters, and is never narrower than that over items.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.special import stdtrit

from felicity.stats import Clusters, Vector, compare_shares, share_interval, spread_clusters

UPPER_TAIL = 0.975


def mark_clusters(units: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """`units` with the number of their `cell` (equal in `by`), what is `drawn` in it, and the `cluster`.

    Suites are drawn if a cell has several; else contexts, if items share them; else items.
    """
    cells = units.select(by).unique(maintain_order=True).with_row_index("cell")
    numbered = units.join(cells, on=list(by), nulls_equal=True, maintain_order="left")
    series = pl.col("series").n_unique().over("cell")
    shared = pl.col("series").is_not_null() & (series > 1) & (series < pl.len().over("cell"))
    drawn = (
        pl.when(pl.col("suite").n_unique().over("cell") > 1)
        .then(pl.lit("suites"))
        .when(shared)
        .then(pl.lit("contexts"))
        .otherwise(pl.lit("items"))
    )
    return numbered.with_columns(drawn.alias("drawn")).with_columns(
        pl.when(drawn == "suites")
        .then("suite")
        .when(drawn == "contexts")
        .then("series")
        .otherwise(None)
        .alias("cluster")
    )


def spread_cells(marked: pl.DataFrame, value: str, cells: int) -> list[Clusters]:
    """How the mean of `value` in each cell spreads over its items, and over its clusters."""
    known = marked.drop_nulls(value).with_row_index("unit")
    spreads = []
    # A cell that is not clustered has one cluster, which says nothing.
    for cluster in ("unit", "cluster"):
        sums = known.group_by("cell", cluster, maintain_order=True).agg(
            pl.col(value).sum().alias("sum"), pl.len().cast(pl.Float64).alias("size")
        )
        numbers = sums["cell"].to_numpy().astype(np.int64)
        spreads.append(spread_clusters(numbers, sums["sum"].to_numpy(), sums["size"].to_numpy(), cells))
    return spreads


def accuracy_ends(marked: pl.DataFrame, cells: pl.DataFrame) -> tuple[Vector, Vector]:
    """The interval of each cell's accuracy, the mean of `passed`; `answers` are its independent answers."""
    spread = spread_cells(marked, "passed", cells.height)
    return share_interval(cells["accuracy"].to_numpy(), cells["answers"].to_numpy(), spread)


def change_ends(marked: pl.DataFrame, cells: pl.DataFrame) -> tuple[Vector, Vector]:
    """The interval of each cell's mean `delta`: the mean of what is `gained` minus that of what is `lost`."""
    spread = spread_cells(marked, "delta", cells.height)
    gained, lost, answers = (cells[name].to_numpy() for name in ("gained", "lost", "answers"))
    found = compare_shares(gained, lost, answers, spread)
    return found.low, found.high


def half_width(marked: pl.DataFrame, value: str, cells: int) -> Vector:
    """Half the width of Student's 95% interval of the mean of `value`; NaN for a single item."""
    items, clusters = (
        np.where(each.several, stdtrit(each.df, UPPER_TAIL) * np.sqrt(each.variance), np.nan)
        for each in spread_cells(marked, value, cells)
    )
    return np.fmax(items, clusters)
