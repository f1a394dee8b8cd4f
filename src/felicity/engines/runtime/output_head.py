"""Logits at selected positions only, so that the output head is not computed where nothing is scored.

`compute_logits` selects the input of the output projection. `PositionSelector` starts earlier where it can:
an output head works on each position separately, and so does most of the last layer, so the positions are
selected as soon as attention no longer needs the others. At the first forward pass it tries the known sites,
earliest first, against the full model; if none gives the same logits, nothing is selected.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from felicity.engines.runtime.products import write_product

# Logits in memory (half a gigabyte in float32); a large vocabulary means smaller batches.
LOGITS = 1 << 27
# The buffer that each output projection writes its logits to: allocating it anew for every batch takes longer
# than reading the logits.
_BUFFERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
# How far logits may differ when other positions are computed beside them.
TOLERANCE = {"torch.float32": 1e-3}
HALF_TOLERANCE = 0.5
# What a model raises if it needs more than the selected positions.
REFUSALS = (RuntimeError, IndexError, KeyError, TypeError, ValueError, AttributeError, AssertionError)
# The modules right after attention in a last layer, where all that follows works on single positions:
# of BERT and its relatives, and of DistilBERT.
AFTER_ATTENTION = ("attention.output", "sa_layer_norm")
# Hidden states are tensors of this many dimensions; a layer's other inputs are passed on as they are.
HIDDEN = 3


def count_logit_rows(model: Any) -> int:
    """The number of positions whose logits may be in memory at once."""
    return max(1, LOGITS // int(model.config.get_text_config().vocab_size))


def compute_logits(model: Any, ids: Any, select: np.ndarray, **inputs: Any) -> Any:
    """Logits at the selected positions of the flattened batch, one row each.

    Only these go through the output projection, if the model has its own and passes it the whole batch, or
    `selects` positions by itself. Whatever the model does to logits afterwards (soft caps, scales) is
    unchanged. The logits are valid until the next call.
    """
    import torch

    places = torch.from_numpy(select)
    head = model.get_output_embeddings()
    if getattr(model, "selects", False):
        with torch.inference_mode(), _reusing_buffer(head, len(select)):
            return model(input_ids=ids, select=places, **inputs).logits
    narrowed = False

    def choose(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        nonlocal narrowed
        hidden = given[0]
        if hidden.shape[:-1] != ids.shape:
            return None
        narrowed = True
        return (hidden.flatten(0, 1).index_select(0, places.to(hidden.device))[None], *given[1:])

    handle = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        with torch.inference_mode(), _reusing_buffer(head, len(select)):
            logits = model(input_ids=ids, **inputs).logits
    finally:
        if handle is not None:
            handle.remove()
    return logits[0] if narrowed else logits.flatten(0, 1)[places.to(logits.device)]


def free_logits_buffer(model: Any) -> None:
    """Free the buffer kept for this model's logits."""
    head = model.get_output_embeddings()
    if head is not None:
        _BUFFERS.pop(head, None)


@contextmanager
def _reusing_buffer(head: Any, rows: int) -> Iterator[None]:
    """Let a plain projection on the CPU write the selected rows to a buffer that is kept."""
    import torch

    plain = type(head) is torch.nn.Linear and head.bias is None and "forward" not in vars(head)
    if not plain or head.weight.device.type != "cpu":
        yield
        return

    def project(hidden: Any) -> Any:
        flat = hidden.flatten(0, -2)
        if len(flat) != rows:
            return torch.nn.functional.linear(hidden, head.weight)
        buffer = _BUFFERS.get(head)
        if buffer is None or len(buffer) < rows:
            _BUFFERS[head] = buffer = torch.empty(rows, head.out_features, dtype=head.weight.dtype)
        write_product(flat, head.weight, buffer[:rows])
        return buffer[:rows].view(*hidden.shape[:-1], head.out_features)

    head.forward = project
    try:
        yield
    finally:
        del head.forward


class PositionSelector:
    """Selects positions inside `body`, the part of a model before its head; `site` is where, once known."""

    def __init__(self, body: Any) -> None:
        self.site: str | None = None
        self._tried = False
        self._body = body
        self._hook: Any = None
        self._places: tuple[Any, Any] | None = None

    def logits_at(self, logits: Callable[[], Any], rows: Any, places: Any) -> Any:
        """The logits at these positions of these rows, out of all that `logits()` would give."""
        if not self._tried:
            self._tried = True
            whole = logits()[rows, places]
            self.site = self._find_site(whole, logits, rows, places)
            return whole
        if self.site is None:
            return logits()[rows, places]
        try:
            with self._selecting(rows, places):
                selected = logits()[0]
        except REFUSALS:
            selected = ()
        if len(selected) == len(rows):
            return selected
        # A model that cuts its output to the length of its input, or cuts off padding of its own, cuts off
        # selected positions if there are more of them.
        self.release()
        self.site = None
        return logits()[rows, places]

    def release(self) -> None:
        """Remove the hook from the model."""
        if self._hook is not None:
            self._hook.remove()

    def _find_site(self, whole: Any, logits: Callable[[], Any], rows: Any, places: Any) -> str | None:
        for name in (*_sites(self._body), ""):
            module = self._body.get_submodule(name)
            if name:
                self._hook = module.register_forward_pre_hook(self._select_inputs)
            else:
                self._hook = module.register_forward_hook(self._select_output)
            if self._agrees(whole, logits, rows, places):
                return name or "output"
            self._hook.remove()
        return None

    def _agrees(self, whole: Any, logits: Callable[[], Any], rows: Any, places: Any) -> bool:
        import torch

        try:
            with self._selecting(rows, places):
                selected = logits()[0]
        except REFUSALS:
            return False
        tolerance = TOLERANCE.get(str(whole.dtype), HALF_TOLERANCE)
        return whole.shape == selected.shape and bool(
            torch.allclose(whole, selected, rtol=1e-4, atol=tolerance)
        )

    @contextmanager
    def _selecting(self, rows: Any, places: Any) -> Iterator[None]:
        self._places = (rows, places)
        try:
            yield
        finally:
            self._places = None

    def _select_inputs(self, _module: Any, inputs: tuple[Any, ...]) -> Any:
        if self._places is None:
            return inputs
        return tuple(value[self._places][None] if value.dim() == HIDDEN else value for value in inputs)

    def _select_output(self, _module: Any, _inputs: Any, output: Any) -> Any:
        if self._places is None:
            return output
        selected = output[0][self._places][None]
        if isinstance(output, tuple):
            return (selected, *output[1:])
        output["last_hidden_state"] = selected
        return output


def _sites(body: Any) -> list[str]:
    """Modules of the last layer, in known architectures, that can be given the wanted positions alone."""
    import torch

    stacks = [(name, stack) for name, stack in body.named_modules() if isinstance(stack, torch.nn.ModuleList)]
    names = {name for name, _ in body.named_modules()}
    sites = []
    for name, stack in stacks:
        for part in AFTER_ATTENTION:
            site = f"{name}.{len(stack) - 1}.{part}"
            if site in names:
                sites.append(site)
    return sites
