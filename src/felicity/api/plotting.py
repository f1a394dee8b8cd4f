"""Means with intervals of a table's cells, by region and by factor, as `felicity plot` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import read_frame
from felicity.core.frames import Frame, as_polars, is_frame
from felicity.core.wording import decimal, format_interval
from felicity.report import render_result
from felicity.report.charts import SLIDE, Canvas, Point, Spec, as_altair, chart_lines
from felicity.stats import average_cells, average_within, filter_rows, measure_interaction

# Units by what the name of a column ends in.
UNITS = {"bits": "bits", "nats": "nats", "ms": "ms", "surprisal": "bits", "rt": "ms"}
# What else may name the places of the x axis, if each place has one name.
NAMES = ("name", "region", "word", "token")


@dataclass(frozen=True, kw_only=True)
class Means:
    """Means of `y` along `x` with 95% intervals, and the interaction of two crossed factors, if any.

    table: series, x, n, mean, low, high. by: the factors. unit: what `y` is in; empty if unknown. names: of
    the values of x. within: whether the intervals are within items. has_items: whether the column of the
    items is in the data.
    """

    table: pl.DataFrame
    interaction: dict[str, Any] | None
    y: str
    x: str
    by: tuple[str, ...] = ()
    unit: str = ""
    names: dict[str, str]
    within: bool = False
    has_items: bool

    def _repr_html_(self) -> str:
        return render_result(f"Mean {self.y}", self.summary(), table=self.table, figure=self.figure())

    def summary(self) -> str:
        """The interaction in words; empty if there is none."""
        crossed = self.interaction
        if crossed is None:
            return ""
        size = "" if crossed["d"] is None else f", d = {decimal(crossed['d'])}"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"Interaction over {crossed['n']} items: {decimal(crossed['estimate'], 3)}{unit}, 95% CI "
            f"{format_interval(crossed['low'], crossed['high'], places=3)}{size}; {crossed['contrast']}."
        )

    def figure(self, *, title: str = "", size: tuple[int, int] | None = None) -> Spec:
        """One line per combination of factors, and their interaction beside them, as Vega-Lite.

        title: instead of "Mean" and the column. size: width and height in points.
        """
        values = self.table["x"].unique(maintain_order=True).to_list()
        points = [
            Point(self._call(row["series"]), values.index(row["x"]), row["mean"], row["low"], row["high"])
            for row in self.table.iter_rows(named=True)
        ]
        crossed = self.interaction
        ends = [crossed[key] for key in ("estimate", "low", "high")] if crossed else []
        shown = "within-item 95% intervals (Cousineau, Morey)" if self.within else "95% intervals"
        more = "; interaction: difference of differences" if crossed else ""
        return chart_lines(
            points,
            canvas=Canvas(size[0]) if size else SLIDE,
            height=size[1] if size else None,
            x_title=self.x,
            y_title=f"{self.y} ({self.unit})" if self.unit else self.y,
            labels=[self.names.get(value, value) for value in values],
            contrast=Point("interaction", 0, *ends) if crossed else None,
            title=title or f"Mean {self.y}",
            subtitle=f"{shown}{more}",
        )

    def _call(self, series: str) -> str:
        """A combination of levels with the names of their factors, for the legend."""
        levels = series.split(", ")
        if len(levels) != len(self.by):
            return series
        return ", ".join(f"{name}: {level}" for name, level in zip(self.by, levels, strict=True))

    def plot(self, *, title: str = "", size: tuple[int, int] | None = None) -> Any:
        """The same as an altair chart."""
        return as_altair(self.figure(title=title, size=size))


def means(
    data: str | Path | Frame,
    *,
    y: str = "surprisal",
    x: str = "place",
    by: str | Sequence[str] = (),
    where: Sequence[str] = (),
    item: str = "item",
    within: bool = False,
    regions: Sequence[str] = (),
    unit: str | None = None,
) -> Means:
    """The mean of a column at each place, for each combination of factors, with 95% intervals.

    data: a .csv, .tsv or .parquet file, or a polars or pandas frame. y: the column to average. x: the column
    along the axis. by: factors. where: only rows with COLUMN=VALUE. If two factors of two levels are crossed
    within the column `item`, `interaction` is their difference of differences, with Cohen's d over items.
    within: intervals within items, without the differences between them (Cousineau 2005, corrected by Morey
    2008). regions: names of the places along x, in their order. unit: that of y; by default the one that
    `surprisal` writes, or the end of the column's name, such as rt_ms.

    Raises UnknownName for a column that is missing, BadInput if `y` has no numbers, if the names are too few
    or too many, or if an item lacks a cell that `within` needs.

    >>> import felicity as fe
    >>> import polars as pl
    >>> frame = pl.DataFrame({"place": [1, 1, 2, 2], "surprisal": [3.0, 5.0, 8.0, 8.0]})
    >>> fe.means(frame).table["mean"].to_list()
    [4.0, 8.0]
    """
    table = as_polars(data) if is_frame(data) else read_frame(Path(data))
    frame = filter_rows(table, where)
    factors = [by] if isinstance(by, str) else list(by)
    averaged = (
        average_within(frame, y=y, x=x, by=factors, item=item)
        if within
        else average_cells(frame, y=y, x=x, by=factors)
    )
    crossed = measure_interaction(frame, y=y, x=x, by=factors[0], unit=item) if len(factors) == 1 else None
    return Means(
        table=averaged,
        interaction=crossed,
        y=y,
        x=x,
        by=tuple(factors),
        unit=_find_unit(frame, y) if unit is None else unit,
        names=_name_places(frame, x, averaged["x"].unique(maintain_order=True).to_list(), regions),
        within=within,
        has_items=item in frame.columns,
    )


def _find_unit(frame: pl.DataFrame, y: str) -> str:
    """What a column is in, by the table's column `unit` or by its name; empty if neither says it."""
    if y == "surprisal" and "unit" in frame.columns and frame["unit"].n_unique() == 1:
        return str(frame["unit"][0])
    return UNITS.get(y.rpartition("_")[2], "")


