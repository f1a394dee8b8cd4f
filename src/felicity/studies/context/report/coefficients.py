"""Sections on regressions and correlations: tables of coefficients and scatter plots."""

import re
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.sweep import KINDS
from felicity.core.wording import p_cell
from felicity.report import Figure, Linked, Section, count, decimal, format_interval, spaced
from felicity.report.charts import Dot, chart_scatter
from felicity.studies.context.report.context_tables import (
    ContextTables,
    file_names,
    sort_kinds,
)
from felicity.studies.context.report.figures import split_models

COLUMNS = ("Term", "Estimate", "SE", "z", "p", "95% interval")
SYMBOLS = {"pearson": "r", "spearman": "ρ", "point_biserial": "r"}
CHANGE = "change of {score} (points)"
PAIRS = "One dot per pair of suites, the one judged and the one that the context comes from."
WITHOUT_DOTS = (
    "Over single judgements: the similarity of context and test sentence, and whether the item is {passed}."
)


def build_regression(study: ContextTables) -> Section | None:
    """Length, matched and acceptable with all their interactions."""
    return _regression_section(
        study,
        "context",
        name="regression",
        title="Regression",
        lede=f"A logistic mixed model of items {study.headline.passed}, fitted to counts, in log-odds: the "
        "log of the length, whether the context is of the same suite (matched) and whether it is acceptable, "
        "both factors sum-coded (+1 if so, −1 if not), with all interactions; the baseline and unrelated "
        "contexts are left out."
        + (
            f" Here an acceptable context is one of {study.side('acceptable')} sentences."
            if study.side("acceptable") != "acceptable"
            else ""
        ),
    )


def build_unrelated(study: ContextTables) -> Section | None:
    """Whether the length of unrelated text has an effect."""
    return _regression_section(
        study,
        "unrelated",
        name="unrelated",
        title="Unrelated contexts",
        lede="The same kind of model for contexts of unrelated text: does their length have an effect?",
    )


def write_term(term: str) -> str:
    """A term as it is printed.

    >>> write_term("log(length):matched"), write_term("Intercept")
    ('log(length) × matched', '(intercept)')
    """
    if term.strip("()").lower() in ("intercept", "1"):
        return "(intercept)"
    return re.sub(r"\s*:\s*", " × ", term).replace("_", " ")


def _regression_section(
    study: ContextTables, analysis: str, *, name: str, title: str, lede: str
) -> Section | None:
    """The terms of an analysis; its name may be followed by the contexts in brackets."""
    here = (pl.col("analysis") == analysis) | pl.col("analysis").str.starts_with(f"{analysis} (")
    terms = study.table("regressions").filter(here)
    if terms.is_empty():
        return None
    leading = [column for column in ("model", "analysis") if terms[column].n_unique() > 1]
    rows = [
        (*(row[column] for column in leading), *_cells(study, row))
        for row in terms.iter_rows(named=True)
        if row["term"] is not None
    ]
    return Section(
        name=name,
        title=title,
        lede=lede,
        columns=(*(column.capitalize() for column in leading), *COLUMNS),
        rows=tuple(rows),
        names=len(leading) + 1,
        notes=tuple(_sizes(terms, leading)),
    )


def _cells(study: ContextTables, row: dict[str, Any]) -> tuple[str, ...]:
    unrelated = row["analysis"].startswith("unrelated")
    kinds = [kind for kind, (_, acceptable) in KINDS.items() if (acceptable is None) == unrelated]
    return (
        write_term(row["term"]),
        Linked(decimal(row["estimate"], 3), study.address(row["model"], kind=kinds)),
        decimal(row["se"], 3),
        decimal(row["z"], 2),
        p_cell(row["p"]),
        format_interval(row["low"], row["high"], places=3),
    )


def _sizes(terms: pl.DataFrame, leading: list[str]) -> list[str]:
    """One note per fitted model: the number of judgements, the grouping factors, remarks."""
    said = []
    for row in terms.unique(["model", "analysis"], keep="first", maintain_order=True).iter_rows(named=True):
        groups = row["groups"] if isinstance(row["groups"], str) else ""
        parts = [row["formula"], f"{count(row['n'])} judgements", groups, row["note"]]
        text = "; ".join(str(part).rstrip(".") for part in parts if part) + "."
        said.append(": ".join([*(row[column] for column in leading), text]))
    return said


class Scatter(NamedTuple):
    """How a correlation is shown; shares are shown in percent, `diagonal` puts both axes on one scale."""

    title: str
    x_title: str
    y_title: str
    lede: str
    x_share: bool = False
    y_share: bool = True
    diagonal: bool = False


