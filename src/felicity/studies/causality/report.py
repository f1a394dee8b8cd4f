"""The report of the study: agreement with people, mixed models, continuations and their ratings.

A flagged continuation is counted in the report, but its text is never shown.
"""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.report import MISSING, Extra, Figure, count, decimal, percent, signed, write_sections
from felicity.report.charts import (
    Cell,
    Point,
    Step,
    chart_bands,
    chart_lines,
    chart_matrix,
)
from felicity.stats import say_p
from felicity.studies.causality.findings import Finding, check_preference, check_ratings
from felicity.studies.causality.preference import BIN_WIDTH, describe_models
from felicity.studies.causality.ratings import POINTS, RatingFindings
from felicity.studies.causality.study import CausalityStudy

GENDERS = {"m": "male subject", "f": "female subject"}
COUNTINGS = {"without bias 0": "our counting", "bias 0 wrong": "the authors' counting"}
FREQUENT = 10
EXAMPLES = 2
MANY_DIGITS = 5


def write_causality_report(study: CausalityStudy, folder: Path) -> Path:
    """Write report.html and its figures into the folder; gives the page's path."""
    names = ", ".join(one.name for one in study.models)
    sections = [_findings(study), *_agreement(study), _matrix(study), *_models(study)]
    sections += _continuations(study)
    if study.ratings is not None:
        sections += _ratings(study.ratings)
    prompts = study.stimuli.height
    return write_sections(
        [section for section in sections if section is not None],
        folder / "report.html",
        eyebrow="Implicit causality",
        title=f"Implicit causality: {names}",
        subject=str(study.record["source"]),
        meta=f"{count(prompts)} prompts with {count(_verbs(study))} verbs · after Huynh et al. (2022)",
    )


def _verbs(study: CausalityStudy) -> int:
    return study.stimuli["verb"].n_unique()


def _findings(study: CausalityStudy) -> Extra:
    rows = []
    for one in study.models:
        table = study.tables["agreement"].filter(lm=one.name)
        rows += [_told(one.name, found) for found in check_preference(one.fitted.models, table)]
    if study.ratings is not None:
        rows += [_told("ratings", found) for found in check_ratings(study.ratings)]
    notes = [*study.record.get("notes", [])]
    notes += [note for one in study.models for note in one.fitted.notes]
    return Extra(
        name="findings",
        title="The paper's findings",
        lede="Whether each finding of Huynh et al. (2022) holds here, at the level .05.",
        columns=("", "Finding", "Here", "Figures"),
        rows=tuple(rows),
        names=4,
        notes=tuple(notes),
    )


def _told(name: str, found: Finding) -> tuple[str, ...]:
    return (name, found.claim, found.verdict, found.figures)


def _name_bin(lower: int) -> str:
    close = "]" if lower + BIN_WIDTH >= 100 else ")"
    return f"[{lower}, {lower + BIN_WIDTH}{close}"


def _agreement(study: CausalityStudy) -> list[Extra]:
    """Figure 1 of the paper, one section per model, both countings in the table."""
    found = []
    for one in study.models:
        table = study.tables["agreement"].filter(lm=one.name)
        bins = sorted(table["bias_bin"].drop_nulls().unique().to_list())
        if not bins:
            continue
        figures = []
        for counting, said in COUNTINGS.items():
            part = table.filter(pl.col("bias_bin").is_not_null(), counting=counting)
            points = [
                Point(
                    GENDERS[row["subject_gender"]],
                    bins.index(row["bias_bin"]),
                    *(100 * row[name] for name in ("agreement", "low", "high")),
                )
                for row in part.filter(pl.col("subject_gender") != "all").iter_rows(named=True)
            ]
            figures.append(
                Figure(
                    name=f"agreement_{one.name}_{counting.replace(' ', '_')}",
                    title=f"Agreement with people's bias: {one.name}",
                    subtitle=said,
                    label=f"Share of prompts whose pronoun matches the verb's bias, by bias, {said}.",
                    chart=partial(
                        chart_lines,
                        points,
                        x_title="bias of the verb (negative: to the object)",
                        y_title=f"matching (%), {said}",
                        labels=[_name_bin(lower) for lower in bins],
                        level=50,
                    ),
                )
            )
        rows = []
        for lower in [*bins, None]:
            cells = []
            for counting in COUNTINGS:
                for gender in ("m", "f", "all"):
                    own = table.filter(
                        pl.col("bias_bin").is_null() if lower is None else pl.col("bias_bin") == lower,
                        counting=counting,
                        subject_gender=gender,
                    )
                    cells.append(percent(own["agreement"][0]) if own.height else MISSING)
            rows.append(("all" if lower is None else _name_bin(lower), *cells))
        heads = [
            f"{gender}, {said}" for said in ("ours", "authors'") for gender in ("male", "female", "both")
        ]
        found.append(
            Extra(
                name=f"agreement_{one.name}",
                title=f"Agreement with people's bias: {one.name}",
                lede="Figure 1 of the paper: share of prompts after which the model expects the noun that "
                "people hold responsible, in left-closed bins of bias. Verbs of bias 0 predict nothing; our "
                "counting leaves them out, the authors' counts them as wrong.",
                figures=tuple(figures),
                columns=("Bias", *heads),
                rows=tuple(rows),
            )
        )
    return found


