"""The sections of a timed study's page: curves, differences, errors, outliers and timing certificates."""

from functools import partial

import polars as pl

from felicity.core.wording import p_cell
from felicity.humans import RatingStudy
from felicity.report import Figure, Section, count, decimal, percent
from felicity.report.charts import MOST_SERIES, Estimate, Point, chart_estimates, chart_lines

MOST_RATERS = 200


def list_timed_sections(study: RatingStudy, tables: dict[str, pl.DataFrame]) -> list[Section | None]:
    """Everything that a timed study adds to the page of ratings."""
    return [
        _curves(tables["curves"]),
        _differences(study, tables["differences"]),
        _errors(study, tables.get("errors")),
        _outliers(tables["outliers"]),
        _certificates(tables["timing"]),
    ]


def _span(low: float | None, high: float | None, places: int = 0) -> str:
    return "–" if low is None or high is None else f"[{decimal(low, places)}, {decimal(high, places)}]"


def _curves(curves: pl.DataFrame) -> Section | None:
    if curves.is_empty():
        return None
    rows = [
        (
            row["region"],
            row["condition"] or "all",
            decimal(row["mean"], 0),
            _span(row["low"], row["high"]),
            count(row["raters"]),
            count(row["words"]),
            count(row["left_out"]),
        )
        for row in curves.iter_rows(named=True)
    ]
    return Section(
        name="curves",
        title="Time per word by region",
        lede="Milliseconds per word: the mean over raters of each rater's mean, with Student's 95% interval. "
        "Outliers and wrong choices are left out.",
        columns=("Region", "Condition", "Mean", "95% interval", "Raters", "Words", "Left out"),
        rows=tuple(rows),
        names=2,
    )


def _differences(study: RatingStudy, found: pl.DataFrame) -> Section | None:
    if found.is_empty():
        return None
    rows = [
        (
            row["region"],
            f"{row['condition']} − {row['baseline']}",
            decimal(row["difference"], 0),
            _span(row["low"], row["high"]),
            p_cell(row["p_holm"]),
            count(row["raters"]),
        )
        for row in found.iter_rows(named=True)
    ]
    several = found["condition"].n_unique() > 1
    estimates = [
        Estimate(
            f"{row['region']}: {row['condition']}" if several else row["region"],
            row["difference"],
            row["low"],
            row["high"],
        )
        for row in found.iter_rows(named=True)
    ]
    figure = Figure(
        name="time_differences",
        title=f"Difference from {found['baseline'][0]} by region",
        subtitle=study.title,
        label="Differences in milliseconds per word, with 95% intervals and a line at zero.",
        chart=partial(chart_estimates, estimates, axis="milliseconds per word"),
    )
    return Section(
        name="time_differences",
        title="Differences between conditions",
        lede="Within raters, in milliseconds per word; p of a t test, adjusted for all rows (Holm).",
        figures=(figure,),
        columns=("Region", "Conditions", "Difference", "95% interval", "p", "Raters"),
        rows=tuple(rows),
        names=2,
    )


def _errors(study: RatingStudy, errors: pl.DataFrame | None) -> Section | None:
    if errors is None or errors.is_empty():
        return None
    conditions = errors["condition"].unique(maintain_order=True).to_list()[:MOST_SERIES]
    points = [
        Point(row["condition"] or "all", row["position"], *(100 * row[k] for k in ("share", "low", "high")))
        for row in errors.iter_rows(named=True)
        if row["condition"] in conditions
    ]
    figure = Figure(
        name="errors",
        title="Errors by position",
        subtitle=study.title,
        label="Share of wrong first choices at every position of the sentence, with exact 95% intervals.",
        chart=partial(chart_lines, points, x_title="position", y_title="errors (%)"),
    )
    rows = [
        (
            count(row["position"]),
            row["condition"] or "all",
            count(row["words"]),
            count(row["errors"]),
            percent(row["share"]),
            f"[{percent(row['low'])}, {percent(row['high'])}]",
        )
        for row in errors.iter_rows(named=True)
    ]
    return Section(
        name="errors",
        title="Errors by position",
        lede="Wrong first choices, with exact 95% intervals over words.",
        figures=(figure,),
        columns=("Position", "Condition", "Words", "Errors", "%", "95% interval"),
        rows=tuple(rows),
        names=2,
    )


def _outliers(outliers: pl.DataFrame) -> Section | None:
    if outliers.is_empty():
        return None
    ranked = outliers.sort("share", "rater", descending=[True, False]).head(MOST_RATERS)
    rows = [
        (row["rater"], *(count(row[k]) for k in ("words", "fast", "slow", "deviant")), percent(row["share"]))
        for row in ranked.iter_rows(named=True)
    ]
    return Section(
        name="outliers",
        title="Outliers",
        lede="Word times below 100 ms (fast), above 3,000 ms (slow), or within these bounds but more than 3 "
        "standard deviations from the rater's mean in logarithms (deviant). The table words keeps them all.",
        columns=("Rater", "Words", "Fast", "Slow", "Deviant", "%"),
        rows=tuple(rows),
    )


def _certificates(timing: pl.DataFrame) -> Section | None:
    if timing.is_empty():
        return None
    rows = [
        (
            row["rater"],
            "yes" if row["certified"] else "no",
            f"{row['measured']} / {row['trials']}",
            decimal(row["refresh_hz"], 1),
            count(row["frames"]),
            count(row["dropped"]),
            "–" if row["dropped_share"] is None else decimal(100 * row["dropped_share"], 2),
            decimal(row["longest_ms"], 1),
            decimal(row["clock_ms"], 3),
        )
        for row in timing.sort("certified", "rater").head(MOST_RATERS).iter_rows(named=True)
    ]
    return Section(
        name="timing",
        title="Timing certificates",
        lede="What each rater's browser measured while words were read: a word appears with the next frame, "
        "so dropped frames lengthen times, and a coarse clock rounds them. Certified: every trial measured, "
        "at most 1% of frames dropped, a clock of 1 ms or finer.",
        columns=(
            "Rater",
            "Certified",
            "Trials measured",
            "Refresh rate (Hz)",
            "Frames",
            "Dropped",
            "Dropped (%)",
            "Longest frame (ms)",
            "Clock (ms)",
        ),
        rows=tuple(rows),
        names=2,
    )
