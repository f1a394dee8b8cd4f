"""Report sections about pronouns: agreement with people, preference by noun pair, mixed models."""

from functools import partial

import polars as pl

from felicity.core.wording import format_p
from felicity.report import MISSING, Figure, Section, count, decimal, percent
from felicity.report.charts import Cell, Point, SeriesPoint, chart_bands, chart_lines, chart_matrix
from felicity.studies.causality.preference import BIN_WIDTH
from felicity.studies.causality.study import CausalityStudy

GENDERS = {"m": "male subject", "f": "female subject"}
COUNTINGS = {"without bias 0": "our counting", "bias 0 wrong": "the authors' counting"}
MANY_DIGITS = 5


def report_preference(study: CausalityStudy) -> list[Section]:
    """Agreement, the matrix of noun pairs, effects and mixed models."""
    return [*_agreement(study), _matrix(study), *_models(study)]


def name_bin(lower: int) -> str:
    """A bin of bias as an interval; only the last one includes its upper end."""
    close = "]" if lower + BIN_WIDTH >= 100 else ")"
    return f"[{lower}, {lower + BIN_WIDTH}{close}"


def _agreement(study: CausalityStudy) -> list[Section]:
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
                        labels=[name_bin(lower) for lower in bins],
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
            rows.append(("all" if lower is None else name_bin(lower), *cells))
        heads = [
            f"{gender}, {said}" for said in ("ours", "authors'") for gender in ("male", "female", "both")
        ]
        found.append(
            Section(
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


def _matrix(study: CausalityStudy) -> Section:
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
            Cell(row["name"], name_bin(row["bias_bin"]), row["subject_preference"])
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
    return Section(name="preference_matrix", title="By noun pair", lede=lede, figures=tuple(figures))


def _models(study: CausalityStudy) -> list[Section]:
    curves = study.tables.get("curves")
    found = []
    if curves is not None and curves.height:
        steps = []
        for row in curves.iter_rows(named=True):
            shape = "quadratic" if row["quadratic"] else "linear"
            steps.append(
                SeriesPoint(
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
        found.append(
            Section(name="effects", title="Effects of bias and gender", lede=lede, figures=(figure,))
        )
    table = study.tables.get("mixed_models")
    if table is not None:
        found.append(tabulate_models("mixed_models", "Mixed models of preference", table, "lm"))
    return found


def tabulate_models(name: str, title: str, table: pl.DataFrame, first: str) -> Section:
    """The coefficients of mixed models, with formula and fit of each under the table."""
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
                write_p(row["p"]),
            )
        )
    for _, part in table.group_by(*keys, "formula", maintain_order=True):
        row = part.row(0, named=True)
        said = " The fit is singular: a variance or correlation is at its bound." if row["singular"] else ""
        r2 = f"R² marginal {decimal(row['r2_marginal'], 3)}, conditional {decimal(row['r2_conditional'], 3)}"
        who = " · ".join(str(row[key]) for key in keys)
        notes.append(f"{who}: {row['formula']}; n {count(row['n'])}; {r2}.{said}")
    return Section(
        name=name,
        title=title,
        lede="REML with Satterthwaite's degrees of freedom; ordinal models by Laplace's approximation.",
        columns=("Model", "Term", "Estimate", "SE", "df", "Statistic", "p"),
        rows=tuple(rows),
        names=2,
        notes=tuple(notes),
    )


def write_p(value: float) -> str:
    """A p-value for a cell of a table."""
    return format_p(value).removeprefix("p = ").removeprefix("p ")
