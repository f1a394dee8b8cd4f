"""Logits only where they are asked for: a large vocabulary at every place would take gigabytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

# Logits kept at once (half a gigabyte in float32): a large vocabulary makes smaller passes.
LOGITS = 1 << 27
# For each output projection, the memory that its logits are written to: asking the system for it anew at
# every pass takes longer than reading the logits.
_SCRATCH: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def count_rows(model: Any) -> int:
    """At how many places logits may be kept at once."""
    return max(1, LOGITS // int(model.config.get_text_config().vocab_size))


def read_logits(model: Any, ids: Any, select: np.ndarray, **inputs: Any) -> Any:
    """Logits at the selected places of the flattened batch, one row each.

    Only these go through the output projection, where the model has one of its own that takes the batch
    as it is. What the model does to logits behind it (soft caps, scales) is done as always. The logits are
    good until the model is asked again.
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
        with torch.inference_mode(), _writing_to_scratch(head, len(select)):
            logits = model(input_ids=ids, **inputs).logits
    finally:
        if handle is not None:
            handle.remove()
    return logits[0] if narrowed else logits.flatten(0, 1)[places.to(logits.device)]


def forget_logits(model: Any) -> None:
    """Let go of the memory kept for this model's logits, when its work is done."""
    head = model.get_output_embeddings()
    if head is not None:
        _SCRATCH.pop(head, None)


@contextmanager
def _writing_to_scratch(head: Any, rows: int) -> Iterator[None]:
    """Let a plain projection on the processor write the selected rows to memory that is kept for it."""
    import torch

    plain = type(head) is torch.nn.Linear and head.bias is None and "forward" not in vars(head)
    if not plain or head.weight.device.type != "cpu":
        yield
        return

    def project(hidden: Any) -> Any:
        flat = hidden.flatten(0, -2)
        if len(flat) != rows:
            return torch.nn.functional.linear(hidden, head.weight)
        scratch = _SCRATCH.get(head)
        if scratch is None or len(scratch) < rows:
            _SCRATCH[head] = scratch = torch.empty(rows, head.out_features, dtype=head.weight.dtype)
        return torch.mm(flat, head.weight.T, out=scratch[:rows]).view(*hidden.shape[:-1], head.out_features)

    head.forward = project
    try:
        yield
    finally:
        del head.forward
