"""What changes in a factored normal matrix when its covariance factors do: log|A|, and leverages."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from felicity.stats.frames import Codes, Vector
from felicity.stats.mixed.random_effects import Block, RandomEffects

Matrix = Any
"""A dense array or a scipy sparse matrix."""

# Above these sizes the cross-products stay sparse.
DENSE_CELLS = 20_000_000
DENSE_REST = 4_000
# A sparse product takes about this many times longer per multiplication than a dense one.
SPARSE_COST = 20.0
STEP = 1e-5


@dataclass(frozen=True)
class CrossProducts:
    """Z'WZ in the parts that elimination uses; `c12` and `c22` are sparse where that is faster."""

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
    """Whether the blocks after the first are small enough for a dense Cholesky factor."""
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
            entries = (a.codes * a.width + i, b.codes * b.width + j)
            total = total + sp.csr_matrix((_product(a, i, b, j, weights), entries), shape=total.shape)
    return total


def _product(a: Block, i: int, b: Block, j: int, weights: Vector | None) -> Vector:
    product = a.z[:, i] * b.z[:, j]
    return product if weights is None else product * weights


class Elimination:
    """One factorization of A at given covariance factors, and its solves and determinants."""

    def __init__(self, effects: RandomEffects, products: CrossProducts, factors: list[Vector]) -> None:
        self.effects = effects
        self.products = products
        self.factors = factors
        self.dense_rest = has_dense_rest(effects)
        # Where the rest has intercepts only, its factor is a column of numbers.
        scalar = bool(effects.rest) and all(block.width == 1 for block in effects.rest)
        self._rest_scales = self._column_of_scales() if scalar else None
        first = factors[0]
        d = first.T @ products.d11 @ first + np.eye(effects.first.width)
        if effects.first.width == 1:
            self.d_inverse = 1.0 / d
            self.log_det = float(np.log(d).sum())
        else:
            self.d_inverse = np.asarray(np.linalg.inv(d))
            self.log_det = float(np.linalg.slogdet(d)[1].sum())
        self.middle = first @ self.d_inverse @ first.T
        self.rest_matrix: Matrix = None
        if effects.rest:
            self._eliminate_first()

    def _column_of_scales(self) -> Vector:
        blocks = zip(self.effects.rest, self.factors[1:], strict=True)
        return np.concatenate([np.full((block.size, 1), factor[0, 0]) for block, factor in blocks])

    def _eliminate_first(self) -> None:
        c12, c22 = self.products.c12, self.products.c22
        taken = self.products.c21 @ self._times_middle(c12)
        self.rest_matrix = c22 - (taken.toarray() if self.dense_rest and sp.issparse(taken) else taken)
        scaled = self.transposed_factor(self.transposed_factor(self.rest_matrix).T)
        if self.dense_rest:
            # numpy only: its BLAS and scipy's are two thread pools that slow each other down tenfold.
            s = scaled + np.eye(scaled.shape[0])
            self.log_det += 2.0 * float(np.log(np.diag(np.linalg.cholesky(s))).sum())
            self.s_inverse = np.linalg.inv(s)
        else:
            s = sp.csc_matrix(scaled + sp.identity(scaled.shape[0]))
            options: dict[str, Any] = {"SymmetricMode": True}
            self._lu = spl.splu(s, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
            self.log_det += float(np.log(np.abs(self._lu.U.diagonal())).sum())

    def _times_middle(self, matrix: Matrix) -> Matrix:
        """Λ1 D⁻¹ Λ1' times a matrix with one row per effect of the first block."""
        width = self.effects.first.width
        if sp.issparse(matrix) and width == 1:
            scaled = matrix.data * self.middle[:, 0, 0][self.products.filled_rows]
            return sp.csr_matrix((scaled, matrix.indices, matrix.indptr), shape=matrix.shape)
        if sp.issparse(matrix):
            n = len(self.middle)
            blocks = sp.bsr_matrix((self.middle, np.arange(n), np.arange(n + 1)))
            return blocks.tocsr() @ matrix
        return (self.middle @ matrix.reshape(-1, width, matrix.shape[1])).reshape(matrix.shape)

    def transposed_factor(self, matrix: Matrix) -> Matrix:
        """Λ2' times a matrix with one row per effect of the rest."""
        return self._times_rest_factor(matrix, transposed=True)

    def _times_rest_factor(self, matrix: Matrix, *, transposed: bool) -> Matrix:
        if sp.issparse(matrix):
            blocks = [
                sp.kron(sp.identity(len(block.levels)), factor.T if transposed else factor)
                for block, factor in zip(self.effects.rest, self.factors[1:], strict=True)
            ]
            return sp.block_diag(blocks, format="csr") @ matrix
        if self._rest_scales is not None:
            return matrix * self._rest_scales
        out = np.empty_like(matrix)
        start = 0
        for block, factor in zip(self.effects.rest, self.factors[1:], strict=True):
            part = slice(start, start + block.size)
            small = factor.T if transposed else factor
            rows = matrix[part].reshape(len(block.levels), block.width, -1)
            out[part] = (
                (small @ rows).reshape(block.size, -1) if block.width > 1 else matrix[part] * small[0, 0]
            )
            start = part.stop
        return out

    def times_factor(self, effects: Vector, *, transposed: bool = False) -> Vector:
        """Λ or Λ' times stacked effects, shape (size, k)."""
        first = self.effects.first
        small = self.factors[0].T if transposed else self.factors[0]
        top = (small @ effects[: first.size].reshape(-1, first.width, effects.shape[1])).reshape(
            first.size, -1
        )
        if not self.effects.rest:
            return top
        return np.vstack([top, self._times_rest_factor(effects[first.size :], transposed=transposed)])

    def times_products(self, effects: Vector) -> Vector:
        """Z'WZ times stacked effects."""
        first, products = self.effects.first, self.products
        top, bottom = effects[: first.size], effects[first.size :]
        upper = (products.d11 @ top.reshape(-1, first.width, top.shape[1])).reshape(first.size, -1)
        if not self.effects.rest:
            return upper
        return np.vstack([upper + products.c12 @ bottom, products.c21 @ top + products.c22 @ bottom])

    def solve(self, right: Vector) -> Vector:
        """A⁻¹ times a matrix with one row per effect."""
        first = self.effects.first
        top = right[: first.size].reshape(-1, first.width, right.shape[1])
        if not self.effects.rest:
            return (self.d_inverse @ top).reshape(right.shape)
        half = (self.d_inverse @ top).reshape(first.size, -1)
        lowered = self.products.c21 @ (self.factors[0] @ half.reshape(top.shape)).reshape(half.shape)
        bottom = self._solve_rest(right[first.size :] - self.transposed_factor(lowered))
        back = self.products.c12 @ self._times_rest_factor(bottom, transposed=False)
        upper = half - (self.d_inverse @ (self.factors[0].T @ back.reshape(top.shape))).reshape(half.shape)
        return np.vstack([upper, bottom])

    def _solve_rest(self, right: Vector) -> Vector:
        if self.dense_rest:
            return self.s_inverse @ right
        return np.asarray(self._lu.solve(np.ascontiguousarray(right)))

    @cached_property
    def rest_covariance(self) -> Vector:
        """Λ2 S⁻¹ Λ2': relative conditional covariance of the rest's effects."""
        half = self._times_rest_factor(self.s_inverse, transposed=False)
        return np.asarray(self._times_rest_factor(half.T.copy(), transposed=False))

    @cached_property
    def spread_covariance(self) -> Vector:
        """C12 Λ2 S⁻¹ Λ2', one row per effect of the first block."""
        return np.asarray(self.products.c12 @ self.rest_covariance)

    @cached_property
    def spread_blocks(self) -> Vector:
        """C12 Λ2 S⁻¹ Λ2' C12' within each level of the first block, shape (levels, width, width)."""
        width, c12 = self.effects.first.width, self.products.c12
        n = len(self.effects.first.levels)
        if not sp.issparse(c12):
            left, right = (m.reshape(n, width, -1) for m in (c12, self.spread_covariance))
            return np.asarray(left @ right.transpose(0, 2, 1))
        out = np.empty((n, width, width))
        rows = self.products.filled_rows
        for j in range(width):
            # Column j of each level's block: entries of C12 times those of the level's j-th row.
            level_row = rows - rows % width + j
            entries = c12.data * self.spread_covariance[level_row, c12.indices]
            out[:, :, j] = np.bincount(rows, entries, minlength=n * width).reshape(n, width)
        return out


def log_det_slopes(a: Elimination) -> list[Vector]:
    """Derivative of log|A| in each entry of each block's covariance factor.

    Exact, except by central differences if the rest is too large to be inverted.
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
    """Diagonal of ZΛA⁻¹Λ'Z', one value per row: relative variance of each row's random part."""
    first = a.effects.first
    middle = a.middle
    if a.effects.rest:
        middle = middle + middle @ a.spread_blocks @ middle
    out = ((first.z[:, None, :] @ middle[first.codes])[:, 0, :] * first.z).sum(axis=1)
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
