"""How often each n-gram occurs, up to some order, by sorting ids: no Python object per n-gram.

An n-gram is known by the row of its first n-1 words in the table of the order below, and its last
word. So one 64-bit key holds it, whatever its order.
"""

from dataclasses import dataclass

import numpy as np

from felicity.core.errors import BadInput
from felicity.engines.words.corpus import BEGIN_ID, WordCorpus, mark_lines


@dataclass(frozen=True)
class Grams:
    """All n-grams of one order, sorted by prefix and word.

    prefix, suffix: rows of the first and the last n-1 words in the order below. word: the last word.
    count: how often it occurs. initial: whether it begins with `<s>`.
    """

    prefix: np.ndarray
    word: np.ndarray
    suffix: np.ndarray
    count: np.ndarray
    initial: np.ndarray

    def __len__(self) -> int:
        return len(self.word)


def count_ngrams(corpus: WordCorpus, order: int, *, name: str = "The corpus") -> list[Grams]:
    """Tables of orders 1 to `order`; row i of the first is word i of the vocabulary.

    Raises BadInput where no line is long enough for an n-gram of this order.
    """
    stream, bounds = mark_lines(corpus)
    end = np.repeat(bounds[1:], np.diff(bounds))
    size = len(corpus.words)
    tables = [_unigrams(stream, size)]
    row = stream.astype(np.int64)
    starts = np.arange(len(stream))
    for n in range(2, order + 1):
        starts = starts[starts + n - 1 < end[starts]]
        if not len(starts):
            raise BadInput(
                f"{name} has no line of {n - 2} words, which a model of order {order} needs; lower -n."
            )
        keys = row[starts] * size + stream[starts + n - 1]
        found, first, inverse, count = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        tables.append(
            Grams(
                prefix=found // size,
                word=found % size,
                suffix=row[starts[first] + 1],
                count=count,
                initial=stream[starts[first]] == BEGIN_ID,
            )
        )
        longer = np.full(len(stream), -1, dtype=np.int64)
        longer[starts] = inverse
        row = longer
    return tables


def _unigrams(stream: np.ndarray, size: int) -> Grams:
    words = np.arange(size)
    nothing = np.zeros(size, dtype=np.int64)
    count = np.bincount(stream, minlength=size)
    return Grams(nothing, words, nothing, count, words == BEGIN_ID)
