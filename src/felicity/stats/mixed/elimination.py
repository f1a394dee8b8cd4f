"""The penalized normal matrix A = Λ'Z'WZΛ + I, factored by eliminating the largest block.

With D the block-diagonal part of the first block and F = C22 - C12' Λ1 D⁻¹ Λ1' C12 what is left of the
others, A has log-determinant log|D| + log|S|, S = I + Λ2'FΛ2. Nothing grows with the number of rows.
Reference: Bates, Maechler, Bolker & Walker (2015), Journal of Statistical Software 67(1).
"""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from felicity.stats.frames import Vector
from felicity.stats.mixed.cross_products import CrossProducts, Matrix, has_dense_rest
from felicity.stats.mixed.random_effects import RandomEffects


class Elimination:
    """One factorization of A at given covariance factors, and what can be asked of it."""

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
