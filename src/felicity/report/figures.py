"""The figures of a report, chosen from what the run has to show."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import polars as pl

from felicity.report.accuracy_chart import chart_accuracy
from felicity.report.canvas import NARROW, SLIDE, WIDE
from felicity.report.drawing import Spec
from felicity.report.input import ReportInput
from felicity.report.layout import Row
from felicity.report.margin_chart import chart_margins
from felicity.report.wording import counted, percent, spaced, unit

MOST_ROWS = 120


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture in three settings: for a slide, for a wide page and for a narrow one.

    label: what a reader who cannot see it is told.
    """

    name: str
    title: str
    subtitle: str
    label: str
    chart: Callable[..., Spec]

    def slide(self) -> Spec:
        """To stand alone, with its title."""
        return self.chart(canvas=SLIDE, title=self.title, subtitle=self.subtitle)

    def wide(self) -> Spec:
        """Under a heading of a page on a desk."""
        return self.chart(canvas=WIDE)

    def narrow(self) -> Spec:
        """Under a heading of a page in a hand."""
        return self.chart(canvas=NARROW)


def build_figures(report: ReportInput, *, heading: str) -> dict[str, Figure]:
    """Figures by name; one that would show a single row, or too many to read, is left out."""
    measure = report.measures[0]
    with_measure = f"{heading} · {measure}"
    found = [
        _accuracy(report, _rows(report, "phenomenon", measure), by="phenomenon", subtitle=with_measure),
        _accuracy(report, _rows(report, "suite", measure), by="suite", subtitle=with_measure),
        _accuracy(report, _measure_rows(report), by="measure", subtitle=heading),
        _margins(report, measure, subtitle=with_measure),
    ]
    return {figure.name: figure for figure in found if figure is not None}


def _accuracy(report: ReportInput, rows: list[Row], *, by: str, subtitle: str) -> Figure | None:
    if not 1 < len(rows) <= MOST_ROWS:
        return None
    ranked = sorted(rows, key=lambda row: row.accuracy)
    worst, best = ranked[0], ranked[-1]
    return Figure(
        name=f"accuracy_by_{by}",
        title=f"Accuracy by {by}",
        subtitle=subtitle,
        label=(
            f"Accuracy by {by}: {counted(len(rows), 'row')}, each with a 95% interval, from {best.name} at "
            f"{percent(best.accuracy)}% to {worst.name} at {percent(worst.accuracy)}%; the numbers are in "
            "the table that follows."
        ),
        chart=partial(chart_accuracy, rows, chance=report.pairs, noun="pairs" if report.pairs else "items"),
    )


def _margins(report: ReportInput, measure: str, *, subtitle: str) -> Figure | None:
    judged = report.judged(measure)
    if not judged["margin"].is_finite().any():
        return None
    return Figure(
        name="margins",
        title="Margins",
        subtitle=subtitle,
        label="Histogram of margins: wrong judgements left of zero, right ones right of it.",
        chart=partial(chart_margins, judged, unit=unit(measure)),
    )


def _rows(report: ReportInput, level: str, measure: str) -> list[Row]:
    parts = _suites_of(report, measure) if level == "phenomenon" else {}
    whole = report.estimated(level, measure).drop_nulls(["accuracy", "low", "high"])
    return [
        Row(
            spaced(row["name"]),
            row["accuracy"],
            row["low"],
            row["high"],
            row["n"],
            parts.get(row["name"], ()),
        )
        for row in whole.iter_rows(named=True)
    ]


def _suites_of(report: ReportInput, measure: str) -> dict[str, tuple[float, ...]]:
    """The accuracies of the suites of each phenomenon that has more than one."""
    suites = report.estimated("suite", measure).drop_nulls("accuracy").select("name", "accuracy")
    homes = report.judged(measure).select("phenomenon", name="suite").unique()
    gathered = suites.join(homes, on="name").sort("phenomenon", "accuracy").group_by("phenomenon")
    several = gathered.agg("accuracy").filter(pl.col("accuracy").list.len() > 1)
    return {name: tuple(values) for name, values in several.iter_rows()}


def _measure_rows(report: ReportInput) -> list[Row]:
    return [
        row._replace(name=measure) for measure in report.measures for row in _rows(report, "overall", measure)
    ]
