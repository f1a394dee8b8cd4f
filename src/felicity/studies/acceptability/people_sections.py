"""The human side of the report: what context does to ratings, their distribution, cleaning, raters."""

from functools import partial

import polars as pl

from felicity.core.wording import format_df, format_interval, format_p
from felicity.report import Figure, Section, count, decimal, signed
from felicity.report.charts import Dot, Point, chart_lines, chart_scatter
from felicity.studies.acceptability.analysis import Results
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import label_setting

LONGEST_HOVER = 240


def show_people(results: Results) -> Section | None:
    """Ratings in one setting against another; None if there is one setting."""
    ratings = results.ratings
    if len(ratings.settings) < 2:
        return None
    texts = ratings.sentences["text"].to_list()
    dots, corners = [], {}
    for row in results["settings"].iter_rows(named=True):
        panel = f"{label_setting(row['second'])} against {label_setting(row['first'])}"
        corners[panel] = f"r = {decimal(row['r'], 3)}"
        x, y = ratings.mean(row["first"]), ratings.mean(row["second"])
        dots += [
            Dot(panel, "", a, b, hover=f"{decimal(a)}, {decimal(b)}: {shorten_sentence(text)}")
            for a, b, text in zip(x.tolist(), y.tolist(), texts, strict=True)
        ]
    figure = Figure(
        name="settings",
        title="Ratings in one setting against another",
        subtitle=ratings.name,
        label="Scatter plots of mean ratings; points above the dashed line are rated higher in the second "
        "setting.",
        chart=partial(
            chart_scatter,
            dots,
            x_title="mean rating, first setting",
            y_title="mean rating, second",
            corners=corners,
            diagonal=True,
        ),
    )
    rows = [
        (
            f"{label_setting(row['first'])}, {label_setting(row['second'])}",
            f"{decimal(row['r'], 4)} {format_interval(row['low'], row['high'], places=3)}",
            decimal(row["spearman"], 3),
            decimal(row["kendall"], 3),
            signed(row["difference"], 3),
            show_p(row["p_greater"]),
            show_p(row["p_two_sided"]),
        )
        for row in results["settings"].iter_rows(named=True)
    ]
    notes = []
    for row in results["line_tests"].filter(pl.col("term").is_in(["ctx", "x:ctx"])).iter_rows(named=True):
        what = "offset" if row["term"] == "ctx" else "slope"
        notes.append(
            f"Regression of {label_setting(row['first'])} and {label_setting(row['second'])} on "
            f"{label_setting(NONE)} (y ~ x + ctx + x:ctx): {what} {signed(row['estimate'], 3)}, "
            f"t({format_df(row['df'])}) = "
            f"{signed(row['statistic'])}, {format_p(row['p'])}."
        )
    for row in results["shifts"].iter_rows(named=True):
        if row["shift"] is not None:
            sign = "at least" if row["sentences"] == "good" else "at most"
            notes.append(
                f"{row['n']} {row['sentences']} sentences ({label_setting(NONE)} {sign} {row['bound']:g}) "
                "move by "
                f"{signed(row['shift'], 3)} in the context '{row['setting']}'"
                + ("" if row["low"] is None else f" {format_interval(row['low'], row['high'], signed, 3)}")
                + "."
            )
    for row in results["lines"].iter_rows(named=True):
        notes.append(
            f"Line of {label_setting(row['setting'])} on {label_setting(NONE)}: intercept "
            f"{decimal(row['intercept'], 3)}, slope {decimal(row['slope'], 3)} "
            f"({decimal(row['slope_low'], 3)} to "
            f"{decimal(row['slope_high'], 3)}), ratio of standard deviations {decimal(row['sd_ratio'], 3)}."
        )
    return Section(
        name="people",
        title="People's ratings with and without a context",
        lede="Mean ratings of the same sentences in two settings (the paper's scatter plots), their "
        "correlation, and "
        "Wilcoxon's signed-rank test of whether the first is rated higher.",
        figures=(figure,),
        columns=(
            "Settings",
            "Pearson's r",
            "Spearman",
            "Kendall",
            "Difference",
            "p, greater",
            "p, two-sided",
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def show_distribution(results: Results) -> Section:
    """How mean ratings are distributed in every setting."""
    points = [
        Point(label_setting(row["setting"]), (row["from"] + row["to"]) / 2, 100 * row["share"])
        for row in results["distribution"].iter_rows(named=True)
    ]
    rows = []
    for setting in results.ratings.settings:
        means = results.ratings.mean(setting)
        quarters = pl.Series(means)
        rows.append(
            (
                label_setting(setting),
                decimal(float(means.mean()), 3),
                decimal(float(means.std(ddof=1)), 3),
                *(decimal(quarters.quantile(q), 2) for q in (0.0, 0.25, 0.5, 0.75, 1.0)),
            )
        )
    figure = Figure(
        name="distribution",
        title="Mean ratings by setting",
        subtitle=results.ratings.name,
        label="Share of sentences by mean rating, one line per setting.",
        chart=partial(chart_lines, points, x_title="mean rating", y_title="sentences (%)"),
    )
    return Section(
        name="distribution",
        title="Distributions",
        lede="How mean ratings are distributed; ratings that are compressed in context have a smaller "
        "spread.",
        figures=(figure,),
        columns=("Ratings", "Mean", "SD", "Lowest", "25%", "Median", "75%", "Highest"),
        rows=tuple(rows),
    )


def show_cleaning(results: Results) -> Section | None:
    """What cleaning did, step by step; None if nothing was cleaned."""
    steps = results["cleaning"]
    if steps.is_empty():
        return None
    return Section(
        name="cleaning",
        title="Cleaning",
        lede="What each step of the paper's rules did to the raw ratings.",
        columns=("Setting", "Step", "Raters", "Ratings", "Raters dropped", "Ratings dropped", "Changed"),
        rows=tuple(
            (row["setting"], row["step"], *(count(row[name]) for name in steps.columns[2:]))
            for row in steps.iter_rows(named=True)
        ),
        names=2,
    )


def show_ordinal(results: Results) -> Section | None:
    """The ordinal mixed models of single ratings; None if none was fitted."""
    if results["ordinal"].is_empty():
        return None
    return Section(
        name="ordinal",
        title="Ordinal mixed models",
        lede="Single ratings as ordered answers (cumulative logit), with random intercepts of raters and "
        "sentences; a "
        "score is in standard deviations, and in the context that the rater saw.",
        columns=("Model", "Term", "Estimate", "95% interval", "p", "n"),
        rows=tuple(
            (
                row["formula"],
                row["term"],
                signed(row["estimate"], 3),
                format_interval(row["low"], row["high"], signed, 3),
                show_p(row["p"]),
                count(row["n"]),
            )
            for row in results["ordinal"].iter_rows(named=True)
        ),
        names=2,
    )


def show_p(p: float | None) -> str:
    """A p-value as a cell of a table."""
    return format_p(p).removeprefix("p ").removeprefix("= ")


def shorten_sentence(text: str) -> str:
    """A sentence as a hover text."""
    return text if len(text) <= LONGEST_HOVER else f"{text[: LONGEST_HOVER - 1]}…"
