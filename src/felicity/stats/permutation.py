"""Permutation test of a paired difference: which model gave which answer is drawn anew.

Swapping the two models on an item flips the sign of its difference; with clusters, whole suites are
swapped. Where the differences are whole or half numbers, as answers are, the distribution of their sum
is built up exactly, whatever the number of items; else all sign patterns are tried where they are few,
and drawn at random where they are many.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from felicity.stats.frames import Codes, Vector
from felicity.stats.pairing import Pairs

ENUMERATE_UP_TO = 16
LATTICE = 2.0
LATTICE_UP_TO = 2_000_000
CHUNK = 256


@dataclass(frozen=True)
class PermutationTest:
    """Mean difference, two-sided p, and whether p is exact."""

    difference: float
    p: float
    exact: bool
    draws: int


def permute_pairs(pairs: Pairs, *, draws: int = 10_000, seed: int = 0) -> PermutationTest:
    """Two-sided test that the two models are interchangeable on each item (or suite)."""
    units = sum_by_cluster(pairs.differences, pairs.clusters)
    return permute_differences(units, n=pairs.n, draws=draws, seed=seed)


def permute_differences(
    differences: Vector, *, n: int | None = None, draws: int = 10_000, seed: int = 0
) -> PermutationTest:
    """The same from differences per independent unit; `n` is what their sum is divided by."""
    units = differences[differences != 0.0]
    observed = float(abs(units.sum()))
    mean = float(differences.sum()) / (n or len(differences))
    lattice = units * LATTICE
    if np.allclose(lattice, np.round(lattice)) and np.abs(lattice).sum() <= LATTICE_UP_TO:
        return PermutationTest(
            mean, _lattice_p(np.abs(np.round(lattice)).astype(int), observed * LATTICE), True, 0
        )
    if len(units) <= ENUMERATE_UP_TO:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(units))))
        p = float((np.abs(signs @ units) >= observed * (1 - 1e-12)).mean())
        return PermutationTest(mean, p, True, len(signs))
    rng, extreme = np.random.default_rng(seed), 0
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        signs = rng.integers(0, 2, (size, len(units))) * 2 - 1
        extreme += int((np.abs(signs @ units) >= observed * (1 - 1e-12)).sum())
    return PermutationTest(mean, (extreme + 1) / (draws + 1), False, draws)


def sum_by_cluster(values: Vector, clusters: Codes | None) -> Vector:
    """Sums per cluster; the values themselves where there are no clusters."""
    return values if clusters is None else np.bincount(clusters, values).astype(np.float64)


def _lattice_p(sizes: Codes, observed: float) -> float:
    """P(|sum of random signs times sizes| >= observed), by convolution."""
    total = int(sizes.sum())
    # chances[k] is the chance that the positive part sums to k; the sum is then 2k - total.
    chances = np.zeros(total + 1)
    chances[0], top = 1.0, 0
    for size in sizes:
        shifted = np.zeros_like(chances)
        shifted[size : top + size + 1] = chances[: top + 1]
        chances = 0.5 * (chances + shifted)
        top += int(size)
    sums = np.abs(2 * np.arange(total + 1) - total)
    return float(min(1.0, chances[sums >= observed - 0.5].sum()))
