"""KenLM's binary files, read through the package `kenlm` (pip install 'felicity[ngram]')."""

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from felicity.core.errors import BadInput, NotPossible
from felicity.engines.ngram.model import LOG10

# The header: the magic bytes, numbers for byte order and sizes, five parameters, the counts.
ORDER_AT, COUNTS_AT = 88, 108


def read_ngram_counts(path: Path) -> tuple[int, ...]:
    """The number of n-grams of each order, from the header.

    Raises BadInput if the file is truncated.
    """
    with path.open("rb") as handle:
        head = handle.read(COUNTS_AT + 255 * 8)
    order = head[ORDER_AT] if len(head) > ORDER_AT else 0
    if not order or len(head) < COUNTS_AT + 8 * order:
        raise BadInput(f"{path} is truncated or not a KenLM file; download or build it again.")
    return struct.unpack_from(f"<{order}Q", head, COUNTS_AT)


class KenlmModel:
    """A model and its vocabulary; KenLM can look up a word but not list all words.

    model: the file as loaded by the package `kenlm`. size: how many words it has.
    """

    def __init__(self, model: Any, size: int) -> None:
        self.model = model
        self._size = size
        self._words: list[str] = []
        self._ids: dict[str, int | None] = {}

    @classmethod
    def load(cls, path: Path) -> "KenlmModel":
        """The model in a file.

        Raises NotPossible if the package is missing, BadInput if the file is damaged.
        """
        size = read_ngram_counts(path)[0]
        try:
            import kenlm
        except ImportError as error:
            raise NotPossible(
                f"{path} is a KenLM binary and needs the package kenlm: pip install 'felicity[ngram]'."
            ) from error
        settings = kenlm.Config()
        settings.show_progress = False
        # KenLM would map the file into memory, where a program that writes to it changes the model.
        settings.load_method = kenlm.LoadMethod.READ
        try:
            return cls(kenlm.Model(str(path), settings), size)
        except (OSError, RuntimeError) as error:
            raise BadInput(f"KenLM cannot read {path}; download or build it again.") from error

    def find(self, word: str) -> int | None:
        """An id for a word that the model knows."""
        if word not in self._ids:
            listed = word in self.model or word == "<unk>"
            self._ids[word] = len(self._words) if listed else None
            if listed:
                self._words.append(word)
        return self._ids[word]

    def word(self, token: int) -> str:
        """The word with an id."""
        return self._words[token]

    def __len__(self) -> int:
        return self._size

    def score(self, ids: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Nats of every word given those before it in its sequence (`bounds[i]:bounds[i+1]`)."""
        import kenlm

        score = np.empty(len(ids))
        before, after = kenlm.State(), kenlm.State()
        for begin, end in pairwise(bounds.tolist()):
            self.model.NullContextWrite(before)
            for position in range(begin, end):
                word = self._words[ids[position]]
                if position == begin and word == "<s>":
                    self.model.BeginSentenceWrite(after)
                    score[position] = np.nan
                else:
                    score[position] = self.model.BaseScore(before, word, after) * LOG10
                before, after = after, before
        return score
