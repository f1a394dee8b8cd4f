"""The fitted models as a paper prints them: estimate, standard error, z and p of every term."""

import re
from typing import Any

import polars as pl

from felicity.report.context.study import ContextPage
from felicity.report.extras import Extra
from felicity.report.wording import MISSING, count, decimal

COLUMNS = ("Term", "Estimate", "SE", "z", "p", "95% interval")


def build_regression(study: ContextPage) -> Extra | None:
    """Length, matched and acceptable with all their interactions."""
    return _section(
        study,
        "context",
        name="regression",
        title="Regression",
        lede="A logistic mixed model of judging right, fitted to counts, in log-odds: the logarithm of the "
        "length, whether the context is of the same suite (matched) and whether it is acceptable, both "
        "factors sum-coded (+1 where it is so, −1 where not), with all interactions; the baseline and "
        "unrelated contexts are left out.",
    )


def build_unrelated(study: ContextPage) -> Extra | None:
    """Whether the length of unrelated text has an effect."""
    return _section(
        study,
        "unrelated",
        name="unrelated",
        title="Unrelated contexts",
        lede="The same kind of model for contexts of unrelated text alone: does their length do anything?",
    )


def write_p(p: float | None) -> str:
    """A p-value without its leading zero.

    >>> write_p(0.0421), write_p(0.0000021), write_p(None)
    ('.042', '< .001', '–')
    """
    if p is None or p != p:
        return MISSING
    if p < 0.001:
        return "< .001"
    return "> .999" if p > 0.9995 else f"{p:.3f}".removeprefix("0")


def write_term(term: str) -> str:
    """A term as a reader sees it.

    >>> write_term("log(length):matched"), write_term("Intercept")
    ('log(length) × matched', '(intercept)')
    """
    if term.strip("()").lower() in ("intercept", "1"):
        return "(intercept)"
    return re.sub(r"\s*:\s*", " × ", term).replace("_", " ")


def _section(study: ContextPage, analysis: str, *, name: str, title: str, lede: str) -> Extra | None:
    """The terms of an analysis; after its name the table may say, in brackets, of which contexts."""
    here = (pl.col("analysis") == analysis) | pl.col("analysis").str.starts_with(f"{analysis} (")
    terms = study.table("terms").filter(here)
    if terms.is_empty():
        return None
    leading = [column for column in ("model", "analysis") if terms[column].n_unique() > 1]
    rows = [
        (*(row[column] for column in leading), *_cells(row))
        for row in terms.iter_rows(named=True)
        if row["term"] is not None
    ]
    return Extra(
        name=name,
        title=title,
        lede=lede,
        columns=(*(column.capitalize() for column in leading), *COLUMNS),
        rows=tuple(rows),
        names=len(leading) + 1,
        notes=tuple(_sizes(terms, leading)),
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        write_term(row["term"]),
        decimal(row["estimate"], 3),
        decimal(row["se"], 3),
        decimal(row["z"], 2),
        write_p(row["p"]),
        f"{decimal(row['low'], 3)} to {decimal(row['high'], 3)}",
    )


def _sizes(terms: pl.DataFrame, leading: list[str]) -> list[str]:
    """A note a fitted model: how many judgements, what groups them, what there is to know of it."""
    said = []
    for row in terms.unique(["model", "analysis"], keep="first", maintain_order=True).iter_rows(named=True):
        groups = row["groups"] if isinstance(row["groups"], str) else ""
        parts = [row.get("formula"), f"{count(row['n'])} judgements", groups, row["note"]]
        text = "; ".join(str(part).rstrip(".") for part in parts if part) + "."
        said.append(": ".join([*(row[column] for column in leading), text]))
    return said
