"""Sections that only some runs have: predictions, missed targets, regions, ratings, baselines."""

from functools import partial

import polars as pl

from felicity.core.regions import BOUNDARIES
from felicity.report.charts import MOST_SERIES, Dot, Point, chart_lines, chart_scatter
from felicity.report.explorer_links import link_items
from felicity.report.run_tables import ReportInput
from felicity.report.sections import Figure, Section
from felicity.report.wording import count, counted, decimal, format_interval, percent, spaced

MOST_ROWS = 120
MOST_FIGURES = 60
MOST_DOTS = 2_000
# Cloze frames are listed as missed from this rank on.
MISSED_FROM = 5
MOST_MISSED = 60


def build_extras(report: ReportInput, *, heading: str) -> list[Section]:
    """The sections that apply to this run."""
    found = [
        _predictions(report),
        _missed(report),
        _regions(report, heading),
        _correlations(report, heading),
        _baselines(report),
    ]
    return [extra for extra in found if extra is not None]


def _predictions(report: ReportInput) -> Section | None:
    estimates = report.estimates.filter(pl.col("level") == "prediction")
    if estimates.is_empty():
        return None
    several = len(report.measures) > 1
    formulas = _formulas(report)
    rows = tuple(
        (
            row["name"],
            *((formulas.get(row["name"], ""),) if formulas else ()),
            *((row["measure"],) if several else ()),
            percent(row["accuracy"]),
            format_interval(row["low"], row["high"], percent),
            count(row["n"]),
        )
        for row in estimates.iter_rows(named=True)
    )
    return Section(
        name="predictions",
        title="By prediction",
        lede="Every prediction alone: the share of its items for which it holds.",
        columns=(
            "Prediction",
            *(("Formula",) if formulas else ()),
            *(("Measure",) if several else ()),
            *("%", "95% interval", "n"),
        ),
        rows=rows,
        names=1 + bool(formulas) + several,
    )


def _formulas(report: ReportInput) -> dict[str, str]:
    """The formula of each prediction, by the name of the prediction: its suite and number."""
    if "predictions" not in report.items.columns:
        return {}
    suites = report.items.select("suite", "predictions").unique("suite", maintain_order=True)
    return {
        f"{suite}/{number}": formula
        for suite, formulas in suites.iter_rows()
        for number, formula in enumerate(formulas, start=1)
    }


def _regions(report: ReportInput, heading: str) -> Section | None:
    if report.regions is None or report.regions.is_empty():
        return None
    figures = [
        _region_figure(str(suite), part, heading, report.explorer)
        for (suite,), part in report.regions.group_by("suite", maintain_order=True)
    ]
    # Runs of earlier versions, and replayed ones, have plain sums.
    summed = report.manifest.get("regions", {}).get("boundary", "plain")
    return Section(
        name="regions",
        title="Surprisal by region",
        lede="The mean surprisal of each region, in bits, over the items of a suite, with 95% intervals "
        f"(Student's t); one line per condition. The surprisal of a region is {BOUNDARIES[summed]}.",
        figures=tuple(figures[:MOST_FIGURES]),
    )


