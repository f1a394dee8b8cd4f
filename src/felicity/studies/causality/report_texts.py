"""Report sections about what models write: continuations, their references and flags, and people's ratings.

A flagged continuation is counted, but its text is never shown.
"""

from functools import partial
from typing import Any

import polars as pl

from felicity.report import Figure, Section, count, decimal, percent, signed
from felicity.report.charts import Point, chart_lines
from felicity.studies.causality.preference import describe_models
from felicity.studies.causality.ratings import POINTS, RatingFindings
from felicity.studies.causality.report_preference import name_bin, tabulate_models, write_p
from felicity.studies.causality.study import CausalityStudy

FREQUENT = 10
EXAMPLES = 2


def report_continuations(study: CausalityStudy) -> list[Section]:
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


def _references(study: CausalityStudy) -> Section:
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
        subtitle=study.record["source"],
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


def _flags(study: CausalityStudy) -> Section:
    rows = []
    for one in study.models:
        if one.written is None:
            continue
        flagged = int(one.written["flagged"].sum())
        rows.append((one.name, "any", count(flagged), percent(flagged / max(one.written.height, 1))))
        own = study.tables["flags"].filter(lm=one.name) if "flags" in study.tables else pl.DataFrame()
        for row in own.iter_rows(named=True):
            rows.append((one.name, row["reason"], count(row["n"]), percent(row["n"] / one.written.height)))
    return Section(
        name="flags",
        title="Flagged continuations",
        lede="Continuations that a person must read before a rater sees them; they are not shown here.",
        columns=("Model", "Reason", "n", "Share (%)"),
        rows=tuple(rows),
        names=2,
    )


def report_ratings(found: RatingFindings) -> list[Section]:
    """Ratings of continuations, mixed models of them, their correlations with the model, and examples."""
    summary = found.summary
    reliability = (
        f"Reliability of raters: mean {decimal(summary['reliability_mean'], 3)}, SD "
        f"{decimal(summary['reliability_sd'], 3)}; {summary['below_cutoff']} below .4."
    )
    points = [
        Point("ratings", point, 100 * share)
        for point, share in found.counts.select("point", "share").iter_rows()
    ]
    figure = Figure(
        name="ratings",
        title="Ratings of continuations",
        subtitle=f"{count(summary['ratings'])} ratings",
        label="Share of each point of the scale.",
        chart=partial(chart_lines, points, x_title="rating", y_title="ratings (%)"),
    )
    joined = found.counts.join(found.thresholds, on="point").sort("point")
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
    notes = [reliability, *found.notes]
    if alpha is not None:
        notes.insert(1, f"Krippendorff's alpha (ordinal): {decimal(alpha, 3)}.")
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
    if found.models:
        table = describe_models(found.models)
        sections.append(tabulate_models("rating_models", "Mixed models of ratings", table, "model"))
    sections += [_correlations(found), *_examples(found)]
    return sections


def _correlations(found: RatingFindings) -> Section:
    rows = [
        (
            row["measure"],
            count(row["n"]),
            signed(row["r"], 3),
            f"{signed(row['low'], 3)} to {signed(row['high'], 3)}",
            write_p(row["p"]),
        )
        for row in found.correlations.iter_rows(named=True)
    ]
    return Section(
        name="rating_correlations",
        title="Does the model know when it is wrong?",
        lede="Spearman correlation of the mean rating with what the model itself says of the same sentence.",
        columns=("Measure", "n", "ρ", "95% CI", "p"),
        rows=tuple(rows),
    )


def _examples(found: RatingFindings) -> list[Section]:
    """Continuations by bin of bias, the best and the worst rated, without flagged ones."""
    if not {"continuation", "flagged", "bias_bin"} <= set(found.items.columns):
        return []
    clean = found.items.filter(~pl.col("flagged"))
    rows: list[tuple[Any, ...]] = []
    for (lower,), part in sorted(clean.group_by("bias_bin")):
        ranked = part.sort("mean", "sentence", descending=[True, False])
        for which, chosen in (("best", ranked.head(EXAMPLES)), ("worst", ranked.tail(EXAMPLES))):
            for row in chosen.iter_rows(named=True):
                text = f"{row['sentence']} {row['continuation']}."
                rows.append((name_bin(int(lower)), which, text, decimal(row["mean"], 2)))
    return [
        Section(
            name="examples",
            title="Examples",
            lede=f"The {EXAMPLES} best and the {EXAMPLES} worst rated continuations of every bin of bias.",
            columns=("Bias", "", "Sentence", f"Mean of {POINTS[0]}–{POINTS[-1]}"),
            rows=tuple(rows),
            names=3,
        )
    ]
