"""What changes in a factored normal matrix when its covariance factors do: log|A|, and leverages."""

import numpy as np

from felicity.stats.frames import Codes, Vector
from felicity.stats.mixed.elimination import Elimination
from felicity.stats.mixed.random_effects import Block

STEP = 1e-5


def log_det_slopes(a: Elimination) -> list[Vector]:
    """Derivative of log|A| in each entry of each block's covariance factor.

    Exact, except by central differences where the rest is too large to be inverted.
    """
    return _exact_slopes(a) if a.dense_rest else _difference_slopes(a)


def _difference_slopes(a: Elimination) -> list[Vector]:
    out = []
    for b, block in enumerate(a.effects.blocks):
        slopes = np.zeros((block.width, block.width))
        for i, j in block.positions:
            ends = []
            for step in (STEP, -STEP):
                factors = [factor.copy() for factor in a.factors]
                factors[b][i, j] += step
                ends.append(Elimination(a.effects, a.products, factors).log_det)
            slopes[i, j] = (ends[0] - ends[1]) / (2.0 * STEP)
        out.append(slopes)
    return out


def leverages(a: Elimination) -> Vector:
    """Diagonal of ZΛA⁻¹Λ'Z', one value a row: relative variance of each row's random part."""
    first = a.effects.first
    own = a.middle
    if a.effects.rest:
        own = own + own @ a.spread_blocks @ own
    out = ((first.z[:, None, :] @ own[first.codes])[:, 0, :] * first.z).sum(axis=1)
    if not a.effects.rest:
        return np.asarray(out)
    pulled = (a.middle @ a.spread_covariance.reshape(len(a.middle), first.width, -1)).reshape(
        a.spread_covariance.shape
    )
    start = 0
    for b, block in enumerate(a.effects.rest):
        columns = start + block.codes * block.width
        out -= 2.0 * _gather(pulled, first, first.codes * first.width, block, columns)
        other_start = start
        for other in a.effects.rest[b:]:
            other_columns = other_start + other.codes * other.width
            times = 1.0 if other is block else 2.0
            out += times * _gather(a.rest_covariance, block, columns, other, other_columns)
            other_start += other.size
        start += block.size
    return np.asarray(out)


def _exact_slopes(a: Elimination) -> list[Vector]:
    """Derivative of log|A| in each entry of each block's covariance factor."""
    d11, first = a.products.d11, a.factors[0]
    lead = d11 @ first @ a.d_inverse
    if not a.effects.rest:
        return [2.0 * lead.sum(axis=0)]
    shrink = np.eye(a.effects.first.width) - d11 @ a.middle
    lead = lead - shrink @ a.spread_blocks @ first @ a.d_inverse
    return [2.0 * lead.sum(axis=0), *_rest_slopes(a)]


def _rest_slopes(a: Elimination) -> list[Vector]:
    scaled = a.transposed_factor(a.rest_matrix).T
    gradients, start = [], 0
    for block in a.effects.rest:
        part = slice(start, start + block.size)
        rows = scaled[part].reshape(len(block.levels), block.width, -1)
        inverse = a.s_inverse[part].reshape(rows.shape)
        gradients.append(2.0 * np.tensordot(rows, inverse, axes=([0, 2], [0, 2])))
        start = part.stop
    return gradients


def _gather(matrix: Vector, left: Block, rows: Codes, right: Block, columns: Codes) -> Vector:
    """Per data row, z_a' M z_b with M the part of `matrix` that belongs to the row's levels."""
    out = np.zeros(len(rows))
    for i in range(left.width):
        for j in range(right.width):
            out += left.z[:, i] * right.z[:, j] * matrix[rows + i, columns + j]
    return out
