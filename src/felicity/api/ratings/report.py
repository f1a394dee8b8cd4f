"""The page of a rating study: what came out, then who finished, how long it took and how far they agree."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

from felicity.api.ratings.headline import head_ratings, head_texts, head_times
from felicity.api.ratings.timed import find_levels
from felicity.api.ratings.timed_sections import list_timed_sections
from felicity.core.errors import BadInput
from felicity.core.schemas import is_simulated
from felicity.humans import RatingStudy, suggest_fit
from felicity.report import Figure, Page, Provenance, Section, count, decimal, percent, write_page
from felicity.report.charts import MOST_SERIES, Point, chart_lines
from felicity.run import installed, now
from felicity.stats import (
    clean_ratings,
    find_ceilings,
    krippendorff_alpha,
    leave_one_out_reliability,
    ratings_by_item,
)
from felicity.studies.acceptability import split_settings

BOUNDS = {
    "UB1": "UB1: one rater against the mean of the rest",
    "UB2": "UB2: random half against random half",
}
MOST_VALUES = 11
MOST_RATERS = 200
MOST_DISPUTED = 12
# One stimulus: an item in a condition.
STIMULUS = pl.concat_str("item", "condition", separator=" · ")


def write_ratings_report(
    study: RatingStudy, tables: dict[str, pl.DataFrame], folder: Path, *, command: str = ""
) -> Path:
    """Write report.html and its figures from exported tables; gives the page's path.

    tables: as `build_rating_tables` gives them, with those of `analyse_timed` for a timed study.
    command: what the export was made with.
    """
    about = Provenance(
        command=command,
        version=installed("felicity"),
        notes=(
            f"Exported on {now().partition('T')[0]}.",
            "The exported tables have every answer as it was given; codebook.md explains them.",
        ),
    )
    page = build_ratings_page(study, tables)
    return write_page(page, about, folder / "report.html", eyebrow="felicity rate")


def build_ratings_page(study: RatingStudy, tables: dict[str, pl.DataFrame]) -> Page:
    """What the page of a rating study shows."""
    ratings = tables["ratings"]
    targets = ratings.filter(pl.col("role") == "target").with_columns(STIMULUS.alias("stimulus"))
    rated = targets.filter(pl.col("rating").is_not_null())
    if study.timed:
        head = head_times(study, tables)
    elif study.task.numeric:
        head = head_ratings(study, rated, find_levels(tables["design"]))
    else:
        head = head_texts(study, targets)
    sections: list[Section | None] = []
    if study.timed:
        sections += list_timed_sections(study, tables)
    if rated.height:
        sections += [
            _distribution(study, rated),
            *_agreement(study, rated),
            _disputed(rated),
        ]
    line = suggest_fit(study)
    if line:
        sections.append(Section(name="model", title="A first model", lede=line))
    sections += [_finished(tables["raters"]), _times(targets), _checks(ratings)]
    if rated.height:
        sections.append(_cleaning(study, ratings))
    return Page(
        title=study.title,
        subject="",
        question=head.question,
        answer=head.answer,
        hero=head.hero,
        sure=head.sure,
        findings=head.findings,
        sections=tuple(section for section in sections if section is not None),
        simulated=is_simulated(tables["raters"]),
    )


def _finished(raters: pl.DataFrame) -> Section:
    states = raters.group_by("state").len().sort("len", descending=True)
    done = raters.filter(pl.col("state") == "finished")
    notes = []
    if done.height:
        quartiles = [done["minutes"].quantile(share) for share in (0.25, 0.5, 0.75)]
        notes.append(
            "Minutes of those who finished, quartiles: " + ", ".join(decimal(q, 1) for q in quartiles) + "."
        )
    return Section(
        name="finished",
        title="Who finished",
        lede="Lists that were given out, by what became of them.",
        columns=("State", "n", "%"),
        rows=tuple(
            (state.replace("_", " "), count(n), percent(n / raters.height)) for state, n in states.iter_rows()
        ),
        notes=tuple(notes),
    )


def _times(targets: pl.DataFrame) -> Section | None:
    timed = targets.filter(pl.col("rt_ms").is_not_null())
    if timed.is_empty():
        return None
    rows = [
        (
            str(name or "all"),
            count(part.height),
            *(decimal(part["rt_ms"].quantile(q), 0) for q in (0.25, 0.5, 0.75)),
        )
        for (name,), part in timed.group_by("condition", maintain_order=True)
    ]
    flagged = targets.filter(pl.col("flags") != "")
    notes: tuple[str, ...] = ()
    if flagged.height:
        names = flagged["flags"].str.split(",").explode().value_counts().sort("count", descending=True)
        notes = ("Flags: " + ", ".join(f"{name} {count(n)}" for name, n in names.iter_rows()) + ".",)
    return Section(
        name="times",
        title="Answer times",
        lede="Milliseconds from display to answer, measured in the browser; targets only.",
        columns=("Condition", "n", "25%", "Median", "75%"),
        rows=tuple(rows),
        notes=notes,
    )


def _checks(ratings: pl.DataFrame) -> Section | None:
    rows = []
    for column, name in (
        ("check_passed", "Attention checks"),
        ("question_correct", "Comprehension questions"),
    ):
        given = ratings[column].drop_nulls()
        if len(given):
            rows.append((name, count(len(given)), percent(float(given.cast(pl.Float64).mean() or 0.0))))  # type: ignore[arg-type]
    if not rows:
        return None
    return Section(
        name="checks",
        title="Checks",
        lede="How many were passed.",
        columns=("Check", "n", "% right"),
        rows=tuple(rows),
    )


def _distribution(study: RatingStudy, rated: pl.DataFrame) -> Section:
    conditions = rated["condition"].unique(maintain_order=True).to_list()
    values = rated["rating"].unique().sort().to_list()
    few = len(values) <= MOST_VALUES
    rows, points = [], []
    for name in conditions:
        own = rated.filter(pl.col("condition") == name)["rating"]
        spread = own.std()
        row = [name or "all", count(len(own)), decimal(float(own.mean() or 0.0), 2)]  # type: ignore[arg-type]
        row.append(decimal(float(spread), 2) if spread is not None else "–")  # type: ignore[arg-type]
        if few:
            row += [count((own == value).sum()) for value in values]
            points += [Point(name or "all", value, 100 * (own == value).mean()) for value in values]
        rows.append(tuple(row))
    figures: tuple[Figure, ...] = ()
    if few and len(values) > 1 and len(conditions) <= MOST_SERIES:
        chart = partial(chart_lines, points, x_title="rating", y_title="ratings (%)")
        figures = (
            Figure(
                name="distribution",
                title="Ratings by condition",
                subtitle=study.title,
                label="Share of every answer, by condition.",
                chart=chart,
            ),
        )
    heads = tuple(f"{value:g}" for value in values) if few else ()
    return Section(
        name="distribution",
        title="Ratings by condition",
        lede=study.task.question,
        figures=figures,
        columns=("Condition", "n", "Mean", "SD", *heads),
        rows=tuple(rows),
    )


def _agreement(study: RatingStudy, rated: pl.DataFrame) -> list[Section]:
    scale = {"likert": "ordinal", "binary": "nominal", "choice": "nominal"}.get(study.task.kind, "interval")
    rows, notes = [], []

    def attempt(name: str, compute: Callable[[], tuple[str, ...]]) -> None:
        try:
            rows.append((name, *compute()))
        except BadInput as error:
            notes.append(f"{name}: {error}")

    def alpha() -> tuple[str, ...]:
        row = krippendorff_alpha(rated, item="stimulus", scale=scale).row(0, named=True)  # type: ignore[arg-type]
        return decimal(row["alpha"], 3), f"{decimal(row['low'], 3)} to {decimal(row['high'], 3)}"

    attempt(f"Krippendorff's alpha ({scale})", alpha)
    parts = split_settings(rated)
    for setting, part in parts.items():
        where = f", setting '{setting}'" if len(parts) > 1 else ""
        found, missing = find_ceilings(ratings_by_item(part))
        notes += [f"{one}{where}" for one in missing]
        for row in found.iter_rows(named=True):
            spread = f"{decimal(row['low'], 3)} to {decimal(row['high'], 3)} (95% of draws)"
            rows.append((f"{BOUNDS[row['bound']]}{where}", decimal(row["r"], 3), spread))
    extras = [
        Section(
            name="agreement",
            title="Agreement",
            lede="How well people predict people: ceilings for a model's correlation with the mean rating.",
            columns=("Measure", "Value", "Spread"),
            rows=tuple(rows),
            notes=tuple(notes),
        )
    ]
    try:
        own = leave_one_out_reliability(rated, item="stimulus").sort("reliability", nulls_last=True)
    except BadInput:
        return extras
    known = own["reliability"].drop_nulls()
    lede = "Spearman correlation of each rater with the mean of the others on the same stimuli."
    if len(known):
        mean, sd = float(known.to_numpy().mean()), float(known.to_numpy().std())
        lede += f" Mean {decimal(mean, 3)}, SD {decimal(sd, 3)}."
    shown = [
        (row["rater"], count(row["n"]), "–" if row["reliability"] is None else decimal(row["reliability"], 3))
        for row in own.head(MOST_RATERS).iter_rows(named=True)
    ]
    extras.append(
        Section(
            name="raters",
            title="Reliability of raters",
            lede=lede,
            columns=("Rater", "n", "Reliability"),
            rows=tuple(shown),
        )
    )
    return extras


def _disputed(rated: pl.DataFrame) -> Section | None:
    """The stimuli on which raters differ most."""
    table = (
        rated.group_by("stimulus")
        .agg(n=pl.len(), mean=pl.col("rating").mean(), sd=pl.col("rating").std(), text=pl.col("text").first())
        .filter(pl.col("n") > 1)
        .sort("sd", "stimulus", descending=[True, False])
        .head(MOST_DISPUTED)
    )
    if table.is_empty():
        return None
    rows = [
        (row["stimulus"], row["text"], count(row["n"]), decimal(row["mean"], 2), decimal(row["sd"], 2))
        for row in table.iter_rows(named=True)
    ]
    return Section(
        name="disputed",
        title="Stimuli that divide raters",
        lede="The largest standard deviations between the raters of one stimulus.",
        columns=("Stimulus", "Text", "n", "Mean", "SD"),
        rows=tuple(rows),
        names=2,
    )


def _cleaning(study: RatingStudy, ratings: pl.DataFrame) -> Section | None:
    """The steps of Lau et al. (2020), with what each would drop; the exported ratings are not changed."""
    if study.task.scale is None:
        return None
    passed = pl.col("check_passed").fill_null(True) & pl.col("question_correct").fill_null(True)
    failed = ratings.with_columns(passed.all().over("rater").alias("passed"))
    table = failed.filter(pl.col("role") == "target", pl.col("rating").is_not_null()).select(
        "rater", STIMULUS.alias("item"), "rating", "passed"
    )
    try:
        steps = clean_ratings(table, scale=study.task.scale, check="passed").steps
    except BadInput as error:
        return Section(name="cleaning", title="Cleaning", lede=str(error))
    return Section(
        name="cleaning",
        title="Cleaning",
        lede="What the rules of Lau et al. (2020), with bounds that are the same shares of this scale, would "
        "drop, step by step; the exported ratings are raw.",
        columns=("Step", "Raters", "Ratings", "Raters dropped", "Ratings dropped", "Ratings changed"),
        rows=tuple((row[0], *(count(int(cell)) for cell in row[1:])) for row in steps.iter_rows()),
    )