def _name_places(frame: pl.DataFrame, x: str, values: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """The names of the values of x: those that are given, or those of a column with one name for each."""
    if given and len(given) != len(values):
        raise BadInput(
            f"{len(given)} regions are named, but {x} has {len(values)} values ({', '.join(values[:8])}); "
            "name each of them."
        )
    if given:
        return {value: f"{value} {name}" for value, name in zip(values, given, strict=True)}
    for name in NAMES if x in ("place", "region") else ():
        if name == x or name not in frame.columns:
            continue
        pairs = frame.select(pl.col(x).cast(pl.String), pl.col(name).cast(pl.String)).unique()
        if pairs.height == len(values) and pairs[name].null_count() == 0:
            return {value: f"{value} {text}" for value, text in pairs.iter_rows()}
    return {}


def plot(
    data: str | Path | Frame,
    *,
    y: str = "surprisal",
    x: str = "place",
    by: str | Sequence[str] = (),
    where: Sequence[str] = (),
    item: str = "item",
    within: bool = False,
    regions: Sequence[str] = (),
    unit: str | None = None,
    title: str = "",
    size: tuple[int, int] | None = None,
) -> Any:
    """Means with 95% intervals as an altair chart, one line per combination of factors.

    The arguments are those of `means`; `title` and `size` (width and height in points) are the figure's. A
    notebook shows the chart; `chart.save("regions.svg")` writes it.

    >>> import felicity as fe
    >>> words = fe.surprisal(["The cats annoy Tim.", "The cat annoys Tim."])
    >>> type(fe.plot(words, by="row")).__name__
    'LayerChart'
    """
    found = means(data, y=y, x=x, by=by, where=where, item=item, within=within, regions=regions, unit=unit)
    return found.plot(title=title, size=size)
