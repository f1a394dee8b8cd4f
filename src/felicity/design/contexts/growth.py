"""Contexts that grow sentence by sentence up to each requested length.

The context at 200 tokens starts with the one at 100. Where each length is reached is computed from the sums
of the sentences' own token counts. A sum equals the true count if the tokenizer does not form tokens across
the space after a sentence. That is checked: the longest context of every series is counted as a whole, and
every context of some series. A series whose sum is wrong is recomputed from true counts; if one of the fully
checked series is wrong, all series are.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

Count = Callable[[list[str]], list[int]]
# A neutral sentence: sentences after it are counted as they are after any other.
LEAD = "It is so."
TOKENS_PER_SENTENCE = 12
AT_ONCE = 64
CHECKED_IN_FULL = 8


class TokenCounter:
    """Token counts of texts, and of what sentences add; each sentence is counted once."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._first: dict[str, int] = {}
        self._added: dict[str, int] = {}
        self._lead: int | None = None

    def count(self, texts: Sequence[str]) -> list[int]:
        """True counts of texts."""
        return self._count(list(texts)) if texts else []

    def learn(self, sentences: Iterable[str], *, first: bool) -> None:
        """Count new sentences: alone (`first`), or after another sentence."""
        counted = self._first if first else self._added
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in counted]
        if first or not new:
            counted.update(zip(new, self.count(new), strict=True))
            return
        if self._lead is None:
            self._lead = self.count([LEAD])[0]
        counts = self.count([f"{LEAD} {sentence}" for sentence in new])
        counted.update((one, count - self._lead) for one, count in zip(new, counts, strict=True))

    def first(self, sentence: str) -> int:
        """The count of a known sentence at the beginning."""
        return self._first[sentence]

    def added(self, sentence: str) -> int:
        """The tokens that a known sentence adds after another."""
        return self._added[sentence]


class Prefix(NamedTuple):
    """A context of a series: the requested length, its number of sentences, its number of tokens."""

    length: int
    sentences: int
    tokens: int


class Text(Protocol):
    """A text available up to any sentence, which may be extended."""

    @property
    def drawn(self) -> Sequence[object]:
        """The sentences it has."""
        ...

    def take(self, number: int) -> int:
        """Take this many further sentences; fewer if there are no more."""
        ...

    def text(self, sentences: int) -> str:
        """The first sentences, this many."""
        ...


def find_true_prefixes(
    texts: Sequence[Text],
    placed: Sequence[list[Prefix]],
    lengths: Sequence[int],
    unit: str,
    counter: TokenCounter,
) -> list[list[Prefix]]:
    """For each text the fewest sentences that reach each length, by true counts; none if it cannot."""
    counts: dict[tuple[int, int], int] = {}
    prefix_of: dict[tuple[int, int], Prefix] = {}
    walks: dict[tuple[int, int], int] = {}
    for place, (text, prefixes) in enumerate(zip(texts, placed, strict=True)):
        near = {prefix.length: prefix.sentences for prefix in prefixes}
        for length in lengths if text.drawn else ():
            if unit == "tokens" or length in near:
                walks[place, length] = near.get(length, len(text.drawn))
    while walks:
        _count(texts, walks, counts, unit, counter)
        onward = {}
        for (place, length), sentences in walks.items():
            count = counts[place, sentences]
            if unit == "sentences":
                prefix_of[place, length] = Prefix(length, sentences, count)
            elif count < length:
                if sentences < len(texts[place].drawn) or texts[place].take(1):
                    onward[place, length] = sentences + 1
            elif sentences > 1 and counts[place, sentences - 1] >= length:
                onward[place, length] = sentences - 1
            else:
                prefix_of[place, length] = Prefix(length, sentences, count)
        walks = onward
    return [
        [prefix_of[place, length] for length in lengths if (place, length) in prefix_of]
        for place in range(len(texts))
    ]


def _count(
    texts: Sequence[Text],
    walks: dict[tuple[int, int], int],
    counts: dict[tuple[int, int], int],
    unit: str,
    counter: TokenCounter,
) -> None:
    """Count the current texts of the searches, and those one sentence shorter."""
    wanted = {(place, sentences) for (place, _), sentences in walks.items()}
    if unit == "tokens":
        wanted |= {(place, sentences - 1) for place, sentences in wanted if sentences > 1}
    new = sorted(wanted - set(counts))
    counts.update(zip(new, counter.count([texts[place].text(number) for place, number in new]), strict=True))


class ContextSentence(NamedTuple):
    """A sentence of a context, and the item it came from."""

    sentence: str
    origin: str


class Grown(NamedTuple):
    """The contexts of a series, and its largest length, in the unit of its lengths."""

    prefixes: list[Prefix]
    reached: int


