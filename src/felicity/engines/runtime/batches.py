"""Prompts in chunks, and chunks in padded batches under a token budget, for models scored without a trie.

Sequences are sorted by length and padded on the right, where a causal model cannot see the padding. So a
score does not depend on the rest of the batch, except for the rounding of float arithmetic.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from felicity.engines.runtime.output_head import compute_logits, count_logit_rows
from felicity.engines.runtime.token_scores import TokenScorer
from felicity.engines.tokenizing import Encoded

PROMPTS_AT_ONCE = 8192
CHARACTERS_AT_ONCE = 2_000_000
BATCH_TOKENS = 2048


def split_chunks(prompts: pl.DataFrame, *, join: str) -> Iterator[pl.DataFrame]:
    """All prompts, sorted by context and text, in chunks; the same chunks every time.

    >>> prompts = pl.DataFrame({"request": ["1", "2"], "context_text": [None, None], "text": ["b", "a"]})
    >>> [chunk["text"].to_list() for chunk in split_chunks(prompts, join=" ")]
    [['a', 'b']]
    """
    context = pl.col("context_text")
    begins = pl.when(context.fill_null("") == "").then(pl.lit("")).otherwise(context + join)
    whole = (begins + pl.col("text")).alias("whole")
    frame = prompts.with_columns(whole).sort("whole", maintain_order=True)
    size = frame["whole"].str.len_chars().cast(pl.Int64).cum_sum().to_numpy()
    frame = frame.drop("whole")
    begin = 0
    while begin < len(frame):
        before = size[begin - 1] if begin else 0
        room = int(np.searchsorted(size, before + CHARACTERS_AT_ONCE, side="right"))
        end = max(begin + 1, min(room, begin + PROMPTS_AT_ONCE))
        yield frame[begin:end]
        begin = end


def plan_batches(lengths: np.ndarray, *, budget: int) -> list[np.ndarray]:
    """Indices of sequences, longest first, each batch at most `budget` tokens with its padding.

    A sequence longer than the budget gets a batch of its own.

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


def limit_batch_tokens(model: Any) -> int:
    """The tokens of a batch, fewer if the vocabulary is large."""
    return min(BATCH_TOKENS, count_logit_rows(model))


def score_batch(model: Any, encoded: Encoded, batch: np.ndarray, scorer: TokenScorer) -> np.ndarray:
    """Records of the wanted tokens of these sequences, flat, in their order.

    The forward pass is repeated if a batch has more wanted tokens than logits fit into memory.
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
    # The logits that predict a token are one position before it.
    rows, columns = np.nonzero(wanted)
    select, targets = rows * ids.shape[1] + columns - 1, ids[rows, columns]
    records = np.empty(len(select), dtype=scorer.record)
    most = count_logit_rows(model)
    for begin in range(0, len(select), most):
        part = slice(begin, begin + most)
        logits = compute_logits(model, select=select[part], **inputs)
        records[part] = scorer.score(logits, np.arange(len(logits)), targets[part])
    return records


def score_sequences(model: Any, sequences: list[list[int]]) -> list[float]:
    """For each sequence of token ids, the log-probability of all but its first token; nothing is padded."""
    encoded = Encoded.from_ids(sequences)
    values = np.zeros(len(encoded))
    for length in np.unique(encoded.lengths):
        (batch,) = np.nonzero(encoded.lengths == length)
        scored = score_batch(model, encoded, batch, TokenScorer())["logprob"]
        values[batch] = scored.reshape(len(batch), -1).sum(axis=1, dtype=float)
    return values.tolist()
