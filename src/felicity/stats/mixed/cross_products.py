"""Cross-products of the random effects' columns, dense or sparse as pays."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from felicity.stats.frames import Codes, Vector
from felicity.stats.mixed.random_effects import Block, RandomEffects

Matrix = Any
"""A dense array or a scipy sparse matrix."""

# Above these sizes the cross-products stay sparse.
DENSE_CELLS = 20_000_000
DENSE_REST = 4_000
# A sparse product takes about this many times longer per multiplication than a dense one.
SPARSE_COST = 20.0


@dataclass(frozen=True)
class CrossProducts:
    """Z'WZ in the parts that elimination uses; `c12` and `c22` are sparse where that pays."""

    d11: Vector
    c12: Matrix
    c22: Matrix

    @cached_property
    def c21(self) -> Matrix:
        """C12 transposed, laid out for products from the left."""
        return self.c12.T.tocsr() if sp.issparse(self.c12) else self.c12.T

    @cached_property
    def filled_rows(self) -> Codes:
        """The row of every entry of a sparse C12, in the order of its data."""
        return np.repeat(np.arange(self.c12.shape[0]), np.diff(self.c12.indptr))


def cross_products(effects: RandomEffects, weights: Vector | None = None) -> CrossProducts:
    """Z'WZ with these row weights (1 if none)."""
    first = effects.first
    width, n = first.width, len(first.levels)
    d11 = np.empty((n, width, width))
    for i in range(width):
        for j in range(i, width):
            d11[:, i, j] = np.bincount(first.codes, _product(first, i, first, j, weights), minlength=n)
            d11[:, j, i] = d11[:, i, j]
    if not effects.rest:
        return CrossProducts(d11, np.zeros((first.size, 0)), np.zeros((0, 0)))
    dense = has_dense_rest(effects)
    c12 = _stack([[_cross(first, block, weights, _is_cross_dense(effects)) for block in effects.rest]])
    rest = [[_cross(a, b, weights, dense) for b in effects.rest] for a in effects.rest]
    return CrossProducts(d11, c12, _stack(rest))


def has_dense_rest(effects: RandomEffects) -> bool:
    """Whether the blocks behind the first are small enough for a dense Cholesky factor."""
    return effects.rest_size <= DENSE_REST


def _is_cross_dense(effects: RandomEffects) -> bool:
    first, size = effects.first, effects.rest_size
    widths = sum(block.width for block in effects.rest)
    filled = min(size, len(first.codes) / len(first.levels) * widths)
    pays = SPARSE_COST * filled**2 >= size**2
    return has_dense_rest(effects) and first.size * size <= DENSE_CELLS and pays


def _stack(parts: list[list[Matrix]]) -> Matrix:
    if sp.issparse(parts[0][0]):
        return sp.csr_matrix(sp.block_array(parts))
    return np.block(parts)


def _cross(a: Block, b: Block, weights: Vector | None, dense: bool) -> Matrix:
    na, nb = len(a.levels), len(b.levels)
    if dense:
        cells = a.codes * nb + b.codes
        out = np.empty((na, a.width, nb, b.width))
        for i in range(a.width):
            for j in range(b.width):
                values = _product(a, i, b, j, weights)
                out[:, i, :, j] = np.bincount(cells, values, minlength=na * nb).reshape(na, nb)
        return out.reshape(a.size, b.size)
    total = sp.csr_matrix((a.size, b.size))
    for i in range(a.width):
        for j in range(b.width):
            place = (a.codes * a.width + i, b.codes * b.width + j)
            total = total + sp.csr_matrix((_product(a, i, b, j, weights), place), shape=total.shape)
    return total


def _product(a: Block, i: int, b: Block, j: int, weights: Vector | None) -> Vector:
    product = a.z[:, i] * b.z[:, j]
    return product if weights is None else product * weights