def _matrix(study: CausalityStudy) -> Extra | None:
    """Mean preference by bias and noun pair."""
    figures = []
    for one in study.models:
        known = one.preference.drop_nulls("bias_bin")
        pairs = known.group_by("noun_pair", maintain_order=True).agg(
            pl.concat_str("subject", "object", separator=" / ").first().alias("name")
        )
        named = known.join(pairs, on="noun_pair", how="left")
        means = (
            named.group_by("name", "bias_bin", maintain_order=True)
            .agg(pl.col("subject_preference").mean())
            .sort("bias_bin", maintain_order=True)
        )
        cells = [
            Cell(row["name"], _name_bin(row["bias_bin"]), row["subject_preference"])
            for row in means.iter_rows(named=True)
        ]
        figures.append(
            Figure(
                name=f"preference_matrix_{one.name}",
                title=f"Subject preference by noun pair: {one.name}",
                subtitle=study.record["source"],
                label="Mean subject preference in bits by noun pair and bias of the verb.",
                chart=partial(
                    chart_matrix, cells, row_title="noun pair", column_title="bias of the verb", unit="bits"
                ),
            )
        )
    lede = (
        "Mean subject preference in bits: surprisal of the pronoun for the object minus that for the subject."
    )
    return Extra(name="preference_matrix", title="By noun pair", lede=lede, figures=tuple(figures))


def _models(study: CausalityStudy) -> list[Extra]:
    curves = study.tables.get("curves")
    found = []
    if curves is not None and curves.height:
        steps = []
        for row in curves.iter_rows(named=True):
            shape = "quadratic" if row["quadratic"] else "linear"
            steps.append(
                Step(
                    f"{row['lm']}, {shape}",
                    GENDERS[row["subject_gender"]],
                    row["bias"],
                    *(row[name] for name in ("preference", "low", "high")),
                )
            )
        chart = partial(
            chart_bands, steps, x_title="bias of the verb", y_title="subject preference (bits)", level=0.0
        )
        figure = Figure(
            name="effects",
            title="Effects of bias and gender",
            subtitle=study.record["source"],
            label="Subject preference by bias and gender of the subject, as the mixed models predict it.",
            chart=chart,
        )
        lede = "Subject preference as the mixed models predict it, linear or quadratic in bias."
        found.append(Extra(name="effects", title="Effects of bias and gender", lede=lede, figures=(figure,)))
    table = study.tables.get("mixed_models")
    if table is not None:
        found.append(_model_table("mixed_models", "Mixed models of preference", table, "lm"))
    return found


def _model_table(name: str, title: str, table: pl.DataFrame, first: str) -> Extra:
    rows, notes = [], []
    keys = [key for key in dict.fromkeys((first, "model")) if key in table.columns]
    for row in table.iter_rows(named=True):
        rows.append(
            (
                " · ".join(str(row[key]) for key in keys),
                row["term"],
                decimal(row["estimate"], MANY_DIGITS),
                decimal(row["se"], MANY_DIGITS),
                decimal(row["df"], 1),
                decimal(row["statistic"], 2),
                _p(row["p"]),
            )
        )
    for _, part in table.group_by(*keys, "formula", maintain_order=True):
        row = part.row(0, named=True)
        said = " The fit is singular: a variance or correlation is at its bound." if row["singular"] else ""
        r2 = f"R² marginal {decimal(row['r2_marginal'], 3)}, conditional {decimal(row['r2_conditional'], 3)}"
        who = " · ".join(str(row[key]) for key in keys)
        notes.append(f"{who}: {row['formula']}; n {count(row['n'])}; {r2}.{said}")
    return Extra(
        name=name,
        title=title,
        lede="REML with Satterthwaite's degrees of freedom; ordinal models by Laplace's approximation.",
        columns=("Model", "Term", "Estimate", "SE", "df", "Statistic", "p"),
        rows=tuple(rows),
        names=2,
        notes=tuple(notes),
    )