CLUSTERED = (
    "Interval and p are over suites where their number is given, by leaving out each in turn; p (Holm) is "
    "adjusted over all correlations of the study."
)
SCATTERS: dict[str, Scatter] = {
    "baseline and longest context": Scatter(
        "Baseline against the longest context",
        "{score} without context (%)",
        "{score} in the longest context (%)",
        "One dot per suite; on the dashed line the longest context changes nothing.",
        x_share=True,
        diagonal=True,
    ),
    "perturbation similarity and change": Scatter(
        "Similarity of perturbed sentences",
        "token F1 with the original",
        "mean change of {score} (points)",
        "One dot per perturbation: its similarity to the original, and the mean change over lengths.",
    ),
    "token F1 and correctness": Scatter(
        "Shared tokens and single judgements", "token F1", "passed", WITHOUT_DOTS
    ),
    "dependency F1 and correctness": Scatter(
        "Shared structure and single judgements", "dependency-label F1", "passed", WITHOUT_DOTS
    ),
    "token F1 and change": Scatter(
        "Shared tokens and change", "token F1 of context and test sentence", CHANGE, PAIRS
    ),
    "dependency F1 and change": Scatter(
        "Shared structure and change", "dependency-label F1 of context and test sentence", CHANGE, PAIRS
    ),
}


def build_correlations(study: ContextTables) -> list[Section]:
    """One section per pair of variables: a figure per model with one panel per kind, and a table."""
    names = [
        *study.table("correlations")["variables"].unique(maintain_order=True),
        *study.table("points")["variables"].unique(maintain_order=True),
    ]
    files = file_names(f"correlation {name}" for name in dict.fromkeys(names))
    return [_section(study, name, files[f"correlation {name}"]) for name in dict.fromkeys(names)]


def find_scatter(name: str, headline: Headline = ACCURACY) -> Scatter:
    """How a correlation is shown, in the dataset's words; an unknown one has its own name and units."""
    title = spaced(name)
    scatter = SCATTERS.get(name) or Scatter(title[:1].upper() + title[1:], "x", "y", "", y_share=False)
    words = {"score": headline.noun, "passed": headline.passed}
    return scatter._replace(
        x_title=scatter.x_title.format(**words),
        y_title=scatter.y_title.format(**words),
        lede=scatter.lede.format(**words),
    )


def _section(study: ContextTables, name: str, file: str) -> Section:
    found = sort_kinds(study.table("correlations").filter(variables=name))
    points = sort_kinds(study.table("points").filter(variables=name)).drop_nulls(["x", "y"])
    notes = found["note"].drop_nulls().unique(maintain_order=True).to_list()
    figures = (
        ()
        if _all_or_nothing(points)
        else tuple(
            _figure(study, name, model, f"{file}_{own}", part, found.filter(pl.col("model") == model))
            for model, own, part in split_models(study, points)
        )
    )
    return Section(
        name=file,
        title=find_scatter(name).title,
        lede=find_scatter(name, study.headline).lede,
        figures=figures,
        columns=("Model", "Context", "Method", "r", "95% interval", "p", "p (Holm)", "n", "Suites"),
        rows=tuple(_row(study, row) for row in found.iter_rows(named=True)),
        names=3,
        notes=(CLUSTERED, *(note for note in notes if note)),
    )


def _all_or_nothing(points: pl.DataFrame) -> bool:
    """Whether y is only 0 or 1: two rows of dots would show nothing."""
    return points.is_empty() or set(points["y"].unique()) <= {0.0, 0.5, 1.0}


def _figure(
    study: ContextTables, name: str, model: str, file: str, points: pl.DataFrame, found: pl.DataFrame
) -> Figure:
    scatter = find_scatter(name, study.headline)
    across, up = 100.0 if scatter.x_share else 1.0, 100.0 if scatter.y_share else 1.0
    panels = points["kind"].n_unique() > 1
    suites = set(study.estimates.filter(level="suite")["name"])
    dots = [
        Dot(
            study.name_kind(row["kind"]) if panels else "",
            study.name_kind(row["kind"]),
            across * row["x"],
            up * row["y"],
            spaced(row["name"]),
            link=study.address(
                model, kind=row["kind"], **({"suite": row["name"]} if row["name"] in suites else {})
            ),
        )
        for row in points.iter_rows(named=True)
    ]
    corners: dict[str, list[str]] = {}
    for row in found.drop_nulls("r").iter_rows(named=True):
        text = f"{SYMBOLS.get(row['method'], row['method'])} = {_short(row['r'])}"
        corners.setdefault(study.name_kind(row["kind"]) if panels else "", []).append(text)
    return Figure(
        name=file,
        title=f"{scatter.title}: {model}",
        subtitle=study.dataset,
        label=f"{scatter.title} under {model}: {count(len(dots))} dots; the coefficients are in the table.",
        chart=partial(
            chart_scatter,
            dots,
            x_title=scatter.x_title,
            y_title=scatter.y_title,
            corners={panel: ", ".join(texts) for panel, texts in corners.items()},
            styles=study.styles,
            diagonal=scatter.diagonal,
            signed=not scatter.diagonal,
        ),
    )


def _short(r: float) -> str:
    return decimal(r).replace("0.", ".", 1) if abs(r) < 1 else decimal(r)


def _row(study: ContextTables, row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["model"],
        study.name_kind(row["kind"]) if row["kind"] else "all",
        spaced(row["method"]),
        Linked(
            decimal(row["r"], 3),
            study.address(row["model"], **({"kind": row["kind"]} if row["kind"] else {})),
        ),
        format_interval(row["low"], row["high"], places=3),
        p_cell(row["p"]),
        p_cell(row["p_holm"]),
        count(row["n"]),
        "–" if row["suites"] is None else count(row["suites"]),
    )
