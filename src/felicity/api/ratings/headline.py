"""What the page of a rating study says first: the question, the answer, one figure and how sure it is."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from felicity.api.ratings.contrasts import compare_to_first
from felicity.core.wording import format_p, is_detected
from felicity.humans import RatingStudy
from felicity.report import Figure, count, counted, decimal, signed
from felicity.report.charts import MOST_SERIES, Estimate, Point, chart_estimates, chart_lines
from felicity.stats import average_cells

NOBODY = "Nobody has finished yet, so there is no answer."


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The first screen of a page."""

    question: str
    answer: str
    hero: Figure | None = None
    sure: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def head_ratings(study: RatingStudy, rated: pl.DataFrame, levels: list[str]) -> Headline:
    """Of ratings: the mean of each condition, and how the conditions differ.

    rated: the ratings of targets. Shares are shown as percentages.
    """
    shares = study.task.kind in ("binary", "choice")
    factor, places, sign = (100.0, 1, "%") if shares else (1.0, 2, "")
    scaled = rated.with_columns(pl.col("rating") * factor)
    question = f"{study.task.question.rstrip('?.')}: which condition is rated higher, and by how much?"
    if len(levels) == 1:
        question = study.task.question
    means = _average(scaled)
    listed = ", ".join(f"{name or 'all'} {decimal(row['mean'], places)}{sign}" for name, row in means.items())
    unit, unit_name = _choose_unit(rated, levels)
    found = compare_to_first(scaled, unit=unit, y="rating", levels=levels)
    raters, items = rated["rater"].n_unique(), rated["item"].n_unique()
    sure = [
        f"{counted(rated.height, 'rating')} of {counted(items, 'item')} by {counted(raters, 'rater')}; "
        f"means: {listed}."
    ]
    if found.is_empty():
        answer = _describe_mean(study, means, levels, places, sign)
    else:
        sentences = [_describe(row, places, sign) for row in found.iter_rows(named=True)]
        answer = sentences[0]
        sure.append(
            f"Differences are means over {unit_name}, with Student's 95% intervals and t tests; the mixed "
            "model below takes raters and items together."
        )
        return Headline(
            question=question,
            answer=answer,
            hero=_show_differences(study, found, sign),
            sure=tuple(sure),
            findings=tuple(sentences[1:]),
        )
    return Headline(question=question, answer=answer, hero=_show_mean(study, means, sign), sure=tuple(sure))


def _average(rated: pl.DataFrame) -> dict[str, dict[str, float]]:
    own = rated.group_by("rater", "condition", maintain_order=True).agg(pl.col("rating").mean())
    cells = average_cells(own, y="rating", x="condition")
    return {row["x"]: row for row in cells.iter_rows(named=True)}


def _choose_unit(rated: pl.DataFrame, levels: list[str]) -> tuple[str, str]:
    """Raters who saw several conditions are compared with themselves; otherwise items are."""
    seen = rated.group_by("rater").agg(pl.col("condition").n_unique())["condition"]
    return ("rater", "raters") if len(levels) > 1 and (seen > 1).sum() > 1 else ("item", "items")


def _describe(row: dict[str, Any], places: int, sign: str) -> str:
    difference, low, high, p = (row[name] for name in ("difference", "low", "high", "p"))
    points = " points" if sign else ""
    span = f"[{decimal(low, places)}, {decimal(high, places)}], {format_p(p)}"
    pair = f"{row['condition'] or 'all'} and {row['baseline'] or 'all'}"
    way = "higher" if difference > 0 else "lower"
    size = decimal(abs(difference), places)
    claim = f"Ratings of {row['condition']} are {size}{points} {way} than of {row['baseline']}"
    if p is None and difference:
        # Without any spread there is no test, and no need of one.
        return f"{claim}, without exception."
    if not is_detected(p):
        return f"No detectable difference between {pair}: {signed(difference, places)}{points} {span}."
    return f"{claim} {span}."


def _describe_mean(
    study: RatingStudy, means: dict[str, dict[str, float]], levels: list[str], places: int, sign: str
) -> str:
    row = means.get(levels[0]) if levels else None
    if row is None:
        return NOBODY
    what = {
        "choice": "The first sentence of a pair is preferred in",
        "binary": f"'{study.task.options[0] if study.task.options else ''}' is the answer in",
    }.get(study.task.kind, "The mean rating is")
    span = "" if row["low"] is None else f" [{decimal(row['low'], places)}, {decimal(row['high'], places)}]"
    of = " of the trials" if sign else ""
    return f"{what} {decimal(row['mean'], places)}{sign}{of}{span}."


def _show_differences(study: RatingStudy, found: pl.DataFrame, sign: str) -> Figure:
    rows = [
        Estimate(row["condition"], row["difference"], row["low"], row["high"])
        for row in found.iter_rows(named=True)
    ]
    axis = f"difference from {found['baseline'][0]}" + (" (percentage points)" if sign else "")
    return Figure(
        name="differences",
        title="Conditions compared with the first",
        subtitle=study.title,
        label=f"{counted(len(rows), 'difference')} between conditions with 95% intervals and a line at zero.",
        chart=partial(chart_estimates, rows, axis=axis),
    )


