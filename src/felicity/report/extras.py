"""Sections that only some rules have something to show in: predictions, regions, ratings."""

from dataclasses import dataclass
from functools import partial

import polars as pl

from felicity.report.figures import Figure
from felicity.report.input import ReportInput
from felicity.report.line_chart import MOST_SERIES, Point, chart_lines
from felicity.report.wording import count, decimal, percent, spaced

MOST_FIGURES = 60


@dataclass(frozen=True, kw_only=True)
class Extra:
    """A section: a heading, a sentence, figures, and a table of texts.

    names: how many columns name a row, the rest being numbers; notes: sentences under the table.
    """

    name: str
    title: str
    lede: str
    figures: tuple[Figure, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    names: int = 1
    notes: tuple[str, ...] = ()


def build_extras(report: ReportInput, *, heading: str) -> list[Extra]:
    """The sections that this run has something for."""
    found = [_predictions(report), _regions(report, heading), _correlations(report)]
    return [extra for extra in found if extra is not None]


def _predictions(report: ReportInput) -> Extra | None:
    estimates = report.estimates.filter(pl.col("level") == "prediction")
    if estimates.is_empty():
        return None
    several = len(report.measures) > 1
    rows = tuple(
        (
            row["name"],
            *((row["measure"],) if several else ()),
            percent(row["accuracy"]),
            f"{percent(row['low'])}–{percent(row['high'])}",
            count(row["n"]),
        )
        for row in estimates.iter_rows(named=True)
    )
    return Extra(
        name="predictions",
        title="By prediction",
        lede="Every prediction by itself: how many of the items it speaks of are as it says.",
        columns=("Prediction", *(("Measure",) if several else ()), "%", "95% interval", "n"),
        rows=rows,
    )


def _regions(report: ReportInput, heading: str) -> Extra | None:
    if report.regions is None or report.regions.is_empty():
        return None
    figures = [
        _region_figure(str(suite), part, heading)
        for (suite,), part in report.regions.group_by("suite", maintain_order=True)
    ]
    return Extra(
        name="regions",
        title="Surprisal by region",
        lede="The mean surprisal of each region, in bits, over the items of a suite; one line a condition.",
        figures=tuple(figures[:MOST_FIGURES]),
    )


def _region_figure(suite: str, part: pl.DataFrame, heading: str) -> Figure:
    means = part.group_by("condition", "region", "name", maintain_order=True).agg(
        pl.col("surprisal_bits").mean(), pl.len().alias("items")
    )
    pairs = means.select("region", "name").unique(maintain_order=True).rows()
    names = dict(sorted(pairs, key=lambda pair: (not pair[0].isdecimal(), len(pair[0]), pair[0])))
    places = {region: place for place, region in enumerate(names)}
    conditions = means["condition"].unique(maintain_order=True).to_list()[:MOST_SERIES]
    points = [
        Point(row["condition"], places[row["region"]], row["surprisal_bits"])
        for row in means.iter_rows(named=True)
        if row["condition"] in conditions
    ]
    labels = [region if name == region else f"{region} {spaced(name)}" for region, name in names.items()]
    return Figure(
        name=f"regions_{suite}",
        title=f"Surprisal by region: {spaced(suite)}",
        subtitle=heading,
        label=(
            f"Mean surprisal of the {len(labels)} regions of {spaced(suite)} in the conditions "
            f"{', '.join(conditions)}; the numbers are in the run's regions table."
        ),
        chart=partial(chart_lines, points, x_title="region", y_title="surprisal (bits)", labels=labels),
    )


def _correlations(report: ReportInput) -> Extra | None:
    if report.correlations is None or report.correlations.is_empty():
        return None
    whole = report.correlations.filter(pl.col("level") == "all")
    return Extra(
        name="ratings",
        title="Correlation with ratings",
        lede="The score of each stimulus against its mean rating, over all stimuli of a condition.",
        columns=("Condition", "Measure", "Correlation", "r", "95% interval", "n"),
        rows=tuple(
            (
                row["condition"],
                row["measure"],
                row["method"],
                decimal(row["r"], 3),
                f"{decimal(row['low'], 3)} to {decimal(row['high'], 3)}",
                count(row["n"]),
            )
            for row in whole.iter_rows(named=True)
        ),
    )