def _region_figure(suite: str, means: pl.DataFrame, heading: str, explorer: str) -> Figure:
    link = link_items(explorer, "regions", region_suite=suite)
    pairs = means.select("region", "name").unique(maintain_order=True).rows()
    names = dict(sorted(pairs, key=lambda pair: (not pair[0].isdecimal(), len(pair[0]), pair[0])))
    places = {region: place for place, region in enumerate(names)}
    conditions = means["condition"].unique(maintain_order=True).to_list()[:MOST_SERIES]
    points = [
        Point(row["condition"], places[row["region"]], row["mean"], row["low"], row["high"], link)
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


def _missed(report: ReportInput) -> Section | None:
    """The frames whose target is not among the first words, with its rank and what the model prefers."""
    if report.fillers is None or report.fillers.is_empty():
        return None
    judged = report.judgements.filter(pl.col("passed") == 0).select("item").unique()
    missed = report.fillers.join(judged, on="item", how="semi", maintain_order="left").filter(
        pl.col("rank").is_null() | (pl.col("rank") > MISSED_FROM)
    )
    wrong = missed.sort(pl.col("rank").fill_null(pl.lit(2**31)), "item", descending=[True, False])
    rows = tuple(
        (
            row["frame"],
            row["target"],
            f"beyond {len(row['predictions'])}" if row["rank"] is None else count(row["rank"]),
            ", ".join(row["predictions"][:MISSED_FROM]),
        )
        for row in wrong.head(MOST_MISSED).iter_rows(named=True)
    )
    shown = f" The first {len(rows)} are shown." if len(wrong) > len(rows) else ""
    return Section(
        name="missed",
        title="Missed targets",
        lede=f"{counted(len(wrong), 'frame')} whose target is not among the {MISSED_FROM} likeliest "
        f"words.{shown}",
        columns=("Frame", "Target", "Rank", "Likeliest words"),
        rows=rows,
        names=4,
    )


def _scatter(report: ReportInput, heading: str) -> tuple[Figure, ...]:
    """Score against rating, one panel per condition, under the main measure."""
    if "rating" not in report.items.columns:
        return ()
    measure = report.measures[0]
    scores = report.scores.filter(pl.col("measure") == measure).select("request", "value")
    rated = report.items.select("item", "condition", "rating")
    points = report.requests.select("request", "item", "condition").join(scores, on="request")
    points = points.join(rated, on=["item", "condition"]).drop_nulls(["rating", "value"])
    if not 1 < len(points) <= MOST_DOTS:
        return ()
    dots = [
        Dot(
            row["condition"],
            row["condition"],
            row["value"],
            row["rating"],
            link=link_items(report.explorer, q=f'"{row["item"]}"', condition=row["condition"]),
        )
        for row in points.to_dicts()
    ]
    found = report.correlations
    pearson = [] if found is None else found.filter(level="all", measure=measure, method="pearson").to_dicts()
    return (
        Figure(
            name="ratings",
            title="Score and rating",
            subtitle=f"{heading} · {measure}",
            label=f"Ratings of {counted(len(dots), 'stimulus', 'stimuli')} against their score by {measure}.",
            chart=partial(
                chart_scatter,
                dots,
                x_title=measure,
                y_title="rating",
                corners={row["condition"]: f"r = {decimal(row['r'])}" for row in pearson},
            ),
        ),
    )


def _correlations(report: ReportInput, heading: str) -> Section | None:
    if report.correlations is None or report.correlations.is_empty():
        return None
    whole = report.correlations.filter(pl.col("level") == "all")
    return Section(
        name="ratings",
        title="Correlation with ratings",
        lede="The score of each stimulus against its mean rating, over all stimuli of a condition.",
        figures=_scatter(report, heading),
        columns=("Condition", "Measure", "Correlation", "r", "95% interval", "n"),
        rows=tuple(
            (
                row["condition"],
                row["measure"],
                row["method"],
                decimal(row["r"], 3),
                format_interval(row["low"], row["high"], places=3),
                count(row["n"]),
            )
            for row in whole.iter_rows(named=True)
        ),
        names=3,
    )


def _baselines(report: ReportInput) -> Section | None:
    """What word frequency, length and a 5-gram alone would score, beside the model."""
    found = report.baselines
    if found is None or found.is_empty():
        return None
    names = found["baseline"].unique(maintain_order=True).to_list()
    level = "suite" if found.filter(level="suite")["name"].n_unique() <= MOST_ROWS else "phenomenon"
    model = report.estimates.filter(measure=report.measures[0])
    mine = {(row["level"], row["name"]): row["accuracy"] for row in model.iter_rows(named=True)}
    values = {(row["level"], row["name"], row["baseline"]): row["accuracy"] for row in found.to_dicts()}
    part = found.filter(pl.col("level").is_in(["overall", level])).unique(
        ["level", "name"], maintain_order=True
    )
    rows = tuple(
        (
            spaced(row["name"]),
            percent(mine.get((row["level"], row["name"]))),
            *(percent(values.get((row["level"], row["name"], name))) for name in names),
            count(row["n"]),
        )
        for row in part.iter_rows(named=True)
    )
    checks = report.audit.filter(pl.col("check").str.starts_with("suites decided by") & (pl.col("count") > 0))
    return Section(
        name="baselines",
        title="Without a model",
        lede="The share of pairs that the mean frequency of the words, the length in characters (the shorter "
        "one is preferred) and a 5-gram judge right, beside the model. A suite that one of them decides, "
        "above 90% or below 10%, shows that as much as grammar.",
        columns=(level.capitalize(), "Model", *(name.capitalize() for name in names), "n"),
        rows=rows,
        notes=tuple(
            f"{row['check'].capitalize()}: {row['examples']}." for row in checks.iter_rows(named=True)
        ),
    )
