"""Cuts found on true counts: from where they were placed, a sentence on or back until they are right."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from felicity.design.contexts.counting import Tally


class Cut(NamedTuple):
    """A context of a series: the length asked for, its number of sentences, its number of tokens."""

    length: int
    sentences: int
    tokens: int


class Text(Protocol):
    """A text that can be had up to any sentence, and that may have more."""

    @property
    def drawn(self) -> Sequence[object]:
        """The sentences it has."""
        ...

    def take(self, number: int) -> int:
        """Take so many further sentences; fewer where there are no more."""
        ...

    def text(self, sentences: int) -> str:
        """The first so many sentences."""
        ...


def settle(
    texts: Sequence[Text], placed: Sequence[list[Cut]], lengths: Sequence[int], unit: str, tally: Tally
) -> list[list[Cut]]:
    """For each text the fewest sentences that reach each length, as counted; none where it cannot."""
    counts: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int], Cut] = {}
    walks: dict[tuple[int, int], int] = {}
    for place, (text, cuts) in enumerate(zip(texts, placed, strict=True)):
        near = {cut.length: cut.sentences for cut in cuts}
        for length in lengths if text.drawn else ():
            if unit == "tokens" or length in near:
                walks[place, length] = near.get(length, len(text.drawn))
    while walks:
        _count(texts, walks, counts, unit, tally)
        onward = {}
        for (place, length), sentences in walks.items():
            count = counts[place, sentences]
            if unit == "sentences":
                found[place, length] = Cut(length, sentences, count)
            elif count < length:
                if sentences < len(texts[place].drawn) or texts[place].take(1):
                    onward[place, length] = sentences + 1
            elif sentences > 1 and counts[place, sentences - 1] >= length:
                onward[place, length] = sentences - 1
            else:
                found[place, length] = Cut(length, sentences, count)
        walks = onward
    return [
        [found[place, length] for length in lengths if (place, length) in found]
        for place in range(len(texts))
    ]


def _count(
    texts: Sequence[Text],
    walks: dict[tuple[int, int], int],
    counts: dict[tuple[int, int], int],
    unit: str,
    tally: Tally,
) -> None:
    """Count the texts that the walks stand at, and those one sentence shorter."""
    wanted = {(place, sentences) for (place, _), sentences in walks.items()}
    if unit == "tokens":
        wanted |= {(place, sentences - 1) for place, sentences in wanted if sentences > 1}
    new = sorted(wanted - set(counts))
    counts.update(zip(new, tally.of([texts[place].text(number) for place, number in new]), strict=True))
