"""Random effects as index arrays: which level each row belongs to, and the columns that vary over it.

Terms with the same grouping factor form one block. The block with most effects is eliminated first, as
its own cross-product is block-diagonal; all others together form the rest. Columns are scaled to unit
root mean square, so that the relative covariance factors are of one size whatever the units.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Vector

# A relative standard deviation below this moves the deviance by less than rounding does.
NO_VARIANCE = 1e-7


@dataclass(frozen=True)
class Block:
    """All random effects over one grouping factor.

    names, labels: per column, the effect and the term it is of ('g', 'g.1' as lme4 counts them).
    positions: (row, column) in the relative covariance factor of each parameter, in lme4's order.
    """

    group: str
    codes: Codes
    levels: tuple[str, ...]
    z: Vector
    scale: Vector
    names: tuple[str, ...]
    labels: tuple[str, ...]
    positions: tuple[tuple[int, int], ...]

    @cached_property
    def width(self) -> int:
        """Effects per level."""
        return int(self.z.shape[1])

    @cached_property
    def size(self) -> int:
        """Effects altogether."""
        return self.width * len(self.levels)

    def factor(self, theta: Vector) -> Vector:
        """The lower-triangular relative covariance factor that parameters stand for."""
        factor = np.zeros((self.width, self.width))
        rows, columns = zip(*self.positions, strict=True)
        factor[list(rows), list(columns)] = theta
        return factor

    def totals(self, values: Vector) -> Vector:
        """Z'v for each column of `values`, shape (size, k)."""
        n, k = len(self.levels), values.shape[1]
        out = np.empty((n, self.width, k))
        for i in range(self.width):
            for j in range(k):
                out[:, i, j] = np.bincount(self.codes, self.z[:, i] * values[:, j], minlength=n)
        return out.reshape(self.size, k)

    def spread(self, effects: Vector) -> Vector:
        """Zb for one vector of effects."""
        return np.asarray(np.einsum("ni,ni->n", self.z, effects.reshape(-1, self.width)[self.codes]))


@dataclass(frozen=True)
class RandomEffects:
    """The blocks of a model; `blocks[0]` is eliminated first, `labels` is lme4's order of the terms."""

    blocks: tuple[Block, ...]
    labels: tuple[str, ...]

    @property
    def first(self) -> Block:
        """The block that is eliminated first."""
        return self.blocks[0]

    @property
    def rest(self) -> tuple[Block, ...]:
        """All other blocks."""
        return self.blocks[1:]

    @cached_property
    def rest_size(self) -> int:
        """Effects in the rest."""
        return sum(block.size for block in self.rest)

    @cached_property
    def theta_slices(self) -> tuple[slice, ...]:
        """The position of each block's parameters in theta."""
        ends = np.cumsum([0] + [len(block.positions) for block in self.blocks])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def n_theta(self) -> int:
        """Number of relative covariance parameters."""
        return sum(len(block.positions) for block in self.blocks)

    @cached_property
    def start(self) -> Vector:
        """lme4's start: identity factors."""
        return np.array([float(i == j) for block in self.blocks for i, j in block.positions])

    @cached_property
    def parameter_scale(self) -> Vector:
        """What a parameter is multiplied by on the columns' scaling."""
        return np.array([block.scale[i] for block in self.blocks for i, _ in block.positions])

    def factors(self, theta: Vector) -> list[Vector]:
        """Relative covariance factors, one per block."""
        parts = zip(self.blocks, self.theta_slices, strict=True)
        return [block.factor(theta[part]) for block, part in parts]

    def totals(self, values: Vector) -> Vector:
        """Z'v for all blocks, stacked."""
        return np.vstack([block.totals(values) for block in self.blocks])

    def with_positive_diagonal(self, theta: Vector) -> Vector:
        """The same model with no factor's diagonal below zero, and what is nearly zero at zero."""
        out = np.where(np.abs(theta) < NO_VARIANCE, 0.0, theta)
        for block, part, factor in zip(self.blocks, self.theta_slices, self.factors(theta), strict=True):
            signs = np.where(np.diag(factor) < 0, -1.0, 1.0)
            out[part] *= signs[[j for _, j in block.positions]]
        return out

    def spread(self, effects: Vector) -> Vector:
        """Zb for stacked effects."""
        out = np.zeros(len(self.first.codes))
        start = 0
        for block in self.blocks:
            out += block.spread(effects[start : start + block.size])
            start += block.size
        return out


def build_blocks(terms: list[tuple[str, Codes, tuple[str, ...], Vector, list[str]]]) -> RandomEffects:
    """Random effects from (group, codes, levels, columns, names) of each term.

    Raises BadInput for a group with one level and for columns that are constant zero.
    """
    blocks: dict[str, Block] = {}
    for group, codes, levels, z, names in terms:
        if len(levels) < 2:
            raise BadInput(f"The group '{group}' has only one level; a random effect needs at least two.")
        scale = np.sqrt((z**2).mean(axis=0))
        if not scale.all():
            name = names[int(np.argmin(scale))]
            raise BadInput(f"The random effect '{name}' of '{group}' is 0 in every row; leave it out.")
        old = blocks.get(group)
        blocks[group] = _extend(old, group, codes, levels, z / scale, scale, names)
    ordered = sorted(blocks.values(), key=lambda block: -block.size)
    labels = dict.fromkeys(label for block in blocks.values() for label in block.labels)
    return RandomEffects(tuple(ordered), tuple(labels))


def lme4_order(level_counts: list[int]) -> list[int]:
    """The order in which lme4 keeps random terms: by falling number of levels, else as written.

    >>> lme4_order([3, 10, 10])
    [2, 1, 0]
    """
    if all(a >= b for a, b in pairwise(level_counts)):
        return list(range(len(level_counts)))
    return sorted(range(len(level_counts)), key=lambda i: level_counts[i])[::-1]


def _extend(
    old: Block | None,
    group: str,
    codes: Codes,
    levels: tuple[str, ...],
    z: Vector,
    scale: Vector,
    names: list[str],
) -> Block:
    width = len(names)
    before = old.width if old else 0
    lower = [(before + i, before + j) for j in range(width) for i in range(j, width)]
    count = len(set(old.labels)) if old else 0
    labels = (f"{group}.{count}" if count else group,) * width
    if old is None:
        return Block(group, codes, levels, z, scale, tuple(names), labels, tuple(lower))
    return Block(
        group,
        codes,
        levels,
        np.hstack([old.z, z]),
        np.concatenate([old.scale, scale]),
        (*old.names, *names),
        old.labels + labels,
        (*old.positions, *lower),
    )