class Growth:
    """A series of contexts in progress: the sentences taken so far, and the source of further ones."""

    def __init__(self, more: Iterator[ContextSentence]) -> None:
        self._more = more
        self._text = ""
        self._ends: list[int] = []
        self.drawn: list[ContextSentence] = []
        self.sums: list[int] = []
        self.exhausted = False

    def take(self, number: int) -> int:
        """Take this many further sentences; fewer if there are no more."""
        new = list(islice(self._more, number))
        self.exhausted = len(new) < number
        self.drawn += new
        return len(new)

    def text(self, sentences: int) -> str:
        """The context of the first sentences, this many."""
        if len(self._ends) < len(self.drawn):
            self._text = " ".join(one.sentence for one in self.drawn)
            end = -1
            self._ends = [end := end + 1 + len(one.sentence) for one in self.drawn]
        return self._text[: self._ends[sentences - 1]] if sentences else ""


def grow(growths: Sequence[Growth], lengths: Sequence[int], unit: str, counter: TokenCounter) -> list[Grown]:
    """For each series the shortest contexts that reach the lengths; none for a length it cannot reach."""
    if not lengths:
        return [Grown([], 0) for _ in growths]
    _extend_all(growths, lengths[-1], unit, counter)
    placed = [_place(growth, lengths, unit) for growth in growths]
    again = _find_wrong_sums(growths, placed, lengths, unit, counter)
    true_prefixes = find_true_prefixes(
        [growths[place] for place in again], [placed[place] for place in again], lengths, unit, counter
    )
    for place, prefixes in zip(again, true_prefixes, strict=True):
        placed[place] = prefixes
    reached = [len(growth.drawn) for growth in growths]
    if unit == "tokens":
        short = [place for place, prefixes in enumerate(placed) if len(prefixes) < len(lengths)]
        counts = counter.count([growths[place].text(reached[place]) for place in short])
        reached = [prefixes[-1].tokens if prefixes else 0 for prefixes in placed]
        for place, count in zip(short, counts, strict=True):
            reached[place] = count if growths[place].drawn else 0
    return [Grown(*both) for both in zip(placed, reached, strict=True)]


def _extend_all(growths: Sequence[Growth], longest: int, unit: str, counter: TokenCounter) -> None:
    """Extend every series until its sum reaches the longest length, or no sentences are left."""
    growing = list(growths)
    while growing:
        for growth in growing:
            growth.take(_missing(growth, longest, unit))
        counter.learn((growth.drawn[0].sentence for growth in growing if growth.drawn), first=True)
        new = (one.sentence for growth in growing for one in growth.drawn[max(len(growth.sums), 1) :])
        counter.learn(new, first=False)
        for growth in growing:
            for place in range(len(growth.sums), len(growth.drawn)):
                sentence = growth.drawn[place].sentence
                count = growth.sums[-1] + counter.added(sentence) if place else counter.first(sentence)
                growth.sums.append(count)
        growing = [one for one in growing if not one.exhausted and _missing(one, longest, unit)]


def _missing(growth: Growth, longest: int, unit: str) -> int:
    """The number of sentences to take next: about as many as are missing, 0 if it is long enough."""
    if unit == "sentences":
        return longest - len(growth.drawn)
    if not growth.sums:
        return min(AT_ONCE, longest // TOKENS_PER_SENTENCE + 1)
    missing = longest - growth.sums[-1]
    return 0 if missing <= 0 else min(AT_ONCE, missing * len(growth.sums) // max(growth.sums[-1], 1) + 1)


def _place(growth: Growth, lengths: Sequence[int], unit: str) -> list[Prefix]:
    """Contexts by the sums: the requested sentences, or as few as reach the requested tokens."""
    places = [length if unit == "sentences" else bisect_left(growth.sums, length) + 1 for length in lengths]
    return [
        Prefix(length, sentences, growth.sums[sentences - 1])
        for length, sentences in zip(lengths, places, strict=True)
        if sentences <= len(growth.sums)
    ]


def _find_wrong_sums(
    growths: Sequence[Growth],
    placed: Sequence[list[Prefix]],
    lengths: Sequence[int],
    unit: str,
    counter: TokenCounter,
) -> list[int]:
    """The series whose sums differ from their counts; all of them if sums are not reliable."""
    wholes = {
        place: len(growth.drawn) if growth.exhausted else prefixes[-1].sentences
        for place, (growth, prefixes) in enumerate(zip(growths, placed, strict=True))
        if growth.drawn
    }
    counts = counter.count([growths[place].text(whole) for place, whole in wholes.items()])
    sound = [
        place
        for (place, whole), count in zip(wholes.items(), counts, strict=True)
        if growths[place].sums[whole - 1] == count
    ]
    sample = sound[:: max(1, len(sound) // CHECKED_IN_FULL)]
    before = [placed[place] for place in sample]
    if find_true_prefixes([growths[place] for place in sample], before, lengths, unit, counter) != before:
        return list(wholes)
    return sorted(set(wholes) - set(sound))
