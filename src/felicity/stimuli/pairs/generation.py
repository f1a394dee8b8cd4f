"""Make the pairs of a paradigm: distinct, seeded, equally long, with an account of what was thrown away.

Two methods. `signatures` draws the differing words from buckets of equal length. `redraw` is the loop of
Ueda et al. (2024): draw a pair; while the lengths differ under any tokenizer, draw the differing words
again, at most ten times; then drop the pair.
"""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from felicity.core.errors import BadInput
from felicity.stimuli.grammar import Grammar
from felicity.stimuli.lexicon import Lexicon
from felicity.stimuli.pairs.drafts import draft_pair
from felicity.stimuli.pairs.drawing import Drawer, DrawnPair, Failure, Frequency
from felicity.stimuli.pairs.paradigm import Frame, Paradigm
from felicity.stimuli.pairs.signatures import CountTokens, Signature, Signatures, subtract

METHODS = ("signatures", "redraw")
ENGLISH = "en"
REDRAWS = 10
BATCH = 250
# A paradigm gives up when this many drafts in a row gave nothing new; sooner when there was never a pair.
PATIENCE = 2000
FIRST_PATIENCE = 100


@dataclass(frozen=True, kw_only=True)
class Matching:
    """What is matched. Without `length`, the differing words of each matched pair are drawn again freely."""

    length: bool = True
    frequency: bool = True
    band: float = 0.5
    method: str = "signatures"


@dataclass(frozen=True, kw_only=True)
class Made:
    """The pairs of one paradigm, and what it took: pairs begun, pairs dropped for their length, repeats."""

    pairs: pl.DataFrame
    begun: int
    dropped: int
    duplicates: int
    seconds: float


@dataclass
class PairGenerator:
    """Makes pairs from a lexicon and a grammar; remembers every sentence, so that no two suites share one."""

    lexicon: Lexicon
    grammar: Grammar
    counters: Mapping[str, CountTokens]
    matching: Matching = field(default_factory=Matching)
    frequency: Frequency | None = None
    seen: set[str] = field(default_factory=set)
    seen_twins: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.signatures = Signatures(self.counters)
        texts = {reading.text for readings in self.lexicon.readings.values() for reading in readings}
        self.signatures.learn(texts)

    def make(self, paradigm: Paradigm, n: int, *, seed: int) -> Made:
        """n pairs of a paradigm, fewer if its words do not make as many.

        Raises BadInput with the file and line if not one pair can be made.
        """
        return _Work(self, paradigm, seed).run(n)


