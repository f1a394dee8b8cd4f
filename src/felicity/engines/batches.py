"""Plain scoring: sequences sorted by length, padded into batches under a token budget.

The padding stands on the right, where a causal model cannot see it, so a score does not depend on
what else is in the batch beyond the rounding of float arithmetic.
"""

from typing import Any

import numpy as np

from felicity.engines.encoding import Encoded
from felicity.engines.logits import count_rows, read_logits
from felicity.engines.reading import Reader

BATCH_TOKENS = 2048


def plan_batches(lengths: np.ndarray, *, budget: int) -> list[np.ndarray]:
    """Indices of sequences, longest first, each batch at most `budget` tokens with its padding.

    A sequence longer than the budget has a batch of its own.

    >>> [batch.tolist() for batch in plan_batches(np.array([3, 9, 4]), budget=8)]
    [[1], [2, 0]]
    """
    order = np.argsort(-lengths, kind="stable")
    batches: list[np.ndarray] = []
    begin = 0
    while begin < len(order):
        size = max(1, budget // max(1, int(lengths[order[begin]])))
        batches.append(order[begin : begin + size])
        begin += size
    return batches


def bound_tokens(model: Any) -> int:
    """Tokens of a batch, fewer where the vocabulary is large."""
    return min(BATCH_TOKENS, count_rows(model))


def score_batch(model: Any, encoded: Encoded, batch: np.ndarray, reader: Reader) -> np.ndarray:
    """Records of the wanted tokens of these sequences, flat, in their order.

    A long text with more wanted tokens than logits may be kept at once is read once for each part of them.
    """
    import torch

    lengths = encoded.lengths[batch]
    ids = np.zeros((len(batch), int(lengths.max())), dtype=np.int64)
    wanted = np.zeros_like(ids, dtype=bool)
    for row, sequence in enumerate(batch):
        span = slice(encoded.bounds[sequence], encoded.bounds[sequence + 1])
        ids[row, : lengths[row]] = encoded.ids[span]
        wanted[row, : lengths[row]] = encoded.wanted[span]
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    inputs: dict[str, Any] = {
        "ids": torch.from_numpy(ids).to(model.device),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)).to(model.device),
        "use_cache": False,
    }
    # What predicts a token stands one place before it.
    rows, columns = np.nonzero(wanted)
    select, targets = rows * ids.shape[1] + columns - 1, ids[rows, columns]
    found = np.empty(len(select), dtype=reader.record)
    most = count_rows(model)
    for begin in range(0, len(select), most):
        part = slice(begin, begin + most)
        logits = read_logits(model, select=select[part], **inputs)
        found[part] = reader.read(logits, np.arange(len(logits)), targets[part])
    return found
