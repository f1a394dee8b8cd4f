"""Length signatures: the tokens of a word under every tokenizer, at the start of a sentence and inside.

Tokenizers of this kind cut text at spaces first, so the tokens of a sentence are those of its words added
up. A signature is one count per tokenizer. Whole sentences are still counted as they are in the end.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

CountTokens = Callable[[Sequence[str]], list[int]]
Signature = tuple[int, ...]
CARRIER = "He"


class Signatures:
    """Token counts of words, by place, kept once they are known."""

    def __init__(self, counters: Mapping[str, CountTokens]) -> None:
        self.names = tuple(counters)
        self._counters = tuple(counters.values())
        self._carrier = tuple(count([CARRIER])[0] for count in self._counters)
        self._known: dict[tuple[str, bool], Signature] = {}
        self.zero: Signature = (0,) * len(self.names)

    def learn(self, words: Iterable[str]) -> None:
        """Count words in both places at once; much faster than one at a time."""
        new = sorted(set(words))
        starts = [word[:1].upper() + word[1:] for word in new]
        inside = [f"{CARRIER} {word}" for word in new]
        counted = [(count(starts), count(inside)) for count in self._counters]
        for place, word in enumerate(new):
            self._known[word, True] = tuple(first[place] for first, _ in counted)
            self._known[word, False] = tuple(
                rest[place] - less for (_, rest), less in zip(counted, self._carrier, strict=True)
            )

    def of(self, word: str, *, start: bool) -> Signature:
        """The signature of a word."""
        if (word, start) not in self._known:
            self.learn([word])
        return self._known[word, start]

    def count(self, texts: Sequence[str]) -> list[Signature]:
        """The signatures of whole sentences, counted as they are."""
        counted = [count(texts) for count in self._counters]
        return [tuple(one[place] for one in counted) for place in range(len(texts))]


def add(left: Signature, right: Signature) -> Signature:
    """Two signatures together."""
    return tuple(one + other for one, other in zip(left, right, strict=True))


def subtract(left: Signature, right: Signature) -> Signature:
    """One signature less another."""
    return tuple(one - other for one, other in zip(left, right, strict=True))
