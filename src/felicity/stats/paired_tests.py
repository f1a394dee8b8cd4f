"""Paired tests of two models on the same items: McNemar, permutation, and Wilcoxon's signed-rank test."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.core.wording import counted
from felicity.stats.frames import Codes, Frame, Values, Vector, as_polars, numbers, take_column

Ties = Literal["wrong", "half", "drop"]
ENUMERATE_UP_TO = 16
LATTICE = 2.0
LATTICE_UP_TO = 2_000_000
CHUNK = 256
SIDES = ("two-sided", "greater", "less")


@dataclass(frozen=True)
class Pairs:
    """Answers of two models to the same items, between 0 and 1, and the cluster of each item.

    ties: how many answers of either model were ties, that is, neither right nor wrong.
    """

    first: Vector
    second: Vector
    clusters: Codes | None
    ties: int

    @property
    def n(self) -> int:
        """Items."""
        return len(self.first)

    @property
    def differences(self) -> Vector:
        """First minus second, per item."""
        return self.first - self.second

    @property
    def decided(self) -> np.ndarray:
        """Whether both models are right or wrong on an item, neither tied."""
        return np.isin(self.first, (0.0, 1.0)) & np.isin(self.second, (0.0, 1.0))

    @property
    def discordant(self) -> tuple[int, int]:
        """Items that only the first, and only the second, model gets right; tied items are left out."""
        first, second = self.first[self.decided], self.second[self.decided]
        return int((first > second).sum()), int((first < second).sum())


def pair_answers(
    first: Frame,
    second: Frame,
    *,
    on: str | Sequence[str] = "item",
    value: str = "passed",
    cluster: str | None = None,
    ties: Ties = "half",
) -> Pairs:
    """Join two tables of answers item by item.

    on: the columns that together name an item. value: 1 right, 0 wrong, 0.5 a tie.
    cluster: a column of the first table, such as 'suite', whose items are not independent.
    ties: count a tie as 'half' (unchanged), as 'wrong', or 'drop' the item.

    Raises BadInput if an item is missing on one side, occurs twice, or has no answer.
    """
    keys = [on] if isinstance(on, str) else list(on)
    if ties not in ("wrong", "half", "drop"):
        raise UnknownName("treatment of ties", str(ties), ("wrong", "half", "drop"))
    left, right = (_answers(as_polars(frame), keys, value, side) for frame, side in _sides(first, second))
    _check_same_items(left, right, keys)
    if cluster is not None:
        labels = as_polars(first).select(*keys, pl.Series("cluster", take_column(as_polars(first), cluster)))
        left = left.join(labels, on=keys, maintain_order="left")
    joined = left.join(right.rename({"answer": "other"}), on=keys, maintain_order="left")
    open_answers = pl.col("answer", "other").is_between(0.0, 1.0, closed="none")
    count = sum(joined.select(open_answers.sum()).row(0))
    tied = pl.any_horizontal(open_answers)
    if ties == "drop":
        joined = joined.filter(~tied)
        if not joined.height:
            raise BadInput("Every item is a tie, so dropping ties leaves nothing to compare.")
    elif ties == "wrong":
        joined = joined.with_columns(
            pl.when(pl.col(name).is_in([0.0, 1.0])).then(pl.col(name)).otherwise(0.0).alias(name)
            for name in ("answer", "other")
        )
    return Pairs(
        first=joined["answer"].to_numpy(),
        second=joined["other"].to_numpy(),
        clusters=joined["cluster"].rank("dense").cast(int).to_numpy() - 1 if cluster is not None else None,
        ties=int(count),
    )


def _sides(first: Frame, second: Frame) -> list[tuple[Frame, str]]:
    return [(first, "first"), (second, "second")]


def _answers(frame: pl.DataFrame, keys: list[str], value: str, side: str) -> pl.DataFrame:
    for name in [*keys, value]:
        take_column(frame, name)
    answers = frame.select(*keys, pl.col(value).cast(pl.Float64).alias("answer"))
    outside = answers.filter(~pl.col("answer").is_between(0.0, 1.0))
    if outside.height:
        raise BadInput(
            f"The {side} table's '{value}' has {outside['answer'][0]:g}; answers must be between 0 and 1."
        )
    twice = answers.filter(pl.struct(keys).is_duplicated())
    if twice.height:
        item = " ".join(str(part) for part in twice.select(keys).row(0))
        raise BadInput(
            f"Item '{item}' occurs more than once in the {side} table; "
            f"filter it to one answer per item or name more columns."
        )
    return answers


def _check_same_items(left: pl.DataFrame, right: pl.DataFrame, keys: list[str]) -> None:
    for here, there, side in ((left, right, "second"), (right, left, "first")):
        lonely = here.join(there, on=keys, how="anti")
        if lonely.height:
            item = " ".join(str(part) for part in lonely.select(keys).row(0))
            raise BadInput(
                f"{counted(lonely.height, 'item')} without an answer in the {side} table, such as '{item}'; "
                f"compare the models on the same items."
            )


def mcnemar_p(only_first: int, only_second: int, *, mid: bool = False) -> float:
    """Two-sided p of a table with these discordant counts; 1 if there are none.

    >>> round(mcnemar_p(74, 59), 4)
    0.2246
    """
    if min(only_first, only_second) < 0:
        raise BadInput("A count of items is negative; pass the two discordant counts.")
    n, least = only_first + only_second, min(only_first, only_second)
    tail = float(stats.binom.cdf(least, n, 0.5))
    if mid:
        tail -= 0.5 * float(stats.binom.pmf(least, n, 0.5))
        return 2.0 * tail
    return min(1.0, 2.0 * tail)


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
    """The same from differences per independent unit; `n` is the divisor of their sum."""
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
    """Sums per cluster; the values themselves if there are no clusters."""
    return values if clusters is None else np.bincount(clusters, values).astype(np.float64)


def _lattice_p(sizes: Codes, observed: float) -> float:
    """P(|sum of random signs times sizes| >= observed), by convolution."""
    total = int(sizes.sum())
    # chances[k] is the probability that the positive part sums to k; the sum is then 2k - total.
    chances = np.zeros(total + 1)
    chances[0], top = 1.0, 0
    for size in sizes:
        shifted = np.zeros_like(chances)
        shifted[size : top + size + 1] = chances[: top + 1]
        chances = 0.5 * (chances + shifted)
        top += int(size)
    sums = np.abs(2 * np.arange(total + 1) - total)
    return float(min(1.0, chances[sums >= observed - 0.5].sum()))


def signed_rank(
    x: Values, y: Values, *, alternative: Literal["two-sided", "greater", "less"] = "two-sided"
) -> pl.DataFrame:
    """One row: n (pairs that differ), zeros, w (rank sum of positive differences), p, effect.

    Pairs that do not differ are dropped (Wilcoxon 1945). p is exact up to 50 pairs without ties, else
    normal with the variance corrected for ties. effect is the matched-pairs rank-biserial correlation.

    Raises BadInput for unequal lengths and if no pair differs.
    """
    if alternative not in SIDES:
        raise UnknownName("alternative", str(alternative), SIDES)
    a, b = numbers(x, "x"), numbers(y, "y")
    if len(a) != len(b):
        raise BadInput(f"x has {len(a)} values and y {len(b)}; a signed-rank test needs pairs.")
    differences = a - b
    kept = differences[differences != 0.0]
    if not len(kept):
        raise BadInput("No pair differs, so there is nothing to test.")
    ranks = stats.rankdata(np.abs(kept))
    positive = float(ranks[kept > 0].sum())
    tied = len(np.unique(np.abs(kept))) < len(kept)
    method = "exact" if len(kept) <= 50 and not tied else "approx"
    test = stats.wilcoxon(kept, alternative=alternative, method=method)
    row = {
        "n": len(kept),
        "zeros": len(a) - len(kept),
        "w": positive,
        "p": float(test.pvalue),
        "alternative": alternative,
        "method": method,
        "effect": 2.0 * positive / float(ranks.sum()) - 1.0,
    }
    return pl.DataFrame([row])
