"""Verdicts of float32 from scores in half precision: what is too close to call is scored again.

The promise rests on an error bound that is measured on the run itself. A sample of its items is scored
in both precisions, and the error of a sentence is taken to be so large that it covers, with room to
spare, the largest shift of a margin that was found. Items whose judgement that could turn are scored
again in float32, which also makes the sample larger and the bound better, until none is left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

EXACT = "float32"
# Room to spare above the largest shift that was found.
SAFETY = 2.0
SAMPLE_ITEMS = 100
SAMPLE_SHARE = 0.03


@dataclass(frozen=True, kw_only=True)
class Noise:
    """By how many nats the log-probability of each request may be off.

    rough: of what was scored in the run's own precision. fine: of the requests in `exact`.
    """

    rough: float
    fine: float = 0.0
    exact: frozenset[str] = frozenset()

    def of(self, requests: pl.Series) -> np.ndarray:
        """One number a request."""
        return np.array([self.fine if name in self.exact else self.rough for name in requests])


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a run in half precision came to: the noise of a sentence, and the items scored again."""

    noise: float
    exact_items: pl.Series
    sampled: int
    items: int

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "exact": EXACT,
            "items": self.items,
            "sampled": self.sampled,
            "rescored": len(self.exact_items),
            "error_bound": self.noise,
        }


class Judge(Protocol):
    """Judges the run, those items in float32 that are named, with this noise of a rough sentence.

    Gives item, measure, rule, margin, stable, and `error`: what noise may do to that margin.
    """

    def __call__(self, exact_items: pl.Series, *, noise: float) -> pl.DataFrame: ...


def settle(
    items: pl.Series,
    judge: Judge,
    score_exactly: Callable[[pl.Series, int], None],
    *,
    least: float,
    seed: int,
) -> Settled:
    """Score in float32 whatever could otherwise be judged differently.

    score_exactly: scores these items in float32; it is told the round. least: the noise of float32,
    below which no bound is believed.
    """
    # With a noise of one nat, `error` tells how far one nat carries in each measure.
    rough = judge(items.clear(), noise=1.0)
    known = items.clear()
    waiting = draw_sample(items, seed=seed)
    sampled = len(waiting)
    turn = 0
    while True:
        score_exactly(waiting, turn)
        known = pl.concat([known, waiting])
        noise = max(least, SAFETY * measure_shift(rough, judge(known, noise=1.0), known))
        unstable = judge(known, noise=noise).filter(~pl.col("stable"))["item"].unique(maintain_order=True)
        waiting = unstable.filter(~unstable.is_in(known.implode()))
        if waiting.is_empty():
            return Settled(noise=noise, exact_items=known, sampled=sampled, items=len(items))
        turn += 1


def measure_shift(rough: pl.DataFrame, exact: pl.DataFrame, known: pl.Series) -> float:
    """Nats a sentence that explain the largest shift of a margin among the items scored both ways."""
    both = rough.filter(pl.col("item").is_in(known.implode())).join(
        exact, on=["item", "measure", "rule"], suffix="_exact"
    )
    shift = np.abs(both["margin"].to_numpy() - both["margin_exact"].to_numpy())
    carried = both["error"].to_numpy()
    return float(np.max(shift[carried > 0] / carried[carried > 0], initial=0.0))


def draw_sample(items: pl.Series, *, seed: int) -> pl.Series:
    """The items that measure the error: some of each run, all of a small one."""
    size = min(len(items), max(SAMPLE_ITEMS, round(SAMPLE_SHARE * len(items))))
    chosen = np.random.default_rng(seed).choice(len(items), size=size, replace=False)
    return items.gather(np.sort(chosen))
