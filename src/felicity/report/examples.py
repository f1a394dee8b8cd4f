"""Examples for the report: the judgements most wrong and least certain, token by token."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import polars as pl

from felicity.report.run_tables import ReportInput

BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
MARKERS = str.maketrans({"Ġ": "␣", "▁": "␣", "Ċ": "⏎", " ": "␣", "\n": "⏎", "\t": "⇥"})
BEFORE_DIFFERENCE = 30
MOST_CELLS = 90
COMPARISONS = 1_000_000
MOST_CASES = 12
ORDER = {"good": 0, "bad": 1}
LONGEST_CONTEXT = 400


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A stretch of text covered by one token, or by several that split a character.

    text: what a reader sees; gap: whether white space precedes it; special: a token that covers no text,
    such as an end token, shown by its own name.
    """

    text: str
    gap: bool
    special: bool
    pieces: tuple[str, ...]
    logprobs: tuple[float | None, ...]
    differs: bool = False

    @property
    def logprob(self) -> float | None:
        """Nats of the whole cell; None if one of its tokens could not be scored."""
        scored = [value for value in self.logprobs if value is not None]
        return sum(scored) if len(scored) == len(self.logprobs) else None


def read_cells(
    text: str,
    *,
    tokens: Sequence[str],
    start: Sequence[int],
    end: Sequence[int],
    logprob: Sequence[float | None],
) -> list[Cell]:
    """The cells of a text, by the character offsets of its tokens.

    Tokens that share characters (the bytes of an emoji) become one cell, so that no character is shown
    twice or split; a token that begins with a combining mark (a vowel sign of Tamil) joins the one before it.
    """
    groups: list[list[int]] = []
    reached = 0
    for place, (first, last) in enumerate(zip(start, end, strict=True)):
        shares = first < last and first < reached
        broken = first == last and BYTE_PIECE.fullmatch(tokens[place]) is not None
        combining = first < last and unicodedata.category(text[first])[0] == "M"
        if groups and (shares or broken or combining):
            groups[-1].append(place)
        else:
            groups.append([place])
        reached = max(reached, last)
    cells, reached = [], 0
    for group in groups:
        first, last = min(start[place] for place in group), max(end[place] for place in group)
        before, covered = text[reached:first], text[first:last]
        shown = covered.strip()
        special = first == last
        cells.append(
            Cell(
                text=_visible(tokens[group[0]] if special else shown or covered),
                gap=before[-1:].isspace() or (bool(shown) and covered[:1].isspace()),
                special=special,
                pieces=tuple(tokens[place] for place in group),
                logprobs=tuple(logprob[place] for place in group),
            )
        )
        reached = max(reached, last)
    return cells


def mark_differences(one: Sequence[Cell], other: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Both sides, with the cells marked that the other side does not have."""
    first, second = [cell.pieces for cell in one], [cell.pieces for cell in other]
    same_one, same_other = _matching(first, second)
    return (
        [replace(cell, differs=place not in same_one) for place, cell in enumerate(one)],
        [replace(cell, differs=place not in same_other) for place, cell in enumerate(other)],
    )


def choose_window(cells: Sequence[Cell]) -> tuple[int, int]:
    """The part of a sentence to show: all of it, or the part around the first difference."""
    if len(cells) <= MOST_CELLS:
        return 0, len(cells)
    first = next((place for place, cell in enumerate(cells) if cell.differs), 0)
    start = min(max(0, first - BEFORE_DIFFERENCE), len(cells) - MOST_CELLS)
    return start, start + MOST_CELLS


def _matching(one: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]) -> tuple[set[int], set[int]]:
    """Positions that both sides share, in order; common prefix and suffix first, as they are nearly all."""
    shortest = min(len(one), len(other))
    head = next((place for place in range(shortest) if one[place] != other[place]), shortest)
    left = shortest - head
    tail = next((back for back in range(left) if one[-1 - back] != other[-1 - back]), left)
    middle_one, middle_other = one[head : len(one) - tail], other[head : len(other) - tail]
    same_one = {*range(head), *range(len(one) - tail, len(one))}
    same_other = {*range(head), *range(len(other) - tail, len(other))}
    # Aligning two long sentences with nothing in common would take minutes and show nothing.
    if len(middle_one) * len(middle_other) <= COMPARISONS:
        for block in SequenceMatcher(None, middle_one, middle_other, autojunk=False).get_matching_blocks():
            same_one.update(range(head + block.a, head + block.a + block.size))
            same_other.update(range(head + block.b, head + block.b + block.size))
    return same_one, same_other


def _visible(text: str) -> str:
    """Visible symbols for white space, joiners and combining marks that occur alone."""
    shown = text.translate(MARKERS)
    if not shown:
        return "∅"
    if unicodedata.category(shown[0]).startswith("M"):
        return f"◌{shown}"
    return shown if shown.isprintable() else " ".join(f"U+{ord(letter):04X}" for letter in text)


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
class JudgedItem:
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
        """The context of all sides; empty if they have none or differ in it."""
        contexts = {side.context for side in self.sides}
        return contexts.pop() if len(contexts) == 1 else ""


def pick_wrong(report: ReportInput, measure: str, *, most: int = MOST_CASES) -> pl.DataFrame:
    """The judgements that failed by the widest margin."""
    failed = report.judged(measure).filter((pl.col("passed") == 0) & pl.col("margin").is_finite())
    return failed.sort("margin", "item", "rule").head(most)


def pick_uncertain(report: ReportInput, measure: str, *, most: int = MOST_CASES) -> pl.DataFrame:
    """The judgements closest to a tie, without pairs of identical texts, which are uninformative."""
    same = (
        report.requests.group_by("item")
        .agg(texts=pl.struct("context", "text").n_unique(), stimuli=pl.len())
        .filter((pl.col("texts") == 1) & (pl.col("stimuli") > 1))
    )
    close = report.judged(measure).filter(pl.col("margin").is_finite()).join(same, on="item", how="anti")
    return close.sort(pl.col("margin").abs(), "item", "rule").head(most)


def read_cases(report: ReportInput, picked: pl.DataFrame, measure: str) -> list[JudgedItem]:
    """The selected judgements, in their order, each with its stimuli token by token."""
    sides = _sides(report, picked["item"].to_list(), measure)
    return [
        JudgedItem(
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
