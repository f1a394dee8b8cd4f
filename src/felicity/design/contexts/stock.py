"""Sentences laid out so that any suite, and all suites but one, can be drawn from without copying."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from felicity.design.contexts.joining import sentence_key
from felicity.design.contexts.pool import POOL

NOWHERE = range(0)


class Taken(NamedTuple):
    """A sentence, the item it is from, or its number in the text, and what tells it from others."""

    sentence: str
    origin: str
    key: str


@dataclass(frozen=True)
class Shelf:
    """Some sentences of a row: those of `shown`, or all but those of `hidden`."""

    row: Sequence[Taken]
    shown: range
    hidden: range = NOWHERE

    def __len__(self) -> int:
        return len(self.shown) - len(self.hidden)

    def __getitem__(self, place: int) -> Taken:
        at = self.shown[place]
        return self.row[at if not self.hidden or at < self.hidden.start else at + len(self.hidden)]


@dataclass(frozen=True)
class Stock:
    """All sentences there are: a row for each side, its suites one after another, and running text."""

    rows: dict[bool, list[Taken]]
    places: dict[tuple[bool, str], range]
    unrelated: Shelf

    @property
    def suites(self) -> list[str]:
        """The suites that have sentences."""
        return sorted({suite for _, suite in self.places})

    def within(self, suite: str, *, acceptable: bool) -> Shelf:
        """The sentences of one suite."""
        return Shelf(self.rows[acceptable], self.places.get((acceptable, suite), NOWHERE))

    def outside(self, suite: str, *, acceptable: bool) -> Shelf:
        """The sentences of all other suites."""
        row = self.rows[acceptable]
        return Shelf(row, range(len(row)), self.places.get((acceptable, suite), NOWHERE))


def build_stock(pool: pl.DataFrame, unrelated: Sequence[str]) -> Stock:
    """A stock of the rows of a pool, whatever their order, and of sentences of running text."""
    rows: dict[bool, list[Taken]] = {True: [], False: []}
    places: dict[tuple[bool, str], range] = {}
    ordered = pool.select(list(POOL)).sort("suite", "acceptable", "origin", "sentence")
    for sentence, suite, origin, acceptable in ordered.iter_rows():
        row = rows[acceptable]
        row.append(Taken(sentence, origin, sentence_key(sentence)))
        begun = places.get((acceptable, suite), range(len(row) - 1, len(row)))
        places[acceptable, suite] = range(begun.start, len(row))
    lines = [
        Taken(sentence, f"sentence {number}", sentence_key(sentence))
        for number, sentence in enumerate(unrelated, start=1)
    ]
    return Stock(rows, places, Shelf(lines, range(len(lines))))
