"""Means of a table's cells, for plots of designs: by region and by factor."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import column

CELLS = {
    "series": pl.String(),
    "x": pl.String(),
    "n": pl.UInt32(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}


def filter_rows(frame: pl.DataFrame, conditions: Sequence[str]) -> pl.DataFrame:
    """The rows where each COLUMN=VALUE holds.

    Raises BadInput for another form and where no row is left, UnknownName for a column that is missing.
    """
    for condition in conditions:
        name, sign, value = condition.partition("=")
        if not sign:
            raise BadInput(f"'{condition}' is not COLUMN=VALUE; write for instance region=verb.")
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
        kept = frame.filter(pl.col(name).cast(pl.String) == value)
        if kept.is_empty():
            known = ", ".join(frame[name].cast(pl.String).unique(maintain_order=True).head(10).drop_nulls())
            raise BadInput(f"No row has {name} = {value}; there are {known}.")
        frame = kept
    return frame


def average_cells(
    frame: pl.DataFrame, *, y: str, x: str, by: Sequence[str] = (), level: float = 0.95
) -> pl.DataFrame:
    """Columns series, x, n, mean, low, high: the mean of `y` at each `x`, for each combination of factors.

    The interval is Student's t over the rows of a cell; a cell of one row has none.

    Raises UnknownName for a column that is missing, BadInput where `y` is not a number.
    """
    for name in (y, x, *by):
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
    values = column(frame, y)
    if not values.dtype.is_numeric():
        raise BadInput(f"The column '{y}' does not hold numbers; name another with --y.")
    series = (
        pl.concat_str([pl.col(name).cast(pl.String) for name in by], separator=", ") if by else pl.lit("")
    )
    cells = (
        frame.select(series.alias("series"), pl.col(x).cast(pl.String).alias("x"), pl.col(y).alias("y"))
        .group_by("series", "x", maintain_order=True)
        .agg(pl.len().alias("n"), pl.col("y").mean().alias("mean"), pl.col("y").std().alias("sd"))
    )
    n = cells["n"].to_numpy().astype(float)
    sd = cells["sd"].fill_null(0.0).to_numpy()
    reach = np.where(n > 1, stats.t.ppf(0.5 + level / 2, np.maximum(n - 1, 1)) * sd / np.sqrt(n), np.nan)
    half = pl.Series("half", reach).fill_nan(None)
    return cells.with_columns(
        (pl.col("mean") - half).alias("low"), (pl.col("mean") + half).alias("high")
    ).select(pl.col(name).cast(kind) for name, kind in CELLS.items())
