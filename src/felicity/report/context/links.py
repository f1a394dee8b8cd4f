"""Correlations and what they are of: a dot a suite, a pair of suites or a perturbation, r in the corner."""

from functools import partial
from typing import Any, NamedTuple

import polars as pl

from felicity.report.context.growth import split_models
from felicity.report.context.kinds import LOOKS_OF_KINDS, file_names, name_kind, sort_kinds
from felicity.report.context.regression import write_p
from felicity.report.context.study import ContextPage
from felicity.report.extras import Extra
from felicity.report.figures import Figure
from felicity.report.scatter_chart import Dot, chart_scatter
from felicity.report.wording import count, decimal, spaced

SYMBOLS = {"pearson": "r", "spearman": "ρ", "point_biserial": "r"}
CHANGE = "change of accuracy (points)"
PAIRS = "A dot a pair of suites, the one judged and the one that the context comes from."
WITHOUT_DOTS = (
    "Over single judgements: how alike context and test sentence are, and whether it is judged right."
)


class Link(NamedTuple):
    """How a correlation is shown; shares are shown in percent, `diagonal` puts both axes on one scale."""

    title: str
    x_title: str
    y_title: str
    lede: str
    x_share: bool = False
    y_share: bool = True
    diagonal: bool = False


LINKS: dict[str, Link] = {
    "baseline and longest context": Link(
        "Baseline against the longest context",
        "accuracy without context (%)",
        "accuracy in the longest context (%)",
        "A dot a suite; on the dashed line the longest context changes nothing.",
        x_share=True,
        diagonal=True,
    ),
    "perturbation similarity and change": Link(
        "Likeness of perturbed sentences",
        "token F1 with the original",
        "mean change of accuracy (points)",
        "A dot a perturbation: how much of the original it leaves, and the mean change over lengths.",
    ),
    "token F1 and correctness": Link(
        "Shared tokens and correctness", "token F1", "judged right", WITHOUT_DOTS
    ),
    "dependency F1 and correctness": Link(
        "Shared structure and correctness", "dependency-label F1", "judged right", WITHOUT_DOTS
    ),
    "token F1 and change": Link(
        "Shared tokens and change", "token F1 of context and test sentence", CHANGE, PAIRS
    ),
    "dependency F1 and change": Link(
        "Shared structure and change", "dependency-label F1 of context and test sentence", CHANGE, PAIRS
    ),
}


def build_links(study: ContextPage) -> list[Extra]:
    """A section a link: a figure a model with a panel a kind, and all coefficients as a table."""
    links = study.table("links")
    names = [
        *links["link"].unique(maintain_order=True),
        *study.table("points")["link"].unique(maintain_order=True),
    ]
    files = file_names(f"link {name}" for name in dict.fromkeys(names))
    return [_section(study, name, files[f"link {name}"]) for name in dict.fromkeys(names)]


def find_link(name: str) -> Link:
    """How a link is shown; one that is not known here goes by its own name and in its own units."""
    title = spaced(name)
    return LINKS.get(name) or Link(title[:1].upper() + title[1:], "x", "y", "", y_share=False)


def _section(study: ContextPage, name: str, file: str) -> Extra:
    links = sort_kinds(study.table("links").filter(pl.col("link") == name))
    points = sort_kinds(study.table("points").filter(pl.col("link") == name)).drop_nulls(["x", "y"])
    notes = (
        links["note"].drop_nulls().unique(maintain_order=True).to_list() if "note" in links.columns else []
    )
    figures = (
        ()
        if _all_or_nothing(points)
        else tuple(
            _figure(study, name, model, f"{file}_{own}", part, links.filter(pl.col("model") == model))
            for model, own, part in split_models(study, points)
        )
    )
    return Extra(
        name=file,
        title=find_link(name).title,
        lede=find_link(name).lede,
        figures=figures,
        columns=("Model", "Context", "Method", "r", "95% interval", "p", "n"),
        rows=tuple(_row(row) for row in links.iter_rows(named=True)),
        names=3,
        notes=tuple(note for note in notes if note),
    )


def _all_or_nothing(points: pl.DataFrame) -> bool:
    """Whether y only says right or wrong: two rows of dots would show nothing."""
    return points.is_empty() or set(points["y"].unique()) <= {0.0, 0.5, 1.0}


def _figure(
    study: ContextPage, name: str, model: str, file: str, points: pl.DataFrame, links: pl.DataFrame
) -> Figure:
    link = find_link(name)
    across, up = 100.0 if link.x_share else 1.0, 100.0 if link.y_share else 1.0
    panels = points["kind"].n_unique() > 1
    dots = [
        Dot(
            name_kind(row["kind"]) if panels else "",
            name_kind(row["kind"]),
            across * row["x"],
            up * row["y"],
            spaced(row["name"]),
        )
        for row in points.iter_rows(named=True)
    ]
    corners: dict[str, list[str]] = {}
    for row in links.drop_nulls("r").iter_rows(named=True):
        text = f"{SYMBOLS.get(row['method'], row['method'])} = {_short(row['r'])}"
        corners.setdefault(name_kind(row["kind"]) if panels else "", []).append(text)
    return Figure(
        name=file,
        title=f"{link.title}: {model}",
        subtitle=study.dataset,
        label=f"{link.title} under {model}: {count(len(dots))} dots; the coefficients are in the table.",
        chart=partial(
            chart_scatter,
            dots,
            x_title=link.x_title,
            y_title=link.y_title,
            corners={panel: ", ".join(texts) for panel, texts in corners.items()},
            looks=LOOKS_OF_KINDS,
            diagonal=link.diagonal,
            signed=not link.diagonal,
        ),
    )


def _short(r: float) -> str:
    return decimal(r).replace("0.", ".", 1) if abs(r) < 1 else decimal(r)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["model"],
        name_kind(row["kind"]) if row["kind"] else "all",
        spaced(row["method"]),
        decimal(row["r"], 3),
        f"{decimal(row['low'], 3)} to {decimal(row['high'], 3)}",
        write_p(row["p"]),
        count(row["n"]),
    )
