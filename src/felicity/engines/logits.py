"""Logits only where they are asked for: a large vocabulary at every place would take gigabytes."""

from typing import Any

import numpy as np

# Logits kept at once (half a gigabyte in float32): a large vocabulary makes smaller passes.
LOGITS = 1 << 27


def count_rows(model: Any) -> int:
    """At how many places logits may be kept at once."""
    return max(1, LOGITS // int(model.config.get_text_config().vocab_size))


def read_logits(model: Any, ids: Any, select: np.ndarray, **inputs: Any) -> Any:
    """Logits at the selected places of the flattened batch, one row each.

    Only these go through the output projection, where the model has one of its own that takes the batch
    as it is. What the model does to logits behind it (soft caps, scales) is done as always.
    """
    import torch

    places = torch.from_numpy(select)
    narrowed = False

    def choose(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        nonlocal narrowed
        hidden = given[0]
        if hidden.shape[:-1] != ids.shape:
            return None
        narrowed = True
        return (hidden.flatten(0, 1).index_select(0, places.to(hidden.device))[None], *given[1:])

    head = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        with torch.inference_mode():
            logits = model(input_ids=ids, **inputs).logits
    finally:
        if handle is not None:
            handle.remove()
    return logits[0] if narrowed else logits.flatten(0, 1)[places.to(logits.device)]
