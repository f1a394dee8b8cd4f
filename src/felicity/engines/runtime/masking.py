"""Masked tokens predicted from the rest: equal inputs computed once, in batches of bounded memory."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from felicity.engines.runtime.padding import ALONE, EQUAL, PADDED, group_equal
from felicity.engines.runtime.token_scores import TokenScorer, widen

# Tokens per batch with padding, and logits in memory. On a CPU larger batches are no faster, since the
# hidden states no longer fit into its cache.
MASKED_BATCH_TOKENS = 1024
LOGITS = 1 << 24
# Tokens per unit of work: scores are yielded after each unit, so an interruption loses no more than one.
UNIT_TOKENS = 16_384


@dataclass(frozen=True)
class MaskedCopies:
    """Inputs with masked tokens, one array entry per input.

    An input is the first `length` tokens of sequence `sequence`, with `begin` to `end` masked. The token at
    `begin` is predicted; it is `target`.
    """

    sequence: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    length: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.sequence)

    def take(self, places: np.ndarray) -> "MaskedCopies":
        """Some of the inputs."""
        columns = (self.sequence, self.begin, self.end, self.length, self.target)
        return MaskedCopies(*(column[places] for column in columns))

    @classmethod
    def join(cls, parts: Sequence["MaskedCopies"], sequences: Sequence[int]) -> "MaskedCopies":
        """Inputs of single sequences in one, with the number of each sequence."""
        numbers = [np.full(len(part), number) for part, number in zip(parts, sequences, strict=True)]
        return cls(
            np.concatenate(numbers),
            np.concatenate([part.begin for part in parts]),
            np.concatenate([part.end for part in parts]),
            np.concatenate([part.length for part in parts]),
            np.concatenate([part.target for part in parts]),
        )


class Predictor(Protocol):
    """Logits over the vocabulary at the first masked token of each row, as a tensor."""

    def __call__(
        self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, end: np.ndarray, /
    ) -> Any: ...


@dataclass(frozen=True)
class MaskedScorer:
    """A model that predicts masked tokens, with the ids of its mask and padding tokens.

    batches: which inputs share a forward pass.
    """

    predictor: Predictor
    mask_id: int
    pad_id: int
    vocabulary: int
    batch_tokens: int = MASKED_BATCH_TOKENS
    batches: str = PADDED

    def score(self, sequences: Sequence[np.ndarray], copies: MaskedCopies, scorer: TokenScorer) -> np.ndarray:
        """Records of the targets: log p(target | the tokens that are not masked), and extras."""
        records = np.empty(len(copies), dtype=scorer.record)
        for members, row, logits in self.predict(sequences, copies):
            records[members] = scorer.score(logits, row, copies.target[members])
        return records

    def predict(
        self, sequences: Sequence[np.ndarray], copies: MaskedCopies
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Batch by batch: the copies predicted, the row of logits of each (ascending), and the logits."""
        first, row_of = self._merge(sequences, copies)
        for batch in self._plan(copies.length[first]):
            output_row = np.full(len(first), -1)
            output_row[batch] = np.arange(len(batch))
            members = np.flatnonzero(output_row[row_of] >= 0)
            members = members[np.argsort(output_row[row_of[members]], kind="stable")]
            yield members, output_row[row_of[members]], self._forward(sequences, copies, first[batch])

    def _plan(self, lengths: np.ndarray) -> Iterator[np.ndarray]:
        """Inputs of these lengths in batches."""
        most = 1 if self.batches == ALONE else max(1, LOGITS // self.vocabulary)
        alike = group_equal([(size,) for size in lengths.tolist()]) if self.batches == EQUAL else None
        for group in alike or [np.arange(len(lengths))]:
            for batch in plan_rows(lengths[group], budget=self.batch_tokens, most=most):
                yield group[batch]

    def _merge(self, sequences: Sequence[np.ndarray], copies: MaskedCopies) -> tuple[np.ndarray, np.ndarray]:
        """The first of each set of equal inputs, and for every copy which of these it equals."""
        rows: dict[tuple[bytes, int, int], int] = {}
        first: list[int] = []
        row_of = np.empty(len(copies), dtype=np.int64)
        for copy in range(len(copies)):
            ids = self._mask(sequences, copies, copy)
            digest = hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
            key = (digest, int(copies.begin[copy]), int(copies.end[copy]))
            if key not in rows:
                rows[key] = len(first)
                first.append(copy)
            row_of[copy] = rows[key]
        return np.array(first, dtype=np.int64), row_of

    def _mask(self, sequences: Sequence[np.ndarray], copies: MaskedCopies, copy: int) -> np.ndarray:
        ids: np.ndarray = sequences[copies.sequence[copy]][: copies.length[copy]].copy()
        ids[copies.begin[copy] : copies.end[copy]] = self.mask_id
        return ids

    def _forward(self, sequences: Sequence[np.ndarray], copies: MaskedCopies, batch: np.ndarray) -> Any:
        lengths = copies.length[batch]
        ids = np.full((len(batch), int(lengths.max())), self.pad_id, dtype=np.int64)
        for row, copy in enumerate(batch):
            ids[row, : lengths[row]] = self._mask(sequences, copies, copy)
        return self.predictor(ids, lengths, copies.begin[batch], copies.end[batch])


def plan_rows(lengths: np.ndarray, *, budget: int, most: int) -> list[np.ndarray]:
    """Rows, longest first, in batches of at most `budget` tokens with padding and `most` rows.

    A batch that is at least half full ends where shorter rows begin, which saves padding.

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


def split_units(cost: np.ndarray, *, budget: int) -> list[range]:
    """Neighbouring sequences in units of about `budget` tokens, at least one sequence each.

    >>> split_units(np.array([5, 3, 9, 1]), budget=8)
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


def normalize_logits(logits: Any) -> np.ndarray:
    """Log-probabilities over the whole vocabulary, row by row."""
    import torch

    with torch.inference_mode():
        return np.asarray(widen(logits).log_softmax(dim=1).cpu().numpy())
