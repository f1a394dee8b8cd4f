"""The figures of a report, chosen from what the run has to show."""

import polars as pl

from felicity.report.accuracy_chart import Row, chart_accuracy
from felicity.report.canvas import NARROW, SLIDE, WIDE
from felicity.report.drawing import Figure
from felicity.report.input import ReportInput
from felicity.report.margin_chart import chart_margins
from felicity.report.wording import counted, percent, unit

MOST_ROWS = 120


def build_figures(report: ReportInput, *, heading: str) -> dict[str, Figure]:
    """Figures by name; one that would show a single row, or too many to read, is left out."""
    measure = report.measures[0]
    found = [
        _accuracy(report, _rows(report, "phenomenon", measure), by="phenomenon", heading=heading),
        _accuracy(report, _rows(report, "suite", measure), by="suite", heading=heading),
        _accuracy(report, _measure_rows(report), by="measure", heading=heading),
        _margins(report, measure, heading=heading),
    ]
    return {figure.name: figure for figure in found if figure is not None}


def _accuracy(report: ReportInput, rows: list[Row], *, by: str, heading: str) -> Figure | None:
    if not 1 < len(rows) <= MOST_ROWS:
        return None
    noun = "pairs" if report.pairs else "items"
    title = f"Accuracy by {by}"
    subtitle = heading if by == "measure" else f"{heading} · {report.measures[0]}"
    sketch = {"chance": report.pairs, "noun": noun}
    ranked = sorted(rows, key=lambda row: row.accuracy)
    worst, best = ranked[0], ranked[-1]
    label = (
        f"{title}: {counted(len(rows), 'row')}, each with a 95% interval, from {best.name} at "
        f"{percent(best.accuracy)}% to {worst.name} at {percent(worst.accuracy)}%; the numbers are in the "
        "table that follows."
    )
    return Figure(
        name=f"accuracy_by_{by}",
        title=title,
        label=label,
        slide=chart_accuracy(rows, canvas=SLIDE, title=title, subtitle=subtitle, **sketch),  # type: ignore[arg-type]
        wide=chart_accuracy(rows, canvas=WIDE, **sketch),  # type: ignore[arg-type]
        narrow=chart_accuracy(rows, canvas=NARROW, **sketch),  # type: ignore[arg-type]
    )


def _margins(report: ReportInput, measure: str, *, heading: str) -> Figure | None:
    judged = report.judged(measure)
    if judged["margin"].is_finite().sum() == 0:
        return None
    in_unit = unit(measure)
    return Figure(
        name="margins",
        title="Margins",
        label="Histogram of margins: wrong judgements left of zero, right ones right of it.",
        slide=chart_margins(
            judged, canvas=SLIDE, unit=in_unit, title="Margins", subtitle=f"{heading} · {measure}"
        ),
        wide=chart_margins(judged, canvas=WIDE, unit=in_unit),
        narrow=chart_margins(judged, canvas=NARROW, unit=in_unit),
    )


def _rows(report: ReportInput, level: str, measure: str) -> list[Row]:
    parts = _suites_of(report, measure) if level == "phenomenon" else {}
    return [
        Row(row["name"], row["accuracy"], row["low"], row["high"], row["n"], parts.get(row["name"], ()))
        for row in report.estimated(level, measure)
        .drop_nulls(["accuracy", "low", "high"])
        .iter_rows(named=True)
    ]


def _suites_of(report: ReportInput, measure: str) -> dict[str, tuple[float, ...]]:
    """The accuracies of the suites of each phenomenon that has more than one."""
    suites = report.estimated("suite", measure).drop_nulls("accuracy").select("name", "accuracy")
    homes = report.judged(measure).select("phenomenon", name="suite").unique()
    gathered = suites.join(homes, on="name").sort("phenomenon", "accuracy").group_by("phenomenon")
    return {
        name: tuple(values)
        for name, values in gathered.agg("accuracy").filter(pl.col("accuracy").list.len() > 1).iter_rows()
    }


def _measure_rows(report: ReportInput) -> list[Row]:
    return [
        Row(measure, row["accuracy"], row["low"], row["high"], row["n"])
        for measure in report.measures
        for row in report.estimated("overall", measure)
        .drop_nulls(["accuracy", "low", "high"])
        .iter_rows(named=True)
    ]
