"""Means with intervals of a table's cells, by region and by factor, as `felicity plot` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.files import read_frame
from felicity.core.frames import Frame, as_polars, is_frame
from felicity.core.wording import decimal, format_interval
from felicity.report import render_result
from felicity.report.charts import SLIDE, Point, Spec, as_altair, chart_lines
from felicity.stats import average_cells, filter_rows, measure_interaction


@dataclass(frozen=True, kw_only=True)
class Means:
    """Means of `y` along `x` with 95% intervals, and the interaction of two crossed factors, if any.

    table: series, x, n, mean, low, high. has_items: whether the column of the items is in the data.
    """

    table: pl.DataFrame
    interaction: dict[str, Any] | None
    y: str
    x: str
    has_items: bool

    def _repr_html_(self) -> str:
        return render_result(f"Mean {self.y}", self.summary(), table=self.table, figure=self.figure())

    def summary(self) -> str:
        """The interaction in words; empty if there is none."""
        crossed = self.interaction
        if crossed is None:
            return ""
        size = "" if crossed["d"] is None else f", d = {decimal(crossed['d'])}"
        return (
            f"Interaction over {crossed['n']} items: {decimal(crossed['estimate'], 3)}, 95% CI "
            f"{format_interval(crossed['low'], crossed['high'], places=3)}{size}; {crossed['contrast']}."
        )

    def figure(self) -> Spec:
        """One line per combination of factors, as a Vega-Lite specification."""
        labels = self.table["x"].unique(maintain_order=True).to_list()
        points = [
            Point(row["series"], labels.index(row["x"]), row["mean"], row["low"], row["high"])
            for row in self.table.iter_rows(named=True)
        ]
        return chart_lines(
            points,
            canvas=SLIDE,
            x_title=self.x,
            y_title=self.y,
            labels=labels,
            title=f"Mean {self.y}",
            subtitle="95% intervals",
        )

    def plot(self) -> Any:
        """One line per combination of factors, as an altair chart."""
        return as_altair(self.figure())


def means(
    data: str | Path | Frame,
    *,
    y: str = "surprisal",
    x: str = "place",
    by: str | Sequence[str] = (),
    where: Sequence[str] = (),
    item: str = "item",
) -> Means:
    """The mean of a column at each place, for each combination of factors, with 95% intervals.

    data: a .csv, .tsv or .parquet file, or a polars or pandas frame. y: the column to average. x: the column
    along the axis. by: factors. where: only rows with COLUMN=VALUE. If two factors of two levels are crossed
    within the column `item`, `interaction` is their difference of differences, with Cohen's d over items.

    Raises UnknownName for a column that is missing, BadInput if `y` has no numbers.

    >>> import felicity as fe
    >>> import polars as pl
    >>> frame = pl.DataFrame({"place": [1, 1, 2, 2], "surprisal": [3.0, 5.0, 8.0, 8.0]})
    >>> fe.means(frame).table["mean"].to_list()
    [4.0, 8.0]
    """
    table = as_polars(data) if is_frame(data) else read_frame(Path(data))
    frame = filter_rows(table, where)
    factors = [by] if isinstance(by, str) else list(by)
    averaged = average_cells(frame, y=y, x=x, by=factors)
    crossed = measure_interaction(frame, y=y, x=x, by=factors[0], unit=item) if len(factors) == 1 else None
    return Means(table=averaged, interaction=crossed, y=y, x=x, has_items=item in frame.columns)


def plot(
    data: str | Path | Frame,
    *,
    y: str = "surprisal",
    x: str = "place",
    by: str | Sequence[str] = (),
    where: Sequence[str] = (),
) -> Any:
    """Means with 95% intervals as an altair chart, one line per combination of factors.

    The arguments are those of `means`. A notebook shows the chart; `chart.save("regions.svg")` writes it.

    >>> import felicity as fe
    >>> words = fe.surprisal(["The cats annoy Tim.", "The cat annoys Tim."])
    >>> type(fe.plot(words, by="row")).__name__
    'LayerChart'
    """
    return means(data, y=y, x=x, by=by, where=where).plot()
