"""A back-off n-gram model in memory: log p(word | the words before it), many at a time.

The tables form a trie from left to right: a row of order n is found by the row of its first n-1 words and
its last word. Looking up every position of a text takes one sorted search per order.
"""

from dataclasses import dataclass

import numpy as np

from felicity.engines.ngram.estimation import Grams, Smoothed
from felicity.engines.words import WordSplitting

LOG10 = float(np.log(10.0))
# What ARPA files write for log 0: <s> is never predicted.
NEVER = -99.0


@dataclass(frozen=True)
class NgramModel:
    """Base-10 logarithms, as in ARPA files; row i of order 1 is word i.

    keys: of each order above the first, `prefix row * words + last word`, sorted.
    logprob: NaN for an n-gram that exists only as the prefix of longer ones.
    splitting, lower: how the training text was split into words, and whether it was lower-cased.
    """

    words: list[str]
    keys: tuple[np.ndarray, ...]
    logprob: tuple[np.ndarray, ...]
    backoff: tuple[np.ndarray, ...]
    splitting: WordSplitting = "vocabulary"
    lower: bool = False

    @property
    def order(self) -> int:
        """The most words an n-gram has."""
        return len(self.logprob)

    def score(self, ids: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Nats of every word given those before it in its sequence (`bounds[i]:bounds[i+1]`).

        A word with nothing before it gets its unigram probability; an id below zero gets NaN.
        """
        begin = np.repeat(bounds[:-1], np.diff(bounds))
        rows = self._walk(ids, np.repeat(bounds[1:], np.diff(bounds)))
        position = np.arange(len(ids))
        score, weight = np.full(len(ids), np.nan), np.zeros(len(ids))
        open_ = ids >= 0
        for n in range(self.order, 0, -1):
            fits = open_ & (position - (n - 1) >= begin)
            start = position - (n - 1)
            row = np.where(fits, rows[n - 1][np.maximum(start, 0)], -1)
            logprob = np.where(row >= 0, self.logprob[n - 1][row], np.nan)
            done = ~np.isnan(logprob)
            score[done] = logprob[done] + weight[done]
            open_ = open_ & ~done
            if n > 1:
                history = np.where(fits & ~done, rows[n - 2][np.maximum(start, 0)], -1)
                weight += np.where(history >= 0, self.backoff[n - 2][history], 0.0)
        return score * LOG10

    def _walk(self, ids: np.ndarray, end: np.ndarray) -> list[np.ndarray]:
        """For each order, the row of the n-gram that starts at each position; -1 if there is none."""
        rows = [ids.astype(np.int64)]
        for n, keys in enumerate(self.keys, start=2):
            row = np.full(len(ids), -1, dtype=np.int64)
            starts = np.arange(len(ids) - n + 1)
            starts = starts[
                (starts + n - 1 < end[starts]) & (rows[-1][starts] >= 0) & (ids[starts + n - 1] >= 0)
            ]
            wanted = rows[-1][starts] * len(self.words) + ids[starts + n - 1]
            nearest = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            row[starts] = np.where(keys[nearest] == wanted, nearest, -1) if len(keys) else -1
            rows.append(row)
        return rows


def build_model(
    words: list[str], tables: list[Grams], smoothed: list[Smoothed], *, splitting: WordSplitting, lower: bool
) -> NgramModel:
    """The estimated probabilities as a back-off model."""
    size = len(words)
    with np.errstate(divide="ignore"):
        logprob = [np.maximum(np.log10(order.probability), NEVER) for order in smoothed]
    return NgramModel(
        words=words,
        keys=tuple(grams.prefix * size + grams.word for grams in tables[1:]),
        logprob=tuple(logprob),
        backoff=tuple(np.log10(order.gamma) for order in smoothed),
        splitting=splitting,
        lower=lower,
    )
