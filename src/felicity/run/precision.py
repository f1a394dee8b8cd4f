"""The judgements of float32 from scores in half precision: close calls are scored again.

A verdict can turn only if half precision shifts its margin by more than the margin itself. What two
sentences share at their beginning is computed once for both, so that its error cancels in the margin. The
errors of the other tokens add up: a token's variance grows with its surprisal, so a margin is expected to
shift in proportion to its `spread`, the root of the surprisals that its sentences do not share.

How large the shifts are in units of the spread is measured on the run itself, separately for items with and
without a common beginning. A random sample of the items is scored in both precisions, then the items most
likely to turn, from the closest outwards. Each of them adds to what is known of the shifts. The largest are
taken to have an exponential tail,

    P(|shift| > x) = share * exp(-(x - start) / scale)    for x > start,

fitted to the largest fifth of them with `scale` at its upper 95% confidence limit. Scoring stops when the
sum of this probability over all margins that are not in float32, which bounds the expected number of
verdicts that differ from float32's, is at most RISK.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl

EXACT = "float32"
# Verdicts of a run that may be expected to differ from float32's: one in twenty runs has one.
RISK = 0.05
# The share of the shifts, the largest ones, that the tail is fitted to, and how sure its scale must be.
TAIL_SHARE = 0.2
CONFIDENCE = 0.95
# With fewer shifts than this, no tail is fitted, and all items are doubtful.
TAIL_LEAST = 20
# The random sample of each group: this share of its items, but at least so many.
SAMPLE_SHARE = 0.01
SAMPLE_LEAST = 25
# While more than this share of the items is doubtful, only the closer half of them is scored at a time, and
# no more than are known: what little is known of the tail at first must not decide how far to go.
STEP_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The possible error of each request's log-probability, in nats.

    rough: of what was scored in the run's own precision, unless `each` gives it by request. fine: of
    the requests in `exact`.
    """

    rough: float
    fine: float = 0.0
    exact: frozenset[str] = frozenset()
    each: Mapping[str, float] = field(default_factory=dict)

    def of(self, requests: pl.Series) -> np.ndarray:
        """One number per request."""
        return np.array(
            [self.fine if name in self.exact else self.each.get(name, self.rough) for name in requests]
        )


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """The result of a run in half precision.

    noise: columns item and noise, the nats by which a sentence of each item not scored again may be off; a
    margin of two sentences is trusted beyond twice that. exact_items: those scored again. largest: the
    largest shift found, as nats of a sentence. expected: the bound on the expected number of verdicts that
    differ from float32's.
    """

    noise: pl.DataFrame
    exact_items: pl.Series
    sampled: int
    items: int
    largest: float
    expected: float

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "exact": EXACT,
            "items": self.items,
            "sampled": self.sampled,
            "rescored": len(self.exact_items),
            "error_bound": float(self.noise["noise"].to_numpy().max(initial=0.0)),
            "largest_error": self.largest,
            "risk": RISK,
            "expected_differences": self.expected,
        }


class Judge(Protocol):
    """Judges the run, with the given items in float32 and this noise for the others.

    Returns item, measure, rule, margin, stable, and `error`: how far noise may change the margin.
    """

    def __call__(self, exact_items: pl.Series, *, noise: float) -> pl.DataFrame: ...


@dataclass(frozen=True)
class Tail:
    """How often shifts exceed a size: always up to `start`, then ever more rarely."""

    start: float
    scale: float
    share: float

    def exceed(self, size: np.ndarray) -> np.ndarray:
        """The probability of a larger shift than each size."""
        if self.scale == 0:
            return np.where(size <= self.start, 1.0, 0.0)
        beyond = np.maximum(size - self.start, 0.0)
        return np.where(size <= self.start, 1.0, self.share * np.exp(-beyond / self.scale))


UNKNOWN = Tail(np.inf, 0.0, 1.0)


