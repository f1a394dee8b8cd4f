"""Tokens hidden and predicted from the rest: equal inputs read once, in batches of bounded memory."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from felicity.engines.reading import Reader

# Tokens read at once, padding included, and numbers of logits kept at once. On a processor more tokens are
# not faster, for what is between two layers no longer stays in its cache.
BATCH_TOKENS = 1024
LOGITS = 1 << 24
# Tokens after which what is scored is handed on: work broken off loses no more than that.
UNIT_TOKENS = 16_384


@dataclass(frozen=True)
class Copies:
    """Inputs with hidden tokens, an array entry each.

    Of sequence `sequence` the first `length` tokens are read, those from `begin` to `end` hidden; the one
    at `begin` is predicted, and is `target`.
    """

    sequence: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    length: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.sequence)


class Predictor(Protocol):
    """Logits over the vocabulary at the first hidden token of each row, as a tensor."""

    def __call__(
        self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, end: np.ndarray, /
    ) -> Any: ...


@dataclass(frozen=True)
class Hider:
    """A model that predicts hidden tokens, with the ids that stand for a hidden token and for nothing."""

    read: Predictor
    mask: int
    pad: int
    vocabulary: int
    batch_tokens: int = BATCH_TOKENS

    def score(self, sequences: Sequence[np.ndarray], copies: Copies, reader: Reader) -> np.ndarray:
        """The reader's records of the targets: log p(target | what is not hidden), and more."""
        records = np.empty(len(copies), dtype=reader.record)
        for members, row, logits in self.predict(sequences, copies):
            records[members] = reader.read(logits, row, copies.target[members])
        return records

    def predict(
        self, sequences: Sequence[np.ndarray], copies: Copies
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Batch by batch: the copies that were answered, the row of logits of each, ascending, the logits."""
        first, row_of = self._merge(sequences, copies)
        most = max(1, LOGITS // self.vocabulary)
        for batch in plan_rows(copies.length[first], budget=self.batch_tokens, most=most):
            place = np.full(len(first), -1)
            place[batch] = np.arange(len(batch))
            members = np.flatnonzero(place[row_of] >= 0)
            members = members[np.argsort(place[row_of[members]], kind="stable")]
            yield members, place[row_of[members]], self._read(sequences, copies, first[batch])

    def _merge(self, sequences: Sequence[np.ndarray], copies: Copies) -> tuple[np.ndarray, np.ndarray]:
        """The first of each set of equal inputs, and for every copy which of these it is."""
        rows: dict[tuple[bytes, int, int], int] = {}
        first: list[int] = []
        row_of = np.empty(len(copies), dtype=np.int64)
        for copy in range(len(copies)):
            ids = self._hide(sequences, copies, copy)
            digest = hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
            key = (digest, int(copies.begin[copy]), int(copies.end[copy]))
            if key not in rows:
                rows[key] = len(first)
                first.append(copy)
            row_of[copy] = rows[key]
        return np.array(first, dtype=np.int64), row_of

    def _hide(self, sequences: Sequence[np.ndarray], copies: Copies, copy: int) -> np.ndarray:
        ids: np.ndarray = sequences[copies.sequence[copy]][: copies.length[copy]].copy()
        ids[copies.begin[copy] : copies.end[copy]] = self.mask
        return ids

    def _read(self, sequences: Sequence[np.ndarray], copies: Copies, batch: np.ndarray) -> Any:
        lengths = copies.length[batch]
        ids = np.full((len(batch), int(lengths.max())), self.pad, dtype=np.int64)
        for row, copy in enumerate(batch):
            ids[row, : lengths[row]] = self._hide(sequences, copies, copy)
        return self.read(ids, lengths, copies.begin[batch], copies.end[batch])


def plan_rows(lengths: np.ndarray, *, budget: int, most: int) -> list[np.ndarray]:
    """Rows, longest first, in batches of at most `budget` tokens with their padding and `most` rows.

    A batch that is half full ends where shorter rows begin, which spares padding.

    >>> [batch.tolist() for batch in plan_rows(np.array([3, 9, 4]), budget=8, most=5)]
    [[1], [2], [0]]
    >>> [batch.tolist() for batch in plan_rows(np.array([3, 3, 4, 3]), budget=12, most=5)]
    [[2, 0, 1], [3]]
    """
    order = np.argsort(-lengths, kind="stable")
    changes = np.flatnonzero(np.diff(lengths[order])) + 1
    batches = []
    begin = 0
    while begin < len(order):
        size = min(most, max(1, budget // int(lengths[order[begin]])))
        end = begin + size
        shorter = changes[(changes >= begin + size / 2) & (changes < end)]
        end = int(shorter[0]) if len(shorter) else end
        batches.append(order[begin:end])
        begin = end
    return batches


def cut_units(cost: np.ndarray, *, budget: int) -> list[range]:
    """Neighbouring sequences in units of about `budget` tokens to read, at least one each.

    >>> cut_units(np.array([5, 3, 9, 1]), budget=8)
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    units = []
    begin, total = 0, 0
    for place, size in enumerate(cost):
        if place > begin and total + size > budget:
            units.append(range(begin, place))
            begin, total = place, 0
        total += int(size)
    if begin < len(cost):
        units.append(range(begin, len(cost)))
    return units


def normalize(logits: Any) -> np.ndarray:
    """Log-probabilities of the whole vocabulary, row by row."""
    import torch

    with torch.inference_mode():
        return np.asarray(logits.float().log_softmax(dim=1).cpu().numpy())
