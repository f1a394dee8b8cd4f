"""KenLM's binary files, read through the package `kenlm` (pip install 'felicity[ngram]')."""

import struct
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from felicity.core.errors import BadInput, NotPossible
from felicity.engines.ngram.model import LOG10

MAGIC = b"mmap lm http://kheafield.com/code format version"
# The header: the magic bytes, numbers that tell byte order and sizes, five parameters, the counts.
ORDER_AT, COUNTS_AT = 88, 108


def is_kenlm(path: Path) -> bool:
    """Whether a file begins as KenLM's binaries do."""
    with path.open("rb") as handle:
        return handle.read(len(MAGIC)) == MAGIC


def read_counts(path: Path) -> tuple[int, ...]:
    """How many n-grams there are of each order, from the header.

    Raises BadInput where the file is cut off.
    """
    with path.open("rb") as handle:
        head = handle.read(COUNTS_AT + 255 * 8)
    order = head[ORDER_AT] if len(head) > ORDER_AT else 0
    if not order or len(head) < COUNTS_AT + 8 * order:
        raise BadInput(f"{path} is cut off or no KenLM file; fetch or build it again.")
    return struct.unpack_from(f"<{order}Q", head, COUNTS_AT)


class KenlmModel:
    """A model and its vocabulary, which KenLM can ask for a word but not list."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = read_counts(path)[0]
        self._words: list[str] = []
        self._ids: dict[str, int | None] = {}

    @cached_property
    def model(self) -> Any:
        """What the package `kenlm` made of the file.

        Raises NotPossible where the package is missing, BadInput where the file is damaged.
        """
        try:
            import kenlm
        except ImportError as error:
            raise NotPossible(
                f"{self._path} is a KenLM binary, which needs a package: pip install 'felicity[ngram]'."
            ) from error
        settings = kenlm.Config()
        settings.show_progress = False
        try:
            return kenlm.Model(str(self._path), settings)
        except (OSError, RuntimeError) as error:
            raise BadInput(f"KenLM cannot read {self._path}; fetch or build it again.") from error

    def find(self, word: str) -> int | None:
        """An id of our own for a word that the model knows."""
        if word not in self._ids:
            known = word in self.model or word == "<unk>"
            self._ids[word] = len(self._words) if known else None
            if known:
                self._words.append(word)
        return self._ids[word]

    def word(self, place: int) -> str:
        """The word of an id."""
        return self._words[place]

    def __len__(self) -> int:
        return self._size

    def score(self, ids: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Nats of every word given those before it in its sequence (`bounds[i]:bounds[i+1]`)."""
        import kenlm

        score = np.empty(len(ids))
        before, after = kenlm.State(), kenlm.State()
        for begin, end in pairwise(bounds.tolist()):
            self.model.NullContextWrite(before)
            for place in range(begin, end):
                word = self._words[ids[place]]
                if place == begin and word == "<s>":
                    self.model.BeginSentenceWrite(after)
                    score[place] = np.nan
                else:
                    score[place] = self.model.BaseScore(before, word, after) * LOG10
                before, after = after, before
        return score
