"""Sections of the page about what models write: continuations, references, flags, and people's ratings.

A flagged continuation is counted, but its text is never shown.
"""

from functools import partial

import polars as pl

from felicity.core.wording import p_cell
from felicity.report import Figure, Section, count, decimal, percent, signed
from felicity.report.charts import Point, chart_lines
from felicity.studies.causality.preference_sections import name_bin, tabulate_models
from felicity.studies.causality.ratings import EXAMPLES, POINTS
from felicity.studies.study import Study

FREQUENT = 10


def show_continuations(study: Study) -> list[Section]:
    """How varied continuations are, the most frequent ones, whom they refer to, and flags."""
    tables = study.tables
    if "diversity" not in tables:
        return []
    heads = (
        "Model",
        "Continuations",
        "Distinct",
        "Over 100 times (%)",
        "Words",
        *(f"Distinct-{n}" for n in (1, 2, 3)),
    )
    rows = [
        (
            row["lm"],
            count(row["n"]),
            count(row["distinct"]),
            percent(row["repeated_often"]),
            decimal(row["mean_words"], 1),
            *(decimal(row[f"distinct_{n}"], 3) for n in (1, 2, 3)),
        )
        for row in tables["diversity"].iter_rows(named=True)
    ]
    diversity = Section(
        name="diversity",
        title="Continuations",
        lede="How varied the continuations are. Distinct-n is the share of different n-grams of words.",
        columns=heads,
        rows=tuple(rows),
    )
    shown = [
        (row["lm"], row["continuation"], count(row["n"]), count(row["verbs"]))
        for (_,), part in tables["frequent"].group_by("lm", maintain_order=True)
        for row in part.head(FREQUENT).iter_rows(named=True)
    ]
    frequent = Section(
        name="frequent",
        title="Most frequent continuations",
        lede="Continuations without a flag that occur most often, and after how many verbs.",
        columns=("Model", "Continuation", "n", "Verbs"),
        rows=tuple(shown),
        names=2,
    )
    return [diversity, frequent, _references(study), _flags(study)]


def _references(study: Study) -> Section:
    table = study.tables["references"]
    bins = sorted(table["bias_bin"].unique().to_list())
    points = [
        Point(row["lm"], bins.index(row["bias_bin"]), 100 * row["subject_share"])
        for row in table.iter_rows(named=True)
        if row["subject_share"] is not None
    ]
    figure = Figure(
        name="references",
        title="Continuations that refer to the subject",
        subtitle=study.facts["stimuli"],
        label="Share of continuations whose first pronoun or noun is the subject, by bias of the verb.",
        chart=partial(
            chart_lines,
            points,
            x_title="bias of the verb",
            y_title="referring to the subject (%)",
            labels=[name_bin(lower) for lower in bins],
            level=50,
        ),
    )
    rows = [
        (
            row["lm"],
            name_bin(row["bias_bin"]),
            *(count(row[name]) for name in ("n", "subject", "object", "unknown")),
            percent(row["subject_share"]),
        )
        for row in table.iter_rows(named=True)
    ]
    return Section(
        name="references",
        title="Which noun a continuation refers to",
        lede="By the gender of the first pronoun, or the noun repeated; others are unknown.",
        figures=(figure,) if points else (),
        columns=("Model", "Bias", "n", "Subject", "Object", "Unknown", "Subject (%)"),
        rows=tuple(rows),
        names=2,
    )


def _flags(study: Study) -> Section:
    rows = []
    written = study["continuations"].group_by("lm", maintain_order=True)
    for lm, n, flagged in written.agg(n=pl.len(), flagged=pl.col("flagged").sum()).iter_rows():
        rows.append((lm, "any", count(flagged), percent(flagged / n)))
        reasons = study["flags"].filter(lm=lm) if "flags" in study.tables else pl.DataFrame()
        for row in reasons.iter_rows(named=True):
            rows.append((lm, row["reason"], count(row["n"]), percent(row["n"] / n)))
    return Section(
        name="flags",
        title="Flagged continuations",
        lede="Continuations that a person must read before a rater sees them; they are not shown here.",
        columns=("Model", "Reason", "n", "Share (%)"),
        rows=tuple(rows),
        names=2,
    )


