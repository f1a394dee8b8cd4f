"""Means of a table's cells, for plots of designs: by region and by factor."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.core.wording import MINUS
from felicity.stats.frames import take_column

CELLS = {
    "series": pl.String(),
    "x": pl.String(),
    "n": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
# Columns that number the parts of a sentence.
PLACES = ("place", "region")


def filter_rows(frame: pl.DataFrame, conditions: Sequence[str]) -> pl.DataFrame:
    """The rows where each COLUMN=VALUE holds.

    Raises BadInput for another form and if no row is left, UnknownName for a column that is missing.
    """
    for condition in conditions:
        name, sign, value = condition.partition("=")
        if not sign:
            raise BadInput(f"'{condition}' is not COLUMN=VALUE; write for instance region=verb.")
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
        kept = frame.filter(pl.col(name).cast(pl.String) == value)
        if kept.is_empty():
            values = ", ".join(frame[name].cast(pl.String).unique(maintain_order=True).head(10).drop_nulls())
            raise BadInput(f"No row has {name} = {value}; there are {values}.")
        frame = kept
    return frame


def measure_interaction(
    frame: pl.DataFrame, *, y: str, x: str, by: str, unit: str = "item", level: float = 0.95
) -> dict[str, object] | None:
    """The interaction of two factors of two levels each: a difference of differences, and its effect size.

    For each unit, (y at the first x - y at the second x) at the first level of `by`, minus the same at the
    second. The interval is Student's t over units; `d` is the mean divided by the standard deviation over
    units (Cohen's d_z). None if a factor has another number of levels, or fewer than two units have all
    four cells.
    """
    levels = {name: frame[name].cast(pl.String).unique(maintain_order=True).to_list() for name in (x, by)}
    if unit not in frame.columns or any(len(names) != 2 for names in levels.values()):
        return None
    cells = frame.group_by(unit, pl.col(x).cast(pl.String), pl.col(by).cast(pl.String)).agg(pl.col(y).mean())
    # A cell without a value is a missing cell, not a difference of zero.
    cells = cells.drop_nulls(y)
    sign = pl.when((pl.col(x) == levels[x][0]) == (pl.col(by) == levels[by][0])).then(1.0).otherwise(-1.0)
    each = cells.group_by(unit).agg((sign * pl.col(y)).sum().alias("value"), pl.len().alias("cells"))
    values = each.filter((pl.col("cells") == 4) & pl.col("value").is_finite())["value"].to_numpy()
    n = len(values)
    if n < 2:
        return None
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    half_width = float(stats.t.ppf(0.5 + level / 2, n - 1)) * sd / n**0.5
    contrast = f"({levels[x][0]} {MINUS} {levels[x][1]}) in {levels[by][0]} minus the same in {levels[by][1]}"
    return {
        "contrast": contrast,
        "n": n,
        "estimate": mean,
        "low": mean - half_width,
        "high": mean + half_width,
        "d": mean / sd if sd > 0 else None,
    }


def average_region_surprisal(regions: pl.DataFrame) -> pl.DataFrame:
    """Mean surprisal of every region of a suite in each condition, with Student's 95% interval over items.

    regions: suite, condition, region, name, surprisal_bits, one row per item. Gives suite, condition, region,
    name, n, mean, low, high; a region that could not be scored is left out.
    """
    parts = []
    scored = regions.filter(pl.col("surprisal_bits").is_finite())
    for (suite,), part in scored.group_by("suite", maintain_order=True):
        cells = average_cells(part, y="surprisal_bits", x="region", by=["condition"])
        names = part.select(pl.col("region").cast(pl.String), "name").unique("region", maintain_order=True)
        named = cells.rename({"series": "condition", "x": "region"}).join(names, on="region", how="left")
        parts.append(named.insert_column(0, pl.lit(suite).alias("suite")))
    schema = {"suite": pl.String(), "condition": pl.String(), "region": pl.String(), "name": pl.String()}
    empty = pl.DataFrame(schema=schema | {name: CELLS[name] for name in ("n", "mean", "low", "high")})
    return pl.concat([empty, *(part.select(empty.columns) for part in parts)])


def average_cells(
    frame: pl.DataFrame, *, y: str, x: str, by: Sequence[str] = (), level: float = 0.95
) -> pl.DataFrame:
    """Columns series, x, n, mean, low, high: the mean of `y` at each `x`, for each combination of factors.

    The interval is Student's t over the rows of a cell; a cell of one row has none.

    Raises UnknownName for a column that is missing, BadInput if `y` is not a number.
    """
    named = _name_cells(frame, y=y, x=x, by=by)
    cells = named.group_by("series", "x", maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), mean=pl.col("y").mean(), sd=pl.col("y").std()
    )
    return _add_intervals(cells, level)


def average_within(
    frame: pl.DataFrame, *, y: str, x: str, by: Sequence[str] = (), item: str = "item", level: float = 0.95
) -> pl.DataFrame:
    """The same with within-item intervals: the differences between items are taken out first.

    Each item's values are shifted so that all items have the same mean (Cousineau 2005), and the variance of
    each of the J cells is multiplied by J / (J - 1), since shifting makes it too small (Morey 2008). J are
    the combinations of factors at one `x` where the axis is the place in the sentence, otherwise all cells.
    With two cells the interval is that of their difference divided by the square root of 2.

    Raises UnknownName for a column that is missing, BadInput if an item lacks a cell or there is only one.
    """
    if item not in frame.columns:
        raise UnknownName("column", item, frame.columns, hint="name that of the items with --item.")
    named = _name_cells(frame, y=y, x=x, by=by, item=item)
    each = named.group_by("series", "x", "item", maintain_order=True).agg(pl.col("y").mean())
    # Regions of a sentence differ for other reasons than a design, so items are aligned within each.
    group = pl.col("x") if x in PLACES else pl.lit("")
    each = each.with_columns(group.alias("group"))
    sizes = each.select("group", "series", "x").unique().group_by("group").agg(cells=pl.len())
    if sizes["cells"].min() == 1:
        raise BadInput(
            "Within-item intervals compare at least two cells of an item; name a factor with --by."
        )
    held = each.group_by("group", "item", maintain_order=True).agg(has=pl.col("y").drop_nulls().len())
    short = held.join(sizes, on="group").filter(pl.col("has") < pl.col("cells"))
    if not short.is_empty():
        row = short.row(0, named=True)
        where = f" at {x} {row['group']}" if row["group"] else ""
        raise BadInput(
            f"Item {row['item']} has {row['has']} of {row['cells']} cells{where}; within-item intervals need "
            "all of them: leave the item out, or leave out --within."
        )
    level_of_item = pl.col("y").mean().over("group", "item") - pl.col("y").mean().over("group")
    aligned = each.join(sizes, on="group", maintain_order="left").with_columns(
        aligned=pl.col("y") - level_of_item
    )
    correction = (pl.col("cells").first() / (pl.col("cells").first() - 1)).sqrt()
    cells = aligned.group_by("series", "x", maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), mean=pl.col("y").mean(), sd=pl.col("aligned").std() * correction
    )
    return _add_intervals(cells, level)


def _name_cells(
    frame: pl.DataFrame, *, y: str, x: str, by: Sequence[str], item: str | None = None
) -> pl.DataFrame:
    """Columns series, x and y, and item if it is asked for."""
    for name in (y, x, *by):
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
    if not take_column(frame, y).dtype.is_numeric():
        raise BadInput(f"The column '{y}' has no numbers; name another with --y.")
    series = (
        pl.concat_str([pl.col(name).cast(pl.String) for name in by], separator=", ") if by else pl.lit("")
    )
    more = [] if item is None else [pl.col(item).cast(pl.String).alias("item")]
    return frame.select(
        series.alias("series"), pl.col(x).cast(pl.String).alias("x"), pl.col(y).alias("y"), *more
    )


def _add_intervals(cells: pl.DataFrame, level: float) -> pl.DataFrame:
    """Cells with n, mean and sd into CELLS, with Student's interval of the mean."""
    n = cells["n"].to_numpy().astype(float)
    sd = cells["sd"].fill_null(0.0).to_numpy()
    half_width = np.where(n > 1, stats.t.ppf(0.5 + level / 2, np.maximum(n - 1, 1)) * sd / np.sqrt(n), np.nan)
    half = pl.Series("half", half_width).fill_nan(None)
    return cells.with_columns(
        (pl.col("mean") - half).alias("low"), (pl.col("mean") + half).alias("high")
    ).select(pl.col(name).cast(kind) for name, kind in CELLS.items())