def fit_tail(shifts: np.ndarray) -> Tail:
    """The exponential tail of absolute shifts, its scale at the upper confidence limit.

    The mean of k exponential excesses is distributed as scale / 2k times chi-squared of 2k degrees of
    freedom, which gives the limit.
    """
    from scipy.stats import chi2

    if len(shifts) < TAIL_LEAST:
        return UNKNOWN
    largest = np.sort(np.abs(shifts))[::-1]
    size = round(TAIL_SHARE * len(largest))
    start = float(largest[size])
    excess = float((largest[:size] - start).mean())
    scale = excess * 2 * size / float(chi2.ppf(1 - CONFIDENCE, 2 * size))
    return Tail(start, scale, (size + 1) / (len(largest) + 1))


def rescore_doubtful(
    spreads: pl.DataFrame,
    judge: Judge,
    score_exactly: Callable[[pl.Series, int], None],
    *,
    least: float,
    seed: int,
) -> Rescored:
    """Score in float32 every item that could otherwise be judged differently.

    spreads: columns item, spread and group, one row per item. score_exactly: scores these items in float32;
    its second argument is the round. least: the noise of float32, below which no bound is set.
    """
    items = spreads["item"]
    # With a noise of one nat, `error` is how far one nat moves each measure.
    rough = judge(items.clear(), noise=1.0).filter(pl.col("error") > 0).join(spreads, on="item")
    rough = rough.with_columns(
        (pl.col("margin").abs() / (pl.col("error") * pl.col("spread"))).alias("size")
    ).with_columns(pl.col("size").min().over("item").alias("closest"))
    sample = waiting = draw_error_sample(spreads, seed=seed)
    measured = items.clear()
    frontiers = dict.fromkeys(spreads["group"].unique(maintain_order=True), 0.0)
    turn = 0
    while True:
        score_exactly(waiting, turn)
        measured = pl.concat([measured, waiting])
        shifts = measure_rounding_shifts(rough, judge(measured, noise=1.0), measured)
        tails = {group: fit_tail(shifts.filter(group=group)["units"].to_numpy()) for group in frontiers}
        doubtful, expected = find_doubtful(rough, measured, tails)
        if doubtful.is_empty():
            break
        if len(doubtful) > STEP_SHARE * len(items):
            doubtful = doubtful.head(min((len(doubtful) + 1) // 2, len(measured)))
        waiting = doubtful["item"]
        for group, closest in doubtful.select("group", "closest").iter_rows():
            frontiers[group] = max(frontiers[group], closest)
        turn += 1
    bounds = {
        group: max(reached, tails[group].start) if tails[group] is not UNKNOWN else reached
        for group, reached in frontiers.items()
    }
    noise = pl.col("spread") * pl.col("group").replace_strict(bounds, return_dtype=pl.Float64)
    return Rescored(
        noise=spreads.filter(~pl.col("item").is_in(measured.implode())).select(
            "item", noise.clip(lower_bound=least).alias("noise")
        ),
        exact_items=measured,
        sampled=len(sample),
        items=len(items),
        largest=float(np.abs(shifts["shift"].to_numpy()).max(initial=0.0)),
        expected=expected,
    )


def find_doubtful(
    rough: pl.DataFrame, measured: pl.Series, tails: Mapping[str, Tail]
) -> tuple[pl.DataFrame, float]:
    """Items still to be scored again, columns item, group and closest, those likeliest to turn first.

    Further, the expected number of verdicts that differ if they are scored again and no others.
    """
    left = rough.filter(~pl.col("item").is_in(measured.implode()))
    parts = [
        part.with_columns(pl.Series("doubt", tails[group].exceed(part["size"].to_numpy()), dtype=pl.Float64))
        for (group,), part in left.partition_by("group", as_dict=True, maintain_order=True).items()
    ]
    if not parts:
        return left.select("item", "group", "closest"), 0.0
    each = (
        pl.concat(parts)
        .group_by("item", "group", "closest", maintain_order=True)
        .agg(pl.col("doubt").max().alias("largest"), pl.col("doubt").sum())
        .sort("largest", "closest", "item", descending=[False, True, False])
    )
    doubts = np.cumsum(each["doubt"].to_numpy())
    trusted = int(np.searchsorted(doubts, RISK, side="right"))
    doubtful = each[trusted:].reverse().select("item", "group", "closest")
    return doubtful, float(doubts[trusted - 1]) if trusted else 0.0


def measure_rounding_shifts(rough: pl.DataFrame, exact: pl.DataFrame, measured: pl.Series) -> pl.DataFrame:
    """Columns item, group, shift (nats of a sentence) and units (of the spread), for these items.

    A pair of equal texts cannot move, and says nothing about the others.
    """
    both = rough.filter(pl.col("item").is_in(measured.implode())).join(
        exact.select("item", "measure", "rule", "margin"), on=["item", "measure", "rule"], suffix="_exact"
    )
    shift = (pl.col("margin") - pl.col("margin_exact")) / pl.col("error")
    return both.filter((pl.col("margin") != 0) | (pl.col("margin_exact") != 0)).select(
        "item", "group", shift.alias("shift"), (shift / pl.col("spread")).alias("units")
    )


SHARED, APART = "shared", "apart"


def measure_spreads(
    requests: pl.DataFrame, prompts: pl.DataFrame, parts: Iterable[pl.DataFrame], *, cancel: bool = True
) -> pl.DataFrame:
    """Columns item, spread and group, one row per item in the order of the requests.

    parts: tokens of all requests. cancel: whether the model gives a common beginning the same numbers.
    spread: the root of the surprisal, in nats, of the tokens that an item's sentences do not share at their
    beginning; at least 1. group: whether there is such a beginning, behind the same context.
    """
    placed = requests.select("request", "item").join(
        prompts.select("request", "context_text"), on="request", maintain_order="left"
    )
    item_of = dict(zip(placed["request"], placed["item"], strict=True))
    context_of = dict(zip(placed["request"], placed["context_text"], strict=True))
    waiting = Counter(placed["item"])
    seen: dict[str, list[tuple[str | None, list[str], list[float | None]]]] = {}
    spreads: dict[str, tuple[float, str]] = {}
    for tokens in parts:
        for request, pieces, logprobs in tokens.select("request", "tokens", "logprob").iter_rows():
            item = item_of[request]
            seen.setdefault(item, []).append((context_of[request], pieces, logprobs))
            if len(seen[item]) == waiting[item]:
                spreads[item] = _spread(seen.pop(item), cancel=cancel)
    rows = [(item, *spreads[item]) for item in waiting]
    return pl.DataFrame(
        rows, schema={"item": pl.String(), "spread": pl.Float64(), "group": pl.String()}, orient="row"
    )


def _spread(
    sentences: list[tuple[str | None, list[str], list[float | None]]], *, cancel: bool
) -> tuple[float, str]:
    contexts, pieces, logprobs = zip(*sentences, strict=True)
    columns = zip(*pieces, strict=False) if cancel and len(set(contexts)) == 1 else ()
    common = [*(len(set(column)) == 1 for column in columns), False].index(False)
    apart = sum(-value for values in logprobs for value in values[common:] if value is not None)
    return max(1.0, apart) ** 0.5, SHARED if common else APART


def draw_error_sample(spreads: pl.DataFrame, *, seed: int) -> pl.Series:
    """The items that measure the error: a sample of each group, or all items of a small one."""
    rng = np.random.default_rng(seed)
    places = []
    for (_,), group in spreads.with_row_index().partition_by("group", as_dict=True).items():
        size = min(len(group), max(SAMPLE_LEAST, round(SAMPLE_SHARE * len(group))))
        places.append(group["index"].gather(rng.choice(len(group), size=size, replace=False)))
    return spreads["item"].gather(pl.concat(places).sort()) if places else spreads["item"]
