"""Many tests at once: p-values adjusted by Holm and by Benjamini and Hochberg."""

from collections.abc import Sequence

import numpy as np

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Vector, numbers


def adjust_holm(p_values: Sequence[float] | Vector) -> Vector:
    """Adjusted so that the chance of any false discovery stays below alpha (Holm 1979).

    >>> adjust_holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    return _put_back(np.minimum(np.maximum.accumulate(scaled), 1.0), order)


def adjust_bh(p_values: Sequence[float] | Vector) -> Vector:
    """Adjusted so that the share of false discoveries stays below alpha (Benjamini & Hochberg 1995).

    >>> adjust_bh([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    return _put_back(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def _check(p_values: Sequence[float] | Vector) -> Vector:
    p = numbers(p_values, "p-values")
    if ((p < 0) | (p > 1)).any():
        raise BadInput("A p-value lies outside 0 to 1; pass p-values, not statistics.")
    return p


def _put_back(values: Vector, order: Codes) -> Vector:
    out = np.empty_like(values)
    out[order] = values
    return out
