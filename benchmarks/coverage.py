"""Simulate the inference over suites: coverage of its intervals, and errors of its test.

    python benchmarks/coverage.py            # prints the tables of docs/explanation/statistics.md

The truth is a logistic one: the log-odds of a right answer are the model's, plus the suite's, plus the
suite's for that model, plus the item's; models answer the same items. With one suite the truth is that of
the suite; with several, that of the population that suites are drawn from.
"""

import argparse
from functools import lru_cache
from time import perf_counter

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from felicity.stats import Vector, compare_shares, share_interval, spread_clusters

SUITES = (1, 2, 4, 8, 30)
REPLICATES = 4_000
# Quantiles of a normal distribution, for means over it.
GRID = np.linspace(-6, 6, 241)
DENSITY = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()
# Log-odds of items around their suite's.
ITEM_SD = 1.0
# Sizes of suites relative to their mean, where they are unequal.
UNEQUAL = np.array([0.2, 0.4, 1.0, 2.4])


def mean_share(log_odds: float, sd: float) -> float:
    """The mean of the inverse logit over a normal distribution."""
    return float(expit(log_odds + sd * GRID) @ DENSITY)


@lru_cache
def find_log_odds(share: float, sd: float) -> float:
    """The log-odds whose mean share is `share`."""
    return float(brentq(lambda log_odds: mean_share(log_odds, sd) - share, -12, 12))


def cover_accuracy(
    accuracy: float,
    items: int,
    sd: float,
    suites: int,
    *,
    unequal: bool = False,
    macro: bool = False,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[float, float]:
    """How often the interval of an accuracy has the true one, and how wide it is on average.

    sd: of suites' log-odds. unequal: sizes of .2, .4, 1 and 2.4 times `items`, in turn.
    """
    rng = np.random.default_rng(seed)
    sizes = np.full(suites, items)
    if unequal:
        sizes = np.maximum(1, np.round(items * UNEQUAL[np.arange(suites) % len(UNEQUAL)])).astype(int)
    truth = expit(find_log_odds(accuracy, sd) + sd * rng.standard_normal((replicates, suites)))
    right = rng.binomial(sizes, truth).astype(np.float64)
    weights = np.broadcast_to(1.0 if macro else sizes.astype(np.float64), right.shape)
    shares = (weights * right / sizes).sum(axis=1) / weights.sum(axis=1)
    answers = weights.sum(axis=1) ** 2 / (weights**2 / sizes).sum(axis=1)
    cell = np.repeat(np.arange(replicates), suites)
    spread = spread_clusters(cell, (weights * right / sizes).ravel(), weights.ravel(), replicates)
    low, high = share_interval(shares, answers, [spread])
    true = truth[:, 0] if suites == 1 else accuracy
    return float(((low <= true) & (true <= high)).mean()), float((high - low).mean())


def draw_differences(
    first: float, second: float, items: int, sd: float, suites: int, *, replicates: int, seed: int
) -> tuple[Vector, Vector, Vector]:
    """Shares gained and lost per suite, one row per replicate, and the true differences.

    sd: of suites' log-odds for one model; suites that are hard for both models are drawn with an SD of 1.
    """
    rng = np.random.default_rng(seed)
    means = [find_log_odds(share, np.sqrt(1.0 + sd**2 + ITEM_SD**2)) for share in (first, second)]
    suite = rng.standard_normal((replicates, suites, 1))
    own = sd * rng.standard_normal((2, replicates, suites, 1))
    shift = ITEM_SD * rng.standard_normal((replicates, suites, items))
    right = [rng.random(shift.shape) < expit(m + suite + e + shift) for m, e in zip(means, own, strict=True)]
    gained, lost = (right[0] & ~right[1]).mean(axis=2), (right[1] & ~right[0]).mean(axis=2)
    if suites > 1:
        return gained, lost, np.full(replicates, first - second)
    of_suite = [expit(m + suite + e + ITEM_SD * GRID) @ DENSITY for m, e in zip(means, own, strict=True)]
    return gained, lost, (of_suite[0] - of_suite[1])[:, 0]


def cover_difference(
    first: float,
    second: float,
    items: int,
    sd: float,
    suites: int,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[float, float]:
    """How often the interval of a difference has the true one, and how often p is below .05.

    With one suite, `sd` is 0: the two models are compared on the items of that suite.
    """
    gained, lost, truth = draw_differences(
        first, second, items, sd if suites > 1 else 0.0, suites, replicates=replicates, seed=seed
    )
    cell = np.repeat(np.arange(replicates), suites)
    sizes = np.full(len(cell), float(items))
    spread = spread_clusters(cell, (gained - lost).ravel() * items, sizes, replicates)
    answers = np.full(replicates, float(items * suites))
    found = compare_shares(gained.mean(axis=1), lost.mean(axis=1), answers, [spread])
    covered = (found.low <= truth) & (truth <= found.high)
    excluded = (found.low > 0) | (found.high < 0)
    if not np.array_equal(excluded, found.p < 0.05):
        raise AssertionError("An interval and its p disagree.")
    return float(covered.mean()), float((found.p < 0.05).mean())


def print_tables(replicates: int) -> None:
    """The tables as Markdown."""
    head = " | ".join(f"{suites} suite{'s' if suites > 1 else ''}" for suites in SUITES)
    print(f"| accuracy | items per suite | SD of suites (log-odds) | {head} |")
    print("|---|---|---|" + "---|" * len(SUITES))
    for accuracy in (0.5, 0.75, 0.9):
        for items, unequal in ((10, False), (100, False), (40, True)):
            for sd in (0.0, 0.5, 1.5):
                cells = []
                for suites in SUITES:
                    options = {"unequal": unequal, "replicates": replicates, "seed": suites}
                    share, width = cover_accuracy(accuracy, items, sd, suites, **options)
                    cells.append(f"{100 * share:.1f} ({100 * width:.0f})")
                named = f"{items}, unequal" if unequal else items
                print(f"| {100 * accuracy:.0f} | {named} | {sd:g} | {' | '.join(cells)} |", flush=True)
    print()
    print(f"| accuracies | items per suite | SD of suites for a model | {head} |")
    print("|---|---|---|" + "---|" * len(SUITES))
    for first, second in ((0.75, 0.75), (0.9, 0.9), (0.75, 0.65), (0.95, 0.75)):
        for items in (10, 100):
            for sd in (0.0, 0.5, 1.0):
                cells = []
                for suites in SUITES:
                    share, found = cover_difference(
                        first, second, items, sd, suites, replicates=replicates, seed=suites
                    )
                    cells.append(f"{100 * share:.1f} ({100 * found:.1f})")
                named = f"{100 * first:.0f}, {100 * second:.0f}"
                print(f"| {named} | {items} | {sd:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Simulate the inference over suites.")
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    started = perf_counter()
    print_tables(parser.parse_args().replicates)
    print(f"\n{perf_counter() - started:.0f} s")
