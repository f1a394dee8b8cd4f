"""A corpus as one long array of word ids, for training: a line is a sentence, or a paragraph."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from felicity.core.errors import BadInput
from felicity.core.policy import Casing
from felicity.engines.words.cutting import BEGIN, END, UNKNOWN, Cut, cut_words

SPECIAL = (UNKNOWN, BEGIN, END)
UNKNOWN_ID, BEGIN_ID, END_ID = range(3)


@dataclass(frozen=True)
class WordCorpus:
    """Ids of words, flat; line i is `bounds[i]:bounds[i+1]`, without begin and end.

    words: the vocabulary, `<unk>`, `<s>` and `</s>` first, then by how often they occur.
    counts: how often each occurs; `<unk>` has what was left out.
    """

    ids: np.ndarray
    bounds: np.ndarray
    words: list[str]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.bounds) - 1


def read_corpus(
    lines: Iterable[str], *, cut: Cut, casing: Casing, min_count: int = 1, name: str = "The corpus"
) -> WordCorpus:
    """The corpus with a vocabulary of its words that occur at least `min_count` times.

    Raises BadInput where no word is left.
    """
    ids, bounds, words = _intern(lines, cut, casing)
    found = np.bincount(ids, minlength=len(words))
    found[: len(SPECIAL)] = 0
    kept = np.flatnonzero(found >= max(1, min_count))
    if not len(kept):
        raise BadInput(
            f"{name} has no word that occurs {min_count} times or more; lower --min-count or give more text."
        )
    kept = kept[np.argsort(-found[kept], kind="stable")]
    new = np.zeros(len(words), dtype=np.int32)
    new[kept] = np.arange(len(SPECIAL), len(SPECIAL) + len(kept))
    ids = new[ids]
    vocabulary = [*SPECIAL, *(words[place] for place in kept)]
    return WordCorpus(ids, bounds, vocabulary, np.bincount(ids, minlength=len(vocabulary)))


def encode_corpus(lines: Iterable[str], words: list[str], *, cut: Cut, casing: Casing) -> WordCorpus:
    """Another corpus under a vocabulary that is fixed already."""
    ids, bounds, found = _intern(lines, cut, casing)
    place = {word: i for i, word in enumerate(words)}
    new = np.array([place.get(word, UNKNOWN_ID) for word in found], dtype=np.int32)
    new[: len(SPECIAL)] = UNKNOWN_ID
    return WordCorpus(new[ids], bounds, words, np.bincount(new[ids], minlength=len(words)))


def mark_lines(corpus: WordCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Every line with `<s>` before and `</s>` behind it, flat, and where each begins and ends."""
    lengths = np.diff(corpus.bounds)
    bounds = corpus.bounds + 2 * np.arange(len(corpus.bounds))
    stream = np.empty(len(corpus.ids) + 2 * len(corpus), dtype=np.int32)
    stream[bounds[:-1]] = BEGIN_ID
    stream[bounds[1:] - 1] = END_ID
    stream[np.arange(len(corpus.ids)) + np.repeat(2 * np.arange(len(corpus)) + 1, lengths)] = corpus.ids
    return stream, bounds


def _intern(lines: Iterable[str], cut: Cut, casing: Casing) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Ids in the order in which words are first met, ends of lines, and the words."""
    place = {word: i for i, word in enumerate(SPECIAL)}
    ids = array("i")
    bounds = array("q", [0])
    for line in lines:
        text = line.lower() if casing == "lower" else line
        ids.extend([place.setdefault(word, len(place)) for word in cut_words(text, cut)])
        bounds.append(len(ids))
    flat = np.frombuffer(ids, dtype=np.int32) if ids else np.zeros(0, dtype=np.int32)
    # A text cannot write the marks that begin and end it.
    flat = np.where(flat < len(SPECIAL), UNKNOWN_ID, flat)
    return flat, np.frombuffer(bounds, dtype=np.int64), list(place)
