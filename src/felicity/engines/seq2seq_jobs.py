"""What an encoder-decoder is given to score a text: something to read, and something to write.

Three ways. `target`: it reads the context, or nothing, and writes the text. `span`: it reads the context
and a gap where the text belongs, and fills the gap. `words`: it reads context and text with one word
missing, and fills that gap, word after word. A gap is filled as in training: T5 writes its sentinel and
then what is missing; BART writes everything over again from the beginning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicity.core.errors import NotPossible
from felicity.engines.encoding import Encoded
from felicity.engines.masked import find_word_ends

SENTINEL = "<extra_id_0>"


@dataclass(frozen=True)
class Job:
    """The encoder reads `source`; the decoder's tokens from `begin` on are scored."""

    source: np.ndarray
    decoder: np.ndarray
    begin: int


@dataclass(frozen=True)
class Layout:
    """The special tokens of an encoder-decoder.

    front, behind: what the tokenizer puts around what is read. start: what the decoder begins with.
    gap: what stands for what is missing; None where the model knows no such thing. rewrites: a gap is
    filled by writing everything over again.
    """

    front: list[int]
    behind: list[int]
    start: int
    gap: int | None
    rewrites: bool

    @classmethod
    def find(cls, tokenizer: Any, start: int) -> "Layout":
        """The layout that the tokenizer tells."""
        output = tokenizer("a", return_special_tokens_mask=True)
        ids, special = output["input_ids"], output["special_tokens_mask"]
        inner = [place for place, bit in enumerate(special) if not bit]
        sentinel = SENTINEL in tokenizer.get_vocab()
        gap = tokenizer.convert_tokens_to_ids(SENTINEL) if sentinel else tokenizer.mask_token_id
        return cls(ids[: inner[0]], ids[inner[-1] + 1 :], start, gap, not sentinel)

    def write(self, ids: np.ndarray, source: np.ndarray, first: int) -> Job:
        """The decoder writes all of `ids`, those from `first` on being the text."""
        decoder = np.concatenate([[self.start], ids])
        return Job(source, decoder, 1 + first)

    def fill(self, ids: np.ndarray, begin: int, end: int) -> Job:
        """The decoder fills the gap that `ids[begin:end]` leave."""
        if self.gap is None:
            raise NotPossible(
                "The model's tokenizer has no sentinel or mask token, so nothing can be left out."
            )
        source = np.concatenate([ids[:begin], [self.gap], ids[end:], np.array(self.behind, dtype=np.int64)])
        if self.rewrites:
            return Job(source, np.concatenate([[self.start], ids[:end]]), 1 + begin)
        return Job(source, np.concatenate([[self.start, self.gap], ids[begin:end]]), 2)


def build_jobs(
    encoded: Encoded, unit: range, *, way: str, layout: Layout, sources: Sequence[np.ndarray]
) -> Iterator[Job]:
    """All that is needed to score some texts, in their tokens' order; `sources` are read for `target`."""
    for i in unit:
        first = encoded.bounds[i]
        ids = encoded.ids[first : encoded.bounds[i + 1]]
        own = first + np.flatnonzero(encoded.own[first : encoded.bounds[i + 1]])
        if way == "target":
            yield layout.write(ids, sources[i], int(own[0] - first))
        elif way == "span":
            yield layout.fill(ids, int(own[0] - first), int(own[-1] + 1 - first))
        else:
            yield from _fill_words(encoded, own, ids, layout)


def _fill_words(encoded: Encoded, own: np.ndarray, ids: np.ndarray, layout: Layout) -> Iterator[Job]:
    first = int(np.searchsorted(encoded.bounds, own[0], side="right")) - 1
    start = encoded.bounds[first]
    ends = find_word_ends(encoded, own, np.full(len(own), first))
    place = 0
    while place < len(own):
        size = int(ends[place] - own[place])
        begin = int(own[place] - start)
        yield layout.fill(ids, begin, begin + size)
        place += size