def show_ratings(study: Study) -> list[Section]:
    """Ratings of continuations, mixed models of them, their correlations with the model, and examples."""
    if "rating_summary" not in study.tables:
        return []
    summary = study["rating_summary"].row(0, named=True)
    counts = study["rating_counts"]
    reliability = (
        f"Reliability of raters: mean {decimal(summary['reliability_mean'], 3)}, SD "
        f"{decimal(summary['reliability_sd'], 3)}; {summary['below_cutoff']} below .4."
    )
    points = [
        Point("ratings", point, 100 * share) for point, share in counts.select("point", "share").iter_rows()
    ]
    figure = Figure(
        name="ratings",
        title="Ratings of continuations",
        subtitle=f"{count(summary['ratings'])} ratings",
        label="Share of each point of the scale.",
        chart=partial(chart_lines, points, x_title="rating", y_title="ratings (%)"),
    )
    joined = counts.join(study["rating_thresholds"], on="point").sort("point")
    rows = [
        (
            str(row["point"]),
            count(row["n"]),
            percent(row["share"]),
            percent(row["at_or_above"]),
            count(row["all_raters"]),
        )
        for row in joined.iter_rows(named=True)
    ]
    alpha = summary.get("alpha")
    notes = [reliability]
    if alpha is not None:
        notes.append(f"Krippendorff's alpha (ordinal): {decimal(alpha, 3)}.")
    sections = [
        Section(
            name="ratings",
            title="Ratings of continuations",
            lede=f"{count(summary['ratings'])} ratings of {count(summary['items'])} continuations by "
            f"{count(summary['raters'])} raters, from 1 (strongly disagree) to 5 (strongly agree that the "
            "continuation is reasonable).",
            figures=(figure,),
            columns=("Point", "Ratings", "Share (%)", "Average at or above (%)", "Given by all raters"),
            rows=tuple(rows),
            notes=tuple(notes),
        )
    ]
    if "rating_models" in study.tables:
        table = study["rating_models"]
        sections.append(tabulate_models("rating_models", "Mixed models of ratings", table, "model"))
    if "rating_correlations" in study.tables:
        sections.append(_correlations(study))
    return sections + ([_examples(study)] if "rating_examples" in study.tables else [])


def _correlations(study: Study) -> Section:
    rows = [
        (
            row["measure"],
            count(row["n"]),
            signed(row["r"], 3),
            f"{signed(row['low'], 3)} to {signed(row['high'], 3)}",
            p_cell(row["p"]),
        )
        for row in study["rating_correlations"].iter_rows(named=True)
    ]
    return Section(
        name="rating_correlations",
        title="Does the model know when it is wrong?",
        lede="Spearman correlation of the mean rating with what the model itself says of the same sentence.",
        columns=("Measure", "n", "ρ", "95% CI", "p"),
        rows=tuple(rows),
    )


def _examples(study: Study) -> Section:
    """Continuations by bin of bias, the best and the worst rated."""
    rows = [
        (
            name_bin(row["bias_bin"]),
            row["rated"],
            f"{row['sentence']} {row['continuation']}.",
            decimal(row["mean"], 2),
        )
        for row in study["rating_examples"].iter_rows(named=True)
    ]
    return Section(
        name="examples",
        title="Examples",
        lede=f"The {EXAMPLES} best and the {EXAMPLES} worst rated continuations of every bin of bias.",
        columns=("Bias", "Kind", "Sentence", f"Mean of {POINTS[0]}–{POINTS[-1]}"),
        rows=tuple(rows),
        names=3,
    )
