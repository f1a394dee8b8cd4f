"""Contexts that grow sentence by sentence, cut where each length asked for is first reached.

The context at 200 tokens begins with the one at 100. The cuts are placed by sums of the sentences' own
counts. Sums are true counts wherever a tokenizer does not look across the space after a sentence; that
is checked, not supposed: the longest context of every series is counted as a whole, and every context
of some series. A series whose sum is not its count has all its cuts found on true counts; where one of
the fully checked series fails, every series has.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from felicity.design.contexts.counting import Tally
from felicity.design.contexts.settling import Cut, settle

TOKENS_A_SENTENCE = 12
AT_ONCE = 64
CHECKED_IN_FULL = 8


class Drawn(NamedTuple):
    """A sentence as it stands in the context, and the item it was made from."""

    sentence: str
    origin: str


class Grown(NamedTuple):
    """The contexts of a series, and how long it got at most, in the unit of its lengths."""

    cuts: list[Cut]
    reached: int


class Growth:
    """One series of contexts while it grows: the sentences taken so far, and where more come from."""

    def __init__(self, more: Iterator[Drawn]) -> None:
        self._more = more
        self._text = ""
        self._ends: list[int] = []
        self.drawn: list[Drawn] = []
        self.sums: list[int] = []
        self.exhausted = False

    def take(self, number: int) -> int:
        """Take so many further sentences; fewer are taken where there are no more."""
        new = list(islice(self._more, number))
        self.exhausted = len(new) < number
        self.drawn += new
        return len(new)

    def text(self, sentences: int) -> str:
        """The context of the first so many sentences."""
        if len(self._ends) < len(self.drawn):
            self._text = " ".join(one.sentence for one in self.drawn)
            end = -1
            self._ends = [end := end + 1 + len(one.sentence) for one in self.drawn]
        return self._text[: self._ends[sentences - 1]] if sentences else ""


def grow(growths: Sequence[Growth], lengths: Sequence[int], unit: str, tally: Tally) -> list[Grown]:
    """For each series the shortest contexts that reach the lengths; none for a length beyond its reach."""
    if not lengths:
        return [Grown([], 0) for _ in growths]
    _take_enough(growths, lengths[-1], unit, tally)
    placed = [_place(growth, lengths, unit) for growth in growths]
    again = _find_doubtful(growths, placed, lengths, unit, tally)
    settled = settle(
        [growths[place] for place in again], [placed[place] for place in again], lengths, unit, tally
    )
    for place, cuts in zip(again, settled, strict=True):
        placed[place] = cuts
    reached = [len(growth.drawn) for growth in growths]
    if unit == "tokens":
        short = [place for place, cuts in enumerate(placed) if len(cuts) < len(lengths)]
        counts = tally.of([growths[place].text(reached[place]) for place in short])
        reached = [cuts[-1].tokens if cuts else 0 for cuts in placed]
        for place, count in zip(short, counts, strict=True):
            reached[place] = count if growths[place].drawn else 0
    return [Grown(*both) for both in zip(placed, reached, strict=True)]


def _take_enough(growths: Sequence[Growth], longest: int, unit: str, tally: Tally) -> None:
    """Let every series grow until its sum reaches the longest length, or nothing is left to take."""
    growing = list(growths)
    while growing:
        for growth in growing:
            growth.take(_missing(growth, longest, unit))
        tally.learn((growth.drawn[0].sentence for growth in growing if growth.drawn), first=True)
        new = (one.sentence for growth in growing for one in growth.drawn[max(len(growth.sums), 1) :])
        tally.learn(new, first=False)
        for growth in growing:
            for place in range(len(growth.sums), len(growth.drawn)):
                sentence = growth.drawn[place].sentence
                count = growth.sums[-1] + tally.added(sentence) if place else tally.first(sentence)
                growth.sums.append(count)
        growing = [one for one in growing if not one.exhausted and _missing(one, longest, unit)]


def _missing(growth: Growth, longest: int, unit: str) -> int:
    """How many sentences to take next: about as many as are missing, none when it is long enough."""
    if unit == "sentences":
        return longest - len(growth.drawn)
    if not growth.sums:
        return min(AT_ONCE, longest // TOKENS_A_SENTENCE + 1)
    missing = longest - growth.sums[-1]
    return 0 if missing <= 0 else min(AT_ONCE, missing * len(growth.sums) // max(growth.sums[-1], 1) + 1)


def _place(growth: Growth, lengths: Sequence[int], unit: str) -> list[Cut]:
    """Cuts by the sums: as many sentences as asked for, or as few as reach the tokens asked for."""
    places = [length if unit == "sentences" else bisect_left(growth.sums, length) + 1 for length in lengths]
    return [
        Cut(length, sentences, growth.sums[sentences - 1])
        for length, sentences in zip(lengths, places, strict=True)
        if sentences <= len(growth.sums)
    ]


def _find_doubtful(
    growths: Sequence[Growth], placed: Sequence[list[Cut]], lengths: Sequence[int], unit: str, tally: Tally
) -> list[int]:
    """The series whose sums are not their counts; all of them where sums cannot be relied on."""
    wholes = {
        place: len(growth.drawn) if growth.exhausted else cuts[-1].sentences
        for place, (growth, cuts) in enumerate(zip(growths, placed, strict=True))
        if growth.drawn
    }
    counts = tally.of([growths[place].text(whole) for place, whole in wholes.items()])
    sound = [
        place
        for (place, whole), count in zip(wholes.items(), counts, strict=True)
        if growths[place].sums[whole - 1] == count
    ]
    sample = sound[:: max(1, len(sound) // CHECKED_IN_FULL)]
    before = [placed[place] for place in sample]
    if settle([growths[place] for place in sample], before, lengths, unit, tally) != before:
        return list(wholes)
    return sorted(set(wholes) - set(sound))
