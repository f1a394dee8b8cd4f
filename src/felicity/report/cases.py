"""The items worth reading: those most wrong and those most uncertain, with all that is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from felicity.report.input import ReportInput
from felicity.report.sentences import Cell, mark_differences, read_cells

MOST_CASES = 12
ORDER = {"good": 0, "bad": 1}
LONGEST_CONTEXT = 400


@dataclass(frozen=True, kw_only=True)
class Side:
    """One stimulus of an item: its text, its score and its tokens."""

    condition: str
    text: str
    context: str
    value: float | None
    tokens: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One judgement with the stimuli it is about."""

    item: str
    suite: str
    phenomenon: str
    rule: str
    passed: float
    margin: float
    stable: bool
    sides: tuple[Side, ...]

    @property
    def context(self) -> str:
        """The context that all sides stand in; empty where they have none or differ in it."""
        contexts = {side.context for side in self.sides}
        return contexts.pop() if len(contexts) == 1 else ""


def pick_wrong(report: ReportInput, measure: str, *, most: int = MOST_CASES) -> pl.DataFrame:
    """The judgements that failed by the widest margin."""
    failed = report.judged(measure).filter((pl.col("passed") == 0) & pl.col("margin").is_finite())
    return failed.sort("margin", "item", "rule").head(most)


def pick_uncertain(report: ReportInput, measure: str, *, most: int = MOST_CASES) -> pl.DataFrame:
    """The judgements nearest to a tie; pairs of identical texts say nothing of the model and are left out."""
    same = (
        report.requests.group_by("item")
        .agg(texts=pl.struct("context", "text").n_unique(), stimuli=pl.len())
        .filter((pl.col("texts") == 1) & (pl.col("stimuli") > 1))
    )
    close = report.judged(measure).filter(pl.col("margin").is_finite()).join(same, on="item", how="anti")
    return close.sort(pl.col("margin").abs(), "item", "rule").head(most)


def read_cases(report: ReportInput, picked: pl.DataFrame, measure: str) -> list[Case]:
    """The picked judgements, in their order, each with its stimuli token by token."""
    sides = _sides(report, picked["item"].to_list(), measure)
    return [
        Case(
            item=row["item"],
            suite=row["suite"],
            phenomenon=row["phenomenon"],
            rule=row["rule"],
            passed=row["passed"],
            margin=row["margin"],
            stable=row["stable"],
            sides=_compare(sides.get(row["item"], [])),
        )
        for row in picked.iter_rows(named=True)
    ]


def _sides(report: ReportInput, items: list[str], measure: str) -> dict[str, list[Side]]:
    values = report.scores.filter(pl.col("measure") == measure).select("request", "value")
    rows = (
        report.requests.filter(pl.col("item").is_in(items))
        .join(report.contexts.select("context", "context_text"), on="context", how="left")
        .join(values, on="request", how="left")
        .join(report.tokens, on="request", how="left")
        .sort("item", pl.col("condition").replace_strict(ORDER, default=len(ORDER)), "condition", "request")
    )
    found: dict[str, list[Side]] = {}
    for row in rows.iter_rows(named=True):
        cells = read_cells(
            row["text"],
            tokens=row["tokens"] or [],
            start=row["start"] or [],
            end=row["end"] or [],
            logprob=row["logprob"] or [],
        )
        side = Side(
            condition=row["condition"],
            text=row["text"],
            context=_shorten(row["context_text"] or row["context"] or ""),
            value=row["value"],
            tokens=len(row["tokens"] or []),
            cells=tuple(cells),
        )
        found.setdefault(row["item"], []).append(side)
    return found


def _compare(sides: Sequence[Side]) -> tuple[Side, ...]:
    if len(sides) != len(ORDER):
        return tuple(sides)
    first, second = mark_differences(sides[0].cells, sides[1].cells)
    return replace(sides[0], cells=tuple(first)), replace(sides[1], cells=tuple(second))


def _shorten(context: str) -> str:
    return context if len(context) <= LONGEST_CONTEXT else "…" + context[-LONGEST_CONTEXT:]
