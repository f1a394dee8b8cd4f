"""The same activation in one step instead of eight: what transformers spells out, torch has as a whole."""

from collections.abc import Callable
from typing import Any

# All of them are GELU with the tanh approximation.
SPELT_OUT = ("NewGELUActivation", "FastGELUActivation")


def fuse_activations(model: Any) -> Callable[[], None]:
    """Put torch's own GELU in place of its spelt-out copies; gives what takes that back.

    Only rounding changes, and the check on load compares with the model as it was.
    """
    from torch import nn

    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child).__name__ in SPELT_OUT
    ]
    for parent, name, _ in found:
        setattr(parent, name, nn.GELU(approximate="tanh"))

    def take_back() -> None:
        for parent, name, child in found:
            setattr(parent, name, child)

    return take_back
