"""Batches of a training: which sequences in which order, and as padded arrays.

An epoch is planned from the seed and its number alone, so a training that is taken up again makes the
same batches as one that was never broken off.
"""

from dataclasses import dataclass

import numpy as np

from felicity.engines.trained.text import TrainingText

# Batches whose sequences are sorted by length together: little padding, much of the order random.
POOL = 50


@dataclass(frozen=True)
class Step:
    """One batch: rows of the text's sequences, or of the topic model's."""

    rows: np.ndarray
    is_topic: bool


@dataclass(frozen=True)
class Padded:
    """Rows of ids, zero behind their ends."""

    ids: np.ndarray
    lengths: np.ndarray


def plan_epoch(lengths: np.ndarray, n_topic: int, *, batch: int, seed: int, epoch: int) -> list[Step]:
    """All batches of an epoch in a random order; language and topic model take turns at random."""
    rng = np.random.default_rng([seed, epoch])
    steps: list[Step] = []
    order = rng.permutation(len(lengths))
    for begin in range(0, len(order), POOL * batch):
        pool = order[begin : begin + POOL * batch]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        steps += [Step(pool[k : k + batch], False) for k in range(0, len(pool), batch)]
    order = rng.permutation(n_topic)
    steps += [Step(order[k : k + batch], True) for k in range(0, n_topic, batch)]
    return [steps[place] for place in rng.permutation(len(steps))]


def plan_reading(lengths: np.ndarray, *, batch: int) -> list[np.ndarray]:
    """All sequences once, by length, for validation."""
    order = np.argsort(lengths, kind="stable")
    return [order[begin : begin + batch] for begin in range(0, len(order), batch)]


def pad(rows: list[np.ndarray]) -> Padded:
    """Rows of unequal length as one array.

    >>> pad([np.array([1, 2]), np.array([3])]).ids.tolist()
    [[1, 2], [3, 0]]
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.zeros((len(rows), max(1, int(lengths.max(initial=0)))), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return Padded(ids, lengths)


def pad_sequences(text: TrainingText, rows: np.ndarray) -> Padded:
    """Sequences of a text, with `<s>` and `</s>`."""
    return pad([text.ids[text.bounds[row] : text.bounds[row + 1]] for row in rows])


def pad_others(text: TrainingText, rows: np.ndarray, *, document: int) -> Padded:
    """For each sequence the rest of its document, its first `document` content words."""
    return pad([text.others(int(row))[:document] for row in rows])


def pad_documents(text: TrainingText, documents: np.ndarray, *, document: int) -> Padded:
    """Whole documents, the first `document` content words of each."""
    spans = [text.spans(int(place)) for place in documents]
    return pad([text.content[begin : min(end, begin + document)] for begin, end in spans])
