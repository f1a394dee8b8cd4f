"""Which line is which: a legend above a figure, broken into rows where the page is narrow."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from felicity.report.canvas import plot
from felicity.report.theme import LIGHT

LETTER = 6.3
ROW = 18


class Look(NamedTuple):
    """A role of the theme and a dash: a series is told by both, so that colour is never all there is."""

    role: str
    dash: tuple[int, ...] = ()


LOOKS: tuple[Look, ...] = (
    Look("accent"),
    Look("bad", (6, 3)),
    Look("good", (2, 3)),
    Look("ink", (8, 3, 2, 3)),
    Look("tie"),
    Look("soft", (4, 4)),
    Look("good"),
    Look("bad", (2, 3)),
    Look("accent", (6, 3)),
    Look("ink"),
)


class Entry(NamedTuple):
    """One name of a legend: its row from the top and how many pixels from the left it starts."""

    name: str
    row: int
    at: float


def choose_looks(names: Sequence[str], given: Mapping[str, Look] | None = None) -> dict[str, Look]:
    """A look for each name: the given one, else the next of the palette."""
    given = given or {}
    return {name: given.get(name, LOOKS[place % len(LOOKS)]) for place, name in enumerate(names)}


def place_legend(names: Sequence[str], width: float) -> list[Entry]:
    """Where each name stands, as many in a row as there is room for."""
    placed: list[Entry] = []
    row, at = 0, 0.0
    for name in names:
        needed = 34 + LETTER * len(name) + 18
        if at and at + needed > width:
            row, at = row + 1, 0.0
        placed.append(Entry(name, row, at))
        at += needed
    return placed


def legend_height(entries: Sequence[Entry]) -> float:
    """How much room the legend needs above the figure."""
    return 14 + ROW * (max((entry.row for entry in entries), default=-1) + 1)


def draw_legend(entries: Sequence[Entry], looks: Mapping[str, Look]) -> list[Any]:
    """The legend's marks, to be laid over a figure whose top is at 0."""
    import altair as alt

    rows = max((entry.row for entry in entries), default=0) + 1
    marks = []
    for name, row, at in entries:
        role, dash = looks[name]
        level = alt.value(-12 - ROW * (rows - 1 - row))
        stroke = plot([{"name": name}]).mark_rule(
            color=LIGHT[role], strokeDash=list(dash), strokeWidth=2.5, aria=False
        )
        text = plot([{"name": name}]).mark_text(
            align="left", baseline="middle", fontSize=12, color=LIGHT["soft"], aria=False
        )
        marks += [
            stroke.encode(x=alt.value(at), x2=alt.value(at + 26), y=level),
            text.encode(x=alt.value(at + 34), y=level, text=alt.Text("name:N")),
        ]
    return marks
