"""Interpolated modified Kneser-Ney smoothing (Chen & Goodman 1998), for all n-grams at once.

With a(.) the adjusted count (at the highest order how often an n-gram occurs; below it how many different
words precede it; an n-gram that starts with <s> has nothing before it and keeps its count), the discount
D(a) of its order, and h' the history h without its first word,

    p(w | h) = max(a(hw) - D(a(hw)), 0) / a(h.) + gamma(h) p(w | h')

where gamma(h) redistributes the discounted mass. Below the unigrams is the uniform distribution over
the vocabulary with <unk> and </s>, without <s>, which is never predicted.
"""

from dataclasses import dataclass

import numpy as np

from felicity.core.errors import BadInput
from felicity.engines.words import BEGIN_ID, WordCorpus, mark_lines

# What KenLM uses if a corpus is too small for the formula.
FALLBACK = (0.5, 1.0, 1.5)
CLASSES = 3


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

    Raises BadInput if no line is long enough for an n-gram of this order.
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
        distinct, first, inverse, count = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        tables.append(
            Grams(
                prefix=distinct // size,
                word=distinct % size,
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


@dataclass(frozen=True)
class Smoothed:
    """Probabilities of one order's n-grams and their back-off mass as histories; fallback: see FALLBACK."""

    probability: np.ndarray
    gamma: np.ndarray
    discounts: tuple[float, ...]
    fallback: bool


def estimate(tables: list[Grams]) -> list[Smoothed]:
    """The smoothed probability of every counted n-gram."""
    smoothed: list[Smoothed] = []
    size = len(tables[0])
    lower = np.full(1, 1 / (size - 1))
    gammas: list[np.ndarray] = []
    for n, grams in enumerate(tables, start=1):
        adjusted = _adjust(tables, n)
        discounts, fallback = find_discounts(adjusted)
        taken = np.array([0.0, *discounts])[np.minimum(adjusted, CLASSES)]
        rows = len(tables[n - 2]) if n > 1 else 1
        total = np.bincount(grams.prefix, weights=adjusted, minlength=rows)
        handed = np.bincount(grams.prefix, weights=taken, minlength=rows)
        # A history that nothing follows passes all its mass on.
        gamma = np.divide(handed, total, out=np.ones(rows), where=total > 0)
        discounted = (adjusted - taken) / total[grams.prefix]
        probability = discounted + gamma[grams.prefix] * lower[grams.suffix]
        if n == 1:
            probability[BEGIN_ID] = 0.0
        gammas.append(gamma)
        smoothed.append(Smoothed(probability, np.ones(len(grams)), discounts, fallback))
        lower = probability
    for n in range(1, len(tables)):
        below = smoothed[n - 1]
        smoothed[n - 1] = Smoothed(below.probability, gammas[n], below.discounts, below.fallback)
    return smoothed


def find_discounts(adjusted: np.ndarray) -> tuple[tuple[float, ...], bool]:
    """D1, D2 and D3+ from how many n-grams have an adjusted count of 1, 2, 3 and 4.

    The second value says that the formula gave no usable discount and FALLBACK is used.

    >>> find_discounts(np.repeat([1, 2, 3, 4], [8, 4, 3, 2]))
    ((0.5, 0.875, 1.6666666666666667), False)
    """
    n = [0, *(int((adjusted == k).sum()) for k in range(1, CLASSES + 2))]
    if 0 in n[1:]:
        return FALLBACK, True
    y = n[1] / (n[1] + 2 * n[2])
    discounts = tuple(k - (k + 1) * y * n[k + 1] / n[k] for k in range(1, CLASSES + 1))
    if all(0 <= value <= k for k, value in enumerate(discounts, start=1)):
        return discounts, False
    return FALLBACK, True


def _adjust(tables: list[Grams], n: int) -> np.ndarray:
    grams = tables[n - 1]
    if n == len(tables):
        adjusted = grams.count.copy()
    else:
        before = np.bincount(tables[n].suffix, minlength=len(grams))
        adjusted = np.where(grams.initial, grams.count, before)
    if n == 1:
        adjusted[BEGIN_ID] = 0
    return np.asarray(adjusted)
