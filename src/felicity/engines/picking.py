"""Only as much of a model's end as the wanted predictions need.

A prediction head works on one position at a time, and so does most of a model's last layer. So the wanted
positions are picked from what flows through the model as late as attention still needs the others. At the
first reading this is tried at the places that are known, earliest first, against the whole model; where
no place gives its numbers, nothing is picked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# By how much logits may differ for their being computed in other company.
TOLERANCE = {"torch.float32": 1e-3}
HALF_TOLERANCE = 0.5
# What a model raises when it needs more than the picked positions.
REFUSALS = (RuntimeError, IndexError, KeyError, TypeError, ValueError, AttributeError)
# In a last layer, what comes right after attention and is followed by what works on single positions:
# of BERT and its kin, of DistilBERT.
AFTER_ATTENTION = ("attention.output", "sa_layer_norm")
# Holds on to nothing but the hidden states that a layer is given and those that it adds.
HIDDEN = 3


class Picker:
    """A hold on `body`, the part of a model before its head; `site` is where it picks, once known."""

    def __init__(self, body: Any) -> None:
        self.site: str | None = None
        self._tried = False
        self._body = body
        self._hook: Any = None
        self._places: tuple[Any, Any] | None = None

    def read(self, logits: Callable[[], Any], rows: Any, places: Any) -> Any:
        """The logits at these places of these rows of the batch, of all that `logits()` would give."""
        if not self._tried:
            self._tried = True
            whole = logits()[rows, places]
            self.site = self._find_site(whole, logits, rows, places)
            return whole
        if self.site is None:
            return logits()[rows, places]
        with self._picking(rows, places):
            return logits()[0]

    def release(self) -> None:
        """Let go of the model."""
        if self._hook is not None:
            self._hook.remove()

    def _find_site(self, whole: Any, logits: Callable[[], Any], rows: Any, places: Any) -> str | None:
        for name in (*_sites(self._body), ""):
            module = self._body.get_submodule(name)
            if name:
                self._hook = module.register_forward_pre_hook(self._pick_inputs)
            else:
                self._hook = module.register_forward_hook(self._pick_output)
            if self._agrees(whole, logits, rows, places):
                return name or "output"
            self._hook.remove()
        return None

    def _agrees(self, whole: Any, logits: Callable[[], Any], rows: Any, places: Any) -> bool:
        import torch

        try:
            with self._picking(rows, places):
                picked = logits()[0]
        except REFUSALS:
            return False
        tolerance = TOLERANCE.get(str(whole.dtype), HALF_TOLERANCE)
        return whole.shape == picked.shape and bool(torch.allclose(whole, picked, rtol=1e-4, atol=tolerance))

    @contextmanager
    def _picking(self, rows: Any, places: Any) -> Iterator[None]:
        self._places = (rows, places)
        try:
            yield
        finally:
            self._places = None

    def _pick_inputs(self, _module: Any, inputs: tuple[Any, ...]) -> Any:
        if self._places is None:
            return inputs
        return tuple(value[self._places][None] if value.dim() == HIDDEN else value for value in inputs)

    def _pick_output(self, _module: Any, _inputs: Any, output: Any) -> Any:
        if self._places is None:
            return output
        picked = output[0][self._places][None]
        if isinstance(output, tuple):
            return (picked, *output[1:])
        output["last_hidden_state"] = picked
        return output


def _sites(body: Any) -> list[str]:
    """Where a last layer of a known make can be left with the wanted positions alone."""
    import torch

    stacks = [(name, stack) for name, stack in body.named_modules() if isinstance(stack, torch.nn.ModuleList)]
    names = {name for name, _ in body.named_modules()}
    found = []
    for name, stack in stacks:
        for part in AFTER_ATTENTION:
            site = f"{name}.{len(stack) - 1}.{part}"
            if site in names:
                found.append(site)
    return found
