"""Sections of the page about pronouns: agreement with people, preference by noun pair, mixed models."""

from functools import partial

import polars as pl

from felicity.core.wording import p_cell
from felicity.report import MISSING, Figure, Linked, Section, count, decimal, percent
from felicity.report.charts import Cell, SeriesPoint, chart_bands, chart_matrix
from felicity.run import name_folder
from felicity.studies.causality.findings import COUNTED
from felicity.studies.causality.preference import BIN_WIDTH
from felicity.studies.study import Study

GENDERS = {"m": "male subject", "f": "female subject"}
COUNTINGS = (COUNTED, "bias 0 wrong")
MANY_DIGITS = 5


def show_preference(study: Study) -> list[Section]:
    """Agreement as a table, the matrix of noun pairs, effects and mixed models."""
    shown = [_agreement(study)] if "agreement" in study.tables else []
    if "noun_pairs" in study.tables:
        shown.append(_matrix(study))
    return [*shown, *_models(study)]


def name_bin(lower: int) -> str:
    """A bin of bias as an interval; only the last one includes its upper end."""
    close = "]" if lower + BIN_WIDTH >= 100 else ")"
    return f"[{decimal(lower, 0)}, {decimal(lower + BIN_WIDTH, 0)}{close}"


def link_prompts(
    study: Study, lm: str, lower: int | None = None, gender: str = "all", nouns: str = ""
) -> str:
    """Where the prompts of a bin of bias are, of one gender of the subject or one pair of nouns.

    Verbs are the explorer's suites; a prompt is found by the pronouns for its subject and object, in order.
    """
    verbs = list[str]()
    if lower is not None:
        within = study["preference"].filter(pl.col("bias_bin") == lower, lm=lm)
        verbs = within["verb"].unique(maintain_order=True).to_list()
    searched = nouns.replace("/", " ").split()
    if gender != "all":
        own = study.place.read("stimuli").filter(subject_gender=gender)
        pronouns = own.select("subject_text", "object_text").unique().rows()
        if len(pronouns) != 1:
            return ""
        searched.append(f'"{" ".join(pronouns[0])}"')
    return study.link(lm, suite=verbs, q=" ".join(searched))


def _agreement(study: Study) -> Section:
    """Figure 1 of the paper as a table, in both countings."""
    rows = []
    for (lm,), table in study["agreement"].group_by("lm", maintain_order=True):
        for lower in [*sorted(table["bias_bin"].drop_nulls().unique().to_list()), None]:
            inside = pl.col("bias_bin").is_null() if lower is None else pl.col("bias_bin") == lower
            cells, sizes = [], []
            for counting in COUNTINGS:
                for gender in ("m", "f", "all"):
                    own = table.filter(inside, counting=counting, subject_gender=gender)
                    shown = percent(own["agreement"][0]) if own.height else MISSING
                    cells.append(Linked(shown, link_prompts(study, str(lm), lower, gender)))
                    sizes += own["n"].to_list() if (counting, gender) == (COUNTED, "all") else []
            n = Linked(count(sizes[0]) if sizes else MISSING, link_prompts(study, str(lm), lower))
            rows.append((str(lm), "all" if lower is None else name_bin(lower), n, *cells))
    heads = [f"{gender}, {said}" for said in ("ours", "authors'") for gender in ("male", "female", "both")]
    return Section(
        name="agreement",
        title="Agreement with people's bias",
        lede="Figure 1 of the paper: the share of prompts, in percent, after which the model expects the "
        "noun that people hold responsible, in left-closed bins of bias, by gender of the subject. Verbs of "
        "bias 0 predict nothing; our counting leaves them out, the authors' counts them as wrong.",
        columns=("Model", "Bias", "n", *heads),
        rows=tuple(rows),
        names=2,
    )


def _matrix(study: Study) -> Section:
    """Mean preference by bias and noun pair."""
    figures = []
    for (lm,), means in study["noun_pairs"].group_by("lm", maintain_order=True):
        cells = [
            Cell(
                row["nouns"],
                name_bin(row["bias_bin"]),
                row["subject_preference"],
                link_prompts(study, str(lm), row["bias_bin"], nouns=row["nouns"]),
            )
            for row in means.iter_rows(named=True)
        ]
        links = {nouns: link_prompts(study, str(lm), nouns=nouns) for nouns in means["nouns"].unique()}
        figures.append(
            Figure(
                name=f"noun_pairs_{name_folder(str(lm))}",
                title=f"Subject preference by noun pair: {lm}",
                subtitle=study.facts["stimuli"],
                label="Mean subject preference in bits by noun pair and bias of the verb.",
                chart=partial(
                    chart_matrix,
                    cells,
                    row_title="noun pair",
                    column_title="bias of the verb",
                    unit="bits",
                    links=links,
                ),
            )
        )
    lede = (
        "Mean subject preference in bits: surprisal of the pronoun for the object minus that for the subject."
    )
    return Section(name="noun_pairs", title="By noun pair", lede=lede, figures=tuple(figures))


def _models(study: Study) -> list[Section]:
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
            subtitle=study.facts["stimuli"],
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
                p_cell(row["p"]),
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
