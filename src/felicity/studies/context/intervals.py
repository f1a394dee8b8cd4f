"""Intervals of many means at once, over suites, shared contexts or items.

As for all levels above the suite, a bootstrap over clusters gives the standard error and Student's t the
critical value. No interval is narrower than that of independent items: Wilson's for an accuracy, that of
Bonett & Price (2012) for a paired difference, Student's t for any other mean.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.special import stdtrit

from felicity.stats import DRAWS, UPPER_TAIL, Z_95, Codes, Vector, count_draws, wilson_interval

CELLS_AT_ONCE = 200


def cluster_half_width(
    cell: Codes, sums: Vector, sizes: Vector, cells: int, *, seed: int, draws: int = DRAWS
) -> Vector:
    """Half the width of each cell's 95% bootstrap interval over its clusters; 0 for a single one.

    One entry per cluster: its cell, the sum of its values and their number.
    """
    order = np.argsort(cell, kind="stable")
    cell, sums, sizes = cell[order], sums[order], sizes[order]
    clusters = np.bincount(cell, minlength=cells)
    starts = np.concatenate([[0], np.cumsum(clusters)[:-1]])
    half_width = np.zeros(cells)
    for count in np.unique(clusters[clusters > 1]).tolist():
        times = count_draws(count, seed=seed, draws=draws)
        multiple = stdtrit(count - 1, UPPER_TAIL) * np.sqrt(count / (count - 1))
        alike = np.flatnonzero(clusters == count)
        for part in np.array_split(alike, -(-len(alike) // CELLS_AT_ONCE)):
            rows = starts[part][None, :] + np.arange(count)[:, None]
            half_width[part] = multiple * ((times @ sums[rows]) / (times @ sizes[rows])).std(axis=0)
    return half_width


def difference_interval(total: Vector, squares: Vector, n: Vector) -> tuple[Vector, Vector]:
    """95% interval of mean differences between paired answers (Bonett & Price 2012).

    Two items are added, one in each direction, so that even items that all agree
    give an interval. total, squares: sums of the differences and of their squares over n items.
    """
    mean = total / (n + 2)
    half_width = Z_95 * np.sqrt(((squares + 2) / (n + 2) - mean**2) / (n + 2))
    return mean - half_width, mean + half_width


def wilson_intervals(hits: Vector, n: Vector) -> tuple[Vector, Vector]:
    """Wilson's interval of many proportions at once."""
    ends = [wilson_interval(found, size) for found, size in zip(hits, n.tolist(), strict=True)]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def widen(
    estimate: Vector, half_width: Vector, floor: tuple[Vector, Vector], bounds: tuple[float, float]
) -> tuple[Vector, Vector]:
    """The interval over clusters, at least as wide as that over items, within `bounds`."""
    low = np.minimum(np.minimum(estimate - half_width, floor[0]), estimate)
    high = np.maximum(np.maximum(estimate + half_width, floor[1]), estimate)
    return np.maximum(low, bounds[0]), np.minimum(high, bounds[1])


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


def half_width_over_clusters(marked: pl.DataFrame, value: str, cells: int, *, seed: int) -> Vector:
    """Half the width of the interval of the mean of `value` in each cell, over its clusters, or 0."""
    known = marked.filter(pl.col("cluster").is_not_null() & pl.col(value).is_not_null())
    sums = known.group_by("cell", "cluster", maintain_order=True).agg(
        pl.col(value).sum().alias("sum"), pl.len().cast(pl.Float64).alias("size")
    )
    return cluster_half_width(
        sums["cell"].to_numpy().astype(np.int64),
        sums["sum"].to_numpy(),
        sums["size"].to_numpy(),
        cells,
        seed=seed,
    )


def student_half_width(sd: Vector, n: Vector) -> Vector:
    """Half the width of Student's interval of a mean over independent items; NaN for a single one."""
    enough = np.where(n > 1, n, 2)
    return np.where(n > 1, stdtrit(enough - 1, UPPER_TAIL) * sd / np.sqrt(enough), np.nan)