def _p(value: float) -> str:
    return say_p(value).removeprefix("p = ").removeprefix("p ")


def _continuations(study: CausalityStudy) -> list[Extra]:
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
    diversity = Extra(
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
    frequent = Extra(
        name="frequent",
        title="Most frequent continuations",
        lede="Continuations without a flag that occur most often, and after how many verbs.",
        columns=("Model", "Continuation", "n", "Verbs"),
        rows=tuple(shown),
        names=2,
    )
    return [diversity, frequent, _references(study), _flags(study)]


def _references(study: CausalityStudy) -> Extra:
    table = study.tables["references"]
    bins = sorted(table["bias_bin"].unique().to_list())
    points = [
        Point(row["lm"], bins.index(row["bias_bin"]), 100 * row["subject_share"])
        for row in table.iter_rows(named=True)
        if row["subject_share"] is not None
    ]
    figure = Figure(
        name="references",
        title="Continuations that take up the subject",
        subtitle=study.record["source"],
        label="Share of continuations whose first pronoun or noun is the subject, by bias of the verb.",
        chart=partial(
            chart_lines,
            points,
            x_title="bias of the verb",
            y_title="taking up the subject (%)",
            labels=[_name_bin(lower) for lower in bins],
            level=50,
        ),
    )
    rows = [
        (
            row["lm"],
            _name_bin(row["bias_bin"]),
            *(count(row[name]) for name in ("n", "subject", "object", "unknown")),
            percent(row["subject_share"]),
        )
        for row in table.iter_rows(named=True)
    ]
    return Extra(
        name="references",
        title="Which noun a continuation takes up",
        lede="By the gender of the first pronoun, or the noun said again; what begins otherwise is unknown.",
        figures=(figure,) if points else (),
        columns=("Model", "Bias", "n", "Subject", "Object", "Unknown", "Subject (%)"),
        rows=tuple(rows),
        names=2,
    )


def _flags(study: CausalityStudy) -> Extra:
    rows = []
    for one in study.models:
        if one.written is None:
            continue
        flagged = int(one.written["flagged"].sum())
        rows.append((one.name, "any", count(flagged), percent(flagged / max(one.written.height, 1))))
        own = study.tables["flags"].filter(lm=one.name) if "flags" in study.tables else pl.DataFrame()
        for row in own.iter_rows(named=True):
            rows.append((one.name, row["reason"], count(row["n"]), percent(row["n"] / one.written.height)))
    return Extra(
        name="flags",
        title="Flagged continuations",
        lede="Continuations that a person must read before a rater sees them; they are not shown here.",
        columns=("Model", "Reason", "n", "Share (%)"),
        rows=tuple(rows),
        names=2,
    )


def _ratings(found: RatingFindings) -> list[Extra]:
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
        Extra(
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
        sections.append(_model_table("rating_models", "Mixed models of ratings", table, "model"))
    sections += [_correlations(found), *_examples(found)]
    return sections


def _correlations(found: RatingFindings) -> Extra:
    rows = [
        (
            row["measure"],
            count(row["n"]),
            signed(row["r"], 3),
            f"{signed(row['low'], 3)} to {signed(row['high'], 3)}",
            _p(row["p"]),
        )
        for row in found.correlations.iter_rows(named=True)
    ]
    return Extra(
        name="rating_correlations",
        title="Does the model know when it is wrong?",
        lede="Spearman correlation of the mean rating with what the model itself says of the same sentence.",
        columns=("Measure", "n", "ρ", "95% CI", "p"),
        rows=tuple(rows),
    )


def _examples(found: RatingFindings) -> list[Extra]:
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
                rows.append((_name_bin(int(lower)), which, text, decimal(row["mean"], 2)))
    return [
        Extra(
            name="examples",
            title="Examples",
            lede=f"The {EXAMPLES} best and the {EXAMPLES} worst rated continuations of every bin of bias.",
            columns=("Bias", "", "Sentence", f"Mean of {POINTS[0]}–{POINTS[-1]}"),
            rows=tuple(rows),
            names=3,
        )
    ]