def _show_mean(study: RatingStudy, means: dict[str, dict[str, float]], sign: str) -> Figure | None:
    rows = [
        Estimate(name or "all", row["mean"], row["low"], row["high"])
        for name, row in means.items()
        if row["low"] is not None
    ]
    if not rows:
        return None
    ends = study.task.scale
    levels = {"chance": 50.0} if sign else ({"middle of the scale": sum(ends) / 2} if ends else None)
    return Figure(
        name="means",
        title="Mean rating",
        subtitle=study.title,
        label="The mean rating with its 95% interval over raters.",
        chart=partial(chart_estimates, rows, axis="answers (%)" if sign else "rating", levels=levels),
    )


def head_times(study: RatingStudy, tables: dict[str, pl.DataFrame]) -> Headline:
    """Of word times: where the conditions differ most."""
    curves, found, words = tables["curves"], tables["differences"], tables["words"]
    question = "Where do readers slow down, and in which condition?"
    if curves.is_empty():
        return Headline(question=question, answer=NOBODY)
    marked = words.filter(pl.col("outlier") != "").height
    timing = tables["timing"]
    certified = int(timing["certified"].sum())
    sure = [
        f"{counted(words.height, 'word time')} of {counted(words['rater'].n_unique(), 'rater')}; "
        f"{count(marked)} are outliers and left out of the means.",
        f"The browsers of {certified} of {counted(timing.height, 'rater')} kept time: every trial measured, "
        "at most 1% of frames dropped, a clock of 1 ms or finer.",
    ]
    hero = _show_curves(study, curves)
    if found.is_empty():
        slowest = curves.sort("mean", descending=True).row(0, named=True)
        answer = f"Region {slowest['region']} is read most slowly: {decimal(slowest['mean'], 0)} ms per word."
        return Headline(question=question, answer=answer, hero=hero, sure=tuple(sure))
    sure.append(
        "Differences are within raters, with Student's 95% intervals; p is adjusted for "
        f"{counted(found.height, 'comparison')} (Holm)."
    )
    detected = [row for row in found.iter_rows(named=True) if is_detected(row["p_holm"])]
    if not detected:
        regions = counted(curves["region"].n_unique(), "region")
        answer = f"No detectable difference between conditions in any of {regions}."
        return Headline(question=question, answer=answer, hero=hero, sure=tuple(sure))
    ranked = sorted(detected, key=lambda row: -abs(row["difference"]))
    sentences = [_describe_time(row) for row in ranked]
    return Headline(
        question=question, answer=sentences[0], hero=hero, sure=tuple(sure), findings=tuple(sentences[1:])
    )


def _describe_time(row: dict[str, Any]) -> str:
    gap = float(row["difference"])
    way = "slower" if gap > 0 else "faster"
    span = f"[{decimal(row['low'], 0)}, {decimal(row['high'], 0)}], {format_p(row['p_holm'])}"
    return (
        f"In region {row['region']}, {row['condition']} is read {decimal(abs(gap), 0)} ms per word {way} "
        f"than {row['baseline']} {span}."
    )


def _show_curves(study: RatingStudy, curves: pl.DataFrame) -> Figure:
    regions = curves["region"].unique(maintain_order=True).to_list()
    conditions = curves["condition"].unique(maintain_order=True).to_list()[:MOST_SERIES]
    points = [
        Point(row["condition"] or "all", regions.index(row["region"]), row["mean"], row["low"], row["high"])
        for row in curves.iter_rows(named=True)
        if row["condition"] in conditions
    ]
    return Figure(
        name="curves",
        title="Time per word by region",
        subtitle=study.title,
        label=f"Mean milliseconds per word in {len(regions)} regions, one line per condition, with 95% "
        "intervals over raters.",
        chart=partial(chart_lines, points, x_title="region", y_title="milliseconds per word", labels=regions),
    )


def head_texts(study: RatingStudy, targets: pl.DataFrame) -> Headline:
    """Of written answers: how often people write the same."""
    if targets.is_empty():
        return Headline(question=study.task.question, answer=NOBODY)
    most = (
        targets.group_by("item", "condition", "normalised")
        .len()
        .group_by("item", "condition")
        .agg(pl.col("len").max() / pl.col("len").sum())
    )
    shared = int((most["len"] > 0.5).sum())
    mean = float(most["len"].to_numpy().mean())
    return Headline(
        question=study.task.question,
        answer=f"For {shared} of {counted(most.height, 'stimulus', 'stimuli')}, more than half of the raters "
        "write the same.",
        sure=(
            f"{counted(targets.height, 'answer')} by {counted(targets['rater'].n_unique(), 'rater')}; on "
            f"average {decimal(100 * mean, 1)}% give the commonest answer.",
        ),
    )
