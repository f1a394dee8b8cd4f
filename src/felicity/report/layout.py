"""Where the parts of an accuracy chart stand, by the width of the page and what is to be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from felicity.report.canvas import Canvas

CHANCE = 50.0
GLYPH_WIDTH = 6.9
LONGEST_NAME = 330.0
FEW_ROWS = 24


class Row(NamedTuple):
    """One estimate to be drawn; `parts` are the accuracies of what it is made of, shown behind it."""

    name: str
    accuracy: float
    low: float
    high: float
    n: int
    parts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Layout:
    """Where things stand: names in a margin where there is room, above their row where there is not."""

    narrow: bool
    left: float
    right: float
    width: float
    step: float
    floor: float

    @classmethod
    def choose(cls, rows: Sequence[Row], *, canvas: Canvas, chance: bool) -> "Layout":
        """The layout for a page's width, the number of rows and the longest name."""
        floor = _floor(rows, chance=chance)
        if canvas.narrow:
            return cls(narrow=True, left=16, right=16, width=canvas.width - 32, step=50, floor=floor)
        longest = GLYPH_WIDTH * max(len(row.name) for row in rows)
        left = min(max(longest, 80), LONGEST_NAME) + 20
        right = 206
        step = 34 if len(rows) <= FEW_ROWS else 22
        width = canvas.width - left - right
        return cls(narrow=False, left=left, right=right, width=width, step=step, floor=floor)

    def dot_at(self, place: int) -> float:
        """How far down the dot of a row stands."""
        return self.step * place + (34 if self.narrow else self.step / 2)

    def name_at(self, place: int) -> float:
        """How far down the name of a row stands."""
        return self.step * place + (14 if self.narrow else self.step / 2)


def _floor(rows: Sequence[Row], *, chance: bool) -> float:
    lowest = min(100 * min(row.accuracy, row.low, *row.parts, 1.0) for row in rows)
    if chance:
        lowest = min(lowest, CHANCE - 2)
    return max(0.0, 10 * (lowest // 10))
