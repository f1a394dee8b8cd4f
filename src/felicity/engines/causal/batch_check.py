"""Whether a padded batch gives a model's own numbers, and how texts are batched if it does not.

Most causal models do not see the padding on the right. A few do (CPM-Ant, ProphetNet), and a few turn their
positions by the length of the longest text of a batch (longrope). Those texts are read one by one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from felicity.engines.causal.forward import LENGTH_DEPENDENT_ROPE, find_rope_types
from felicity.engines.causal.self_check import build_sample
from felicity.engines.runtime import REFUSALS, TOLERANCE, TokenScorer, plan_batches, score_batch

# Of these, earlier versions stored numbers that depended on the batch.
BATCH_DEPENDENT = ("cpmant", "prophetnet")


def agrees_in_batches(model: Any, tokenizer: Any, *, window: int, dtype: str) -> bool:
    """Whether a few sentences have the same numbers in one padded batch as each by itself."""
    encoded = build_sample(tokenizer, window=window, attention_window=0)
    everything = np.arange(len(encoded))
    alone = np.concatenate(
        [
            score_batch(model, encoded, everything[place : place + 1], TokenScorer())["logprob"]
            for place in everything
        ]
    )
    try:
        together = score_batch(model, encoded, everything, TokenScorer())["logprob"]
    except REFUSALS:
        return False
    return bool(np.max(np.abs(together - alone), initial=0.0) <= TOLERANCE[dtype])


def find_rope_limit(config: Any) -> int | None:
    """The longest text that may share a batch, where the longest of a batch decides the positions of all.

    0 if the configuration does not say up to which length positions are alike; None if they always are.
    """
    if not any(name in rotation for rotation in find_rope_types(config) for name in LENGTH_DEPENDENT_ROPE):
        return None
    rope = getattr(config, "rope_parameters", None) or {}
    limit = rope.get("original_max_position_embeddings")
    limit = limit or getattr(config, "original_max_position_embeddings", None)
    return limit if isinstance(limit, int) else 0


def batch_texts(lengths: np.ndarray, *, budget: int, limit: int | None) -> Iterator[np.ndarray]:
    """Batches as `plan_batches` makes them; texts longer than `limit` each by itself.

    >>> [batch.tolist() for batch in batch_texts(np.array([3, 9, 4]), budget=99, limit=4)]
    [[1], [2, 0]]
    """
    if limit is None:
        yield from plan_batches(lengths, budget=budget)
        return
    longer, shorter = np.flatnonzero(lengths > limit), np.flatnonzero(lengths <= limit)
    yield from (longer[place : place + 1] for place in range(len(longer)))
    yield from (shorter[batch] for batch in plan_batches(lengths[shorter], budget=budget))
