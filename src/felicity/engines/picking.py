"""The prediction head where a prediction is wanted, and nowhere else.

A head works on one position at a time, whatever the model, so the wanted positions are picked from what
the body gives before the head sees it. At the first reading the head also sees all of it; where the two
do not agree, the head sees everything from then on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# By how much logits may differ for their being computed in other company.
TOLERANCE = {"torch.float32": 1e-3}
HALF_TOLERANCE = 0.5
# What a model raises that does more with its body's output than feed it to a head.
REFUSALS = (RuntimeError, IndexError, KeyError, TypeError, ValueError, AttributeError)


class Picker:
    """A hold on the output of `body`, a part of a model that is followed by its head."""

    def __init__(self, body: Any) -> None:
        self.sparse: bool | None = None
        self._places: tuple[Any, Any] | None = None
        self._hook = body.register_forward_hook(self._pick)

    def read(self, logits: Callable[[], Any], rows: Any, places: Any) -> Any:
        """The logits at these places of these rows of the batch, of all that `logits()` would give."""
        if self.sparse is None:
            whole = logits()[rows, places]
            self.sparse = self._agrees(whole, logits, rows, places)
            return whole
        if not self.sparse:
            return logits()[rows, places]
        with self._picking(rows, places):
            return logits()[0]

    def release(self) -> None:
        """Let go of the model."""
        self._hook.remove()

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

    def _pick(self, _module: Any, _inputs: Any, output: Any) -> Any:
        if self._places is None:
            return output
        picked = output[0][self._places][None]
        if isinstance(output, tuple):
            return (picked, *output[1:])
        output["last_hidden_state"] = picked
        return output