class _Work:
    def __init__(self, generator: PairGenerator, paradigm: Paradigm, seed: int) -> None:
        self.generator, self.paradigm = generator, paradigm
        self.rng = random.Random(f"{seed}/{paradigm.uid}")
        # Of its own, so that the twin of a set starts from the very pairs of that set.
        self.twin_rng = random.Random(f"{seed}/{paradigm.uid}/twin")
        matching = generator.matching
        self.drawer = Drawer(
            generator.lexicon,
            generator.grammar,
            generator.signatures,
            frequency=generator.frequency if matching.frequency else None,
            band=matching.band,
        )
        self.begun = self.dropped = self.duplicates = 0
        self.failure: Failure | None = None
        self.failed = paradigm.frames[0]

    def run(self, n: int) -> Made:
        begin = time.perf_counter()
        kept: list[tuple[str, str]] = []
        since = barren = 0
        while len(kept) < n and max(since, barren) < (PATIENCE if kept else FIRST_PATIENCE):
            batch: list[DrawnPair] = []
            while len(batch) < min(BATCH, n - len(kept)) and since < (PATIENCE if batch else FIRST_PATIENCE):
                since += 1
                drawn = self._attempt()
                if drawn is not None and self._is_new(drawn, self.generator.seen):
                    batch.append(drawn)
                    self.drawer.count_use(drawn)
                    since = 0
            checked = self._check(batch)
            barren = 0 if checked else barren + max(len(batch), 1)
            kept += checked
        if not kept:
            self._refuse()
        pairs = self._tabulate(kept)
        return Made(
            pairs=pairs,
            begun=self.begun,
            dropped=self.dropped,
            duplicates=self.duplicates,
            seconds=time.perf_counter() - begin,
        )

    def _attempt(self) -> DrawnPair | None:
        """One pair; None when the structure was contradictory, no word fitted, or the lengths differ."""
        frame = self.paradigm.frames[self.rng.randrange(len(self.paradigm.frames))]
        if self.generator.matching.method == "redraw":
            drawn = self._draw(frame, matched=False)
            return self._redraw(drawn) if isinstance(drawn, DrawnPair) else None
        for _ in range(1 + REDRAWS):
            drawn = self._draw(frame, matched=True)
            if isinstance(drawn, DrawnPair):
                self.begun += 1
                return drawn
            if drawn is None or not drawn.length:
                return None
        self.begun += 1
        self.dropped += 1
        return None

    def _draw(self, frame: Frame, *, matched: bool) -> DrawnPair | Failure | None:
        draft = draft_pair(frame, self.generator.grammar, self.rng)
        if draft is None:
            return None
        drawn = self.drawer.draw(draft, self.rng, matched=matched, equal=self.paradigm.unequal is None)
        if isinstance(drawn, Failure):
            self.failure, self.failed = drawn, frame
        return None if isinstance(drawn, DrawnPair) and self._is_avoided(drawn) else drawn

    def _is_avoided(self, drawn: DrawnPair) -> bool:
        return bool(self.generator.grammar.find_avoided(" ".join(drawn.good), self.paradigm.allow))

    def _loosen(self, drawn: DrawnPair) -> DrawnPair:
        """The pair with its differing words drawn again without regard to length."""
        for _ in range(REDRAWS):
            twin = self.drawer.redraw(drawn, self.twin_rng)
            fits = isinstance(twin, DrawnPair) and not self._is_avoided(twin)
            if isinstance(twin, DrawnPair) and fits and self._is_new(twin, self.generator.seen_twins):
                return twin
        return drawn

    def _redraw(self, drawn: DrawnPair) -> DrawnPair | None:
        self.begun += 1
        if self.paradigm.unequal:
            return drawn
        for _ in range(REDRAWS):
            if self._difference(drawn) == self.generator.signatures.zero:
                return drawn
            again = self.drawer.redraw(drawn, self.rng)
            if not isinstance(again, Failure) and not self._is_avoided(again):
                drawn = again
        if self._difference(drawn) == self.generator.signatures.zero:
            return drawn
        self.dropped += 1
        return None

    def _difference(self, drawn: DrawnPair) -> Signature:
        good, bad = self.generator.signatures.count([" ".join(drawn.good), " ".join(drawn.bad)])
        return subtract(good, bad)

    def _is_new(self, drawn: DrawnPair, seen: set[str]) -> bool:
        good, bad = " ".join(drawn.good), " ".join(drawn.bad)
        if good == bad or good in seen or bad in seen:
            self.duplicates += 1
            return False
        seen |= {good, bad}
        return True

    def _check(self, batch: list[DrawnPair]) -> list[tuple[str, str]]:
        """The pairs whose whole sentences are equally long, if they have to be; or their twins."""
        pairs = [(" ".join(drawn.good), " ".join(drawn.bad)) for drawn in batch]
        kept = batch
        if not self.paradigm.unequal:
            counted = self.generator.signatures.count([text for pair in pairs for text in pair])
            kept = [one for place, one in enumerate(batch) if counted[2 * place] == counted[2 * place + 1]]
            self.dropped += len(batch) - len(kept)
        if not self.generator.matching.length:
            kept = [self._loosen(drawn) for drawn in kept]
        return [(" ".join(drawn.good), " ".join(drawn.bad)) for drawn in kept]

    def _refuse(self) -> None:
        place = self.failed.place
        if self.begun and self.dropped == self.begun and not (self.failure and self.failure.length):
            raise BadInput(
                f"{place}: no pair of '{self.paradigm.uid}' is equally long under all tokenizers; put other "
                'words in the part that differs, name fewer tokenizers, or declare unequal = "why".'
            )
        if self.failure is None:
            raise BadInput(
                f"{place}: the features of '{self.paradigm.uid}' contradict each other: no rule of the "
                "grammar unifies with them; check the values of its variables."
            )
        raise BadInput(f"{place}: {self.failure}; allow other values, add words, or name fewer tokenizers.")

    def _tabulate(self, kept: list[tuple[str, str]]) -> pl.DataFrame:
        goods, bads = [good for good, _ in kept], [bad for _, bad in kept]
        columns: dict[str, object] = {
            "suite": [self.paradigm.uid] * len(kept),
            "phenomenon": [self.paradigm.phenomenon] * len(kept),
            "item": [str(number) for number in range(1, len(kept) + 1)],
            "good": goods,
            "bad": bads,
        }
        # Readers of pairs take them for English unless they are told.
        if self.generator.lexicon.language not in ("", ENGLISH):
            columns["language"] = [self.generator.lexicon.language] * len(kept)
        names = self.generator.signatures.names
        for side, texts in (("good", goods), ("bad", bads)):
            counted = self.generator.signatures.count(texts)
            for place, name in enumerate(names):
                columns[f"tokens_{side}_{name}"] = [one[place] for one in counted]
        if self.generator.frequency:
            frequency = self.generator.frequency
            # Float even where no word is exchanged and all are empty, so that suites can be joined.
            columns["zipf_good"] = pl.Series([_mean_zipf(g, b, frequency) for g, b in kept], dtype=pl.Float64)
            columns["zipf_bad"] = pl.Series([_mean_zipf(b, g, frequency) for g, b in kept], dtype=pl.Float64)
        return pl.DataFrame(columns)


def _mean_zipf(text: str, other: str, frequency: Frequency) -> float | None:
    """The mean Zipf frequency of the words of one sentence that the other has not, or not as often."""
    words, others = (
        Counter(word.strip(".,?!").lower() for word in sentence.split()) for sentence in (text, other)
    )
    own = sorted((words - others).elements())
    return sum(frequency(word) for word in own) / len(own) if own else None
