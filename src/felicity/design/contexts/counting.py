"""Token counts of growing texts, without counting every text from its first word again.

A tokenizer is handed in as a function from texts to counts. What a sentence adds behind another is counted
once; sums of that place the cuts. The sums are then checked on the texts themselves (see growing.py).
"""

from collections.abc import Callable, Iterable, Sequence

Count = Callable[[list[str]], list[int]]
# A sentence that nothing depends on: what stands behind it is counted as standing behind a sentence.
LEAD = "It is so."


class Tally:
    """Counts of texts and of what sentences add, each sentence counted once."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._first: dict[str, int] = {}
        self._added: dict[str, int] = {}
        self._lead: int | None = None

    def of(self, texts: Sequence[str]) -> list[int]:
        """True counts of texts."""
        return self._count(list(texts)) if texts else []

    def learn(self, sentences: Iterable[str], *, first: bool) -> None:
        """Count what is not yet known: sentences by themselves (`first`), or behind another."""
        known = self._first if first else self._added
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        if first or not new:
            known.update(zip(new, self.of(new), strict=True))
            return
        if self._lead is None:
            self._lead = self.of([LEAD])[0]
        counts = self.of([f"{LEAD} {sentence}" for sentence in new])
        known.update((one, count - self._lead) for one, count in zip(new, counts, strict=True))

    def first(self, sentence: str) -> int:
        """The count of a sentence that was learnt to stand first."""
        return self._first[sentence]

    def added(self, sentence: str) -> int:
        """What a sentence that was learnt adds behind another."""
        return self._added[sentence]
