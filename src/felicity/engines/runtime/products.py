"""Which library multiplies matrices in float32: MKL, torch's choice, or oneDNN."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

PROCESSORS = Path("/proc/cpuinfo")
AMD = "AuthenticAMD"
WIDEST = "AVX512"
# Rows of a product that is copied into another matrix.
ROWS = 128


def choose_linear(dtype: Any) -> Callable[[Any, Any], Any]:
    """`linear(states, weights)` without a bias, by the library that is faster on this processor.

    The two differ in rounding only. The choice depends on nothing but the processor, so that a run that is
    resumed goes on with the same products.
    """
    import torch

    if dtype == torch.float32 and prefer_onednn():
        return multiply_onednn
    return torch.nn.functional.linear


def write_product(states: Any, weights: Any, target: Any) -> None:
    """Write `linear(states, weights)` into a matrix that has room for it."""
    import torch

    if choose_linear(states.dtype) is not multiply_onednn:
        torch.mm(states, weights.T, out=target)
        return
    # oneDNN cannot write into a given matrix, and what it allocates is used again only if it is small.
    for begin in range(0, len(states), ROWS):
        rows = slice(begin, begin + ROWS)
        target[rows] = multiply_onednn(states[rows], weights)


@cache
def prefer_onednn() -> bool:
    """Whether this is an AMD processor with AVX-512, where oneDNN takes about 0.85 of MKL's time."""
    import torch

    if not has_onednn() or torch.backends.cpu.get_cpu_capability() != WIDEST:
        return False
    try:
        return AMD in PROCESSORS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def has_onednn() -> bool:
    """Whether this build of torch has oneDNN's product of plain matrices."""
    import torch

    return hasattr(torch.ops.mkldnn, "_linear_pointwise")


def multiply_onednn(states: Any, weights: Any) -> Any:
    """What `torch.nn.functional.linear` gives, by oneDNN."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(states, weights, None, "none", [], "")
