"""A scored sentence as cells to read: what stands in the text, what it cost, where two sides differ."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
MARKERS = str.maketrans({"Ġ": "␣", "▁": "␣", "Ċ": "⏎", " ": "␣", "\n": "⏎", "\t": "⇥"})
BEFORE_DIFFERENCE = 30
MOST_CELLS = 90
COMPARISONS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A stretch of the text that one token covers, or several where they cut through a character.

    text: what a reader sees; gap: whether white space stands before it; special: a token that covers
    no text, such as an end token, shown by its own name.
    """

    text: str
    gap: bool
    special: bool
    pieces: tuple[str, ...]
    logprobs: tuple[float | None, ...]
    differs: bool = False

    @property
    def logprob(self) -> float | None:
        """Nats of the whole cell; nothing where a token of it could not be scored."""
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

    Tokens that share characters (the bytes of an emoji) become one cell, so that no character is
    shown twice and none in halves.
    """
    groups: list[list[int]] = []
    reached = 0
    for place, (first, last) in enumerate(zip(start, end, strict=True)):
        shares = first < last and first < reached
        broken = first == last and BYTE_PIECE.fullmatch(tokens[place]) is not None
        if groups and (shares or broken):
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
    """Both sides with the cells marked that the other side does not have in that place."""
    first, second = [cell.pieces for cell in one], [cell.pieces for cell in other]
    same_one, same_other = _matching(first, second)
    return (
        [replace(cell, differs=place not in same_one) for place, cell in enumerate(one)],
        [replace(cell, differs=place not in same_other) for place, cell in enumerate(other)],
    )


def choose_window(cells: Sequence[Cell]) -> tuple[int, int]:
    """From where to where a sentence is shown: all of it, or the part about the first difference."""
    if len(cells) <= MOST_CELLS:
        return 0, len(cells)
    first = next((place for place, cell in enumerate(cells) if cell.differs), 0)
    start = min(max(0, first - BEFORE_DIFFERENCE), len(cells) - MOST_CELLS)
    return start, start + MOST_CELLS


def _matching(one: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]) -> tuple[set[int], set[int]]:
    """Places that both sides share, in order; common ends first, since they are nearly everything."""
    shortest = min(len(one), len(other))
    head = next((place for place in range(shortest) if one[place] != other[place]), shortest)
    left = shortest - head
    tail = next((back for back in range(left) if one[-1 - back] != other[-1 - back]), left)
    middle_one, middle_other = one[head : len(one) - tail], other[head : len(other) - tail]
    same_one = {*range(head), *range(len(one) - tail, len(one))}
    same_other = {*range(head), *range(len(other) - tail, len(other))}
    # Two long sentences with nothing in common would take minutes to align and show nothing.
    if len(middle_one) * len(middle_other) <= COMPARISONS:
        for block in SequenceMatcher(None, middle_one, middle_other, autojunk=False).get_matching_blocks():
            same_one.update(range(head + block.a, head + block.a + block.size))
            same_other.update(range(head + block.b, head + block.b + block.size))
    return same_one, same_other


def _visible(text: str) -> str:
    """Something to see for white space, joiners and marks that stand alone."""
    shown = text.translate(MARKERS)
    if not shown:
        return "∅"
    if unicodedata.category(shown[0]).startswith("M"):
        return f"◌{shown}"
    return shown if shown.isprintable() else " ".join(f"U+{ord(letter):04X}" for letter in text)
