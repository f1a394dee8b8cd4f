"""Power of a comparison of two models: of given items and suites, and of the test that `compare` runs.

Over items that test is McNemar's, whose power is a sum over all tables. Over suites the test is simulated:
suites whose true differences vary around the mean, by a beta distribution of the discordant items' direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import stats
from scipy.special import ndtri

from felicity.core.errors import BadInput, NotPossible
from felicity.core.wording import decimal, format_number, format_share
from felicity.stats.frames import Codes, Vector
from felicity.stats.inference import compare_shares, spread_clusters
from felicity.stats.paired_tests import Pairs

NEGLIGIBLE = 1e-12
MOST_ITEMS = 10_000_000
WINDOW = 0.05
TRIALS = 4_000
MOST_SUITES = 1_000
# Suites drawn at once, over all samples.
MOST_DRAWN = 1_000_000
# The tests of items, as `compare_all` names them.
ItemTest = Literal["score", "exact", "mid"]
NAMES: dict[ItemTest, str] = {
    "score": "the score test (McNemar's)",
    "exact": "an exact McNemar test",
    "mid": "a McNemar mid-p test",
}


@dataclass(frozen=True)
class Power:
    """The power of a comparison on n items. Type M and S are NaN if nothing can be significant.

    suites: over how many suites it is; 1 if over items. between: the SD of their true differences.
    """

    n: int
    only_first: float
    only_second: float
    alpha: float
    power: float
    type_m: float
    type_s: float
    suites: int = 1
    between: float = 0.0

    @property
    def difference(self) -> float:
        """The true difference in accuracy."""
        return self.only_first - self.only_second

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values; NaN as null."""
        values = {**self.__dict__, "difference": self.difference}
        return {name: None if value != value else value for name, value in values.items()}


def power_mcnemar(
    only_first: float, only_second: float, n: int, *, alpha: float = 0.05, test: ItemTest = "score"
) -> Power:
    """Exact power at n items of which these shares are right for one model only.

    >>> round(power_mcnemar(165 / 1500, 121 / 1500, 1500, test="exact").power, 3)
    0.722

    Raises BadInput for shares that are not probabilities, or that are equal.
    """
    check_shares(only_first, only_second, n, alpha)
    total, large = only_first + only_second, max(only_first, only_second)
    counts = _likely_counts(n, total)
    weights = stats.binom.pmf(counts, n, total)
    split = large / total
    reach = critical_counts(counts, alpha, test=test)
    # Right: at least counts - reach items go the right way; wrong: at most reach do.
    right = stats.binom.sf(counts - reach - 1, counts, split)
    wrong = stats.binom.cdf(reach, counts, split)
    sure = float(weights @ right)
    missed = float(weights @ wrong)
    # E[K; K >= m] = d q P(Bin(d - 1, q) >= m - 1), and likewise below.
    fewer = np.maximum(counts - 1, 0)
    gains = counts * split * stats.binom.sf(counts - reach - 2, fewer, split)
    losses = counts * split * stats.binom.cdf(reach - 1, fewer, split)
    size = float(weights @ (2.0 * gains - counts * right - 2.0 * losses + counts * wrong))
    detected = sure + missed
    return Power(
        n=n,
        only_first=only_first,
        only_second=only_second,
        alpha=alpha,
        power=sure,
        type_m=size / (n * detected * abs(only_first - only_second)) if detected > 0 else float("nan"),
        type_s=missed / detected if detected > 0 else float("nan"),
    )


def power_of_pairs(
    pairs: Pairs, *, n: int | None = None, alpha: float = 0.05, test: ItemTest = "score"
) -> Power:
    """Power if two runs show the truth, at their own or another number of items."""
    only_first, only_second = pairs.discordant
    return power_mcnemar(only_first / pairs.n, only_second / pairs.n, n or pairs.n, alpha=alpha, test=test)


def power_curve(
    only_first: float,
    only_second: float,
    sizes: Sequence[int],
    *,
    alpha: float = 0.05,
    test: ItemTest = "score",
) -> pl.DataFrame:
    """Power, Type M and Type S over numbers of items, one row each."""
    points = [power_mcnemar(only_first, only_second, n, alpha=alpha, test=test) for n in sizes]
    return pl.DataFrame(
        [{"n": p.n, "power": p.power, "type_m": p.type_m, "type_s": p.type_s} for p in points]
    )


def shares_from_accuracies(first: float, second: float, agreement: float) -> tuple[float, float]:
    """Discordant shares of two accuracies and the share of items on which the models agree.

    >>> tuple(round(share, 3) for share in shares_from_accuracies(0.8, 0.75, 0.85))
    (0.1, 0.05)

    Raises BadInput for accuracies that cannot have this agreement.
    """
    for name, value in (("accuracy", first), ("accuracy", second), ("agreement", agreement)):
        if not 0.0 <= value <= 1.0:
            raise BadInput(f"An {name} of {value:g} is not between 0 and 1.")
    only_first, only_second = ((1.0 - agreement + sign * (first - second)) / 2.0 for sign in (1, -1))
    most = 1.0 - abs(first - second)
    least = abs(first + second - 1.0)
    if min(only_first, only_second) < -1e-12 or agreement < least - 1e-12:
        raise BadInput(
            f"Accuracies of {first:g} and {second:g} agree on {least:.3g} to {most:.3g} of the items, "
            f"never on {agreement:g}."
        )
    return max(only_first, 0.0), max(only_second, 0.0)


def critical_counts(counts: Codes, alpha: float, *, test: ItemTest = "score") -> Codes:
    """Per number of discordant items, the largest smaller count that is still significant; -1 if none."""
    if test == "score":
        # (counts - 2 k)^2 / counts reaches the squared critical value; a small tolerance for rounding.
        reach = np.floor((counts + ndtri(alpha / 2.0) * np.sqrt(counts)) / 2.0 + 1e-12)
        return np.where(counts > 0, np.maximum(reach, -1.0), -1.0).astype(np.int64)
    guess = stats.binom.ppf(alpha / 2.0, counts, 0.5).astype(np.int64) + 1
    for _ in range(3):
        tail = stats.binom.cdf(guess, counts, 0.5)
        if test == "mid":
            tail = tail - 0.5 * stats.binom.pmf(guess, counts, 0.5)
        # A small tolerance, so that cdf(k) equal to alpha / 2 up to rounding counts as significant.
        guess = np.where((guess >= 0) & (2.0 * tail > alpha * (1.0 + 1e-12)), guess - 1, guess)
    return np.asarray(np.maximum(guess, -1))


def check_shares(only_first: float, only_second: float, n: int, alpha: float) -> None:
    """Refuse impossible shares, counts and levels.

    Raises BadInput.
    """
    if min(only_first, only_second) < 0 or only_first + only_second > 1.0 + 1e-12:
        raise BadInput(
            f"Discordant shares of {only_first:g} and {only_second:g} are not probabilities; "
            f"they must be at least 0 and sum to at most 1."
        )
    if only_first == only_second:
        raise BadInput("The two models do not differ, so there is no effect to detect.")
    if n < 1:
        raise BadInput(f"The number of items is {n}; give at least 1.")
    if not 0.0 < alpha < 1.0:
        raise BadInput(f"alpha is {alpha:g}; choose a level between 0 and 1, such as 0.05.")


def describe_power(power: Power, *, test: ItemTest = "score") -> str:
    """Power in words."""
    used, units = NAMES[test], f"{power.n} items"
    if power.suites > 1:
        used = "the score test over suites"
        spread = format_number(100.0 * power.between)
        units += f" of {power.suites} suites, whose true differences have an SD of {spread} points,"
    text = (
        f"If one model alone is right on {format_share(power.only_first)} of the items and the other alone "
        f"on {format_share(power.only_second)}, {used} on {units} finds the "
        f"difference of {format_number(100.0 * abs(power.difference))} points with probability "
        f"{decimal(power.power, 3)} (alpha {power.alpha:g})."
    )
    if power.type_m == power.type_m:
        text += (
            f" A significant difference would on average be {format_number(power.type_m)} times the true one "
            f"(Type M) and have the wrong sign with probability {decimal(power.type_s, 3)} (Type S)."
        )
    return text


def _likely_counts(n: int, total: float) -> Codes:
    low, high = stats.binom.ppf([NEGLIGIBLE, 1.0 - NEGLIGIBLE], n, total)
    return np.arange(max(0, int(low) - 1), min(n, int(high) + 1) + 1)


def items_needed(
    only_first: float,
    only_second: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    test: ItemTest = "score",
) -> int:
    """The smallest number of items at which power reaches the goal and stays there.

    Power rises in a saw-tooth, as an exact test's level does; a number that reaches the goal only at
    the tip of a tooth is skipped (the next 5% of sizes are checked).

    Raises BadInput for an impossible goal, NotPossible if millions of items are not enough.
    """
    check_shares(only_first, only_second, 1, alpha)
    _check_power(power)

    def enough(n: int) -> bool:
        return power_mcnemar(only_first, only_second, n, alpha=alpha, test=test).power >= power

    high = 8
    while not enough(high):
        high *= 2
        if high > MOST_ITEMS:
            raise NotPossible(
                "More than ten million items would be needed; the difference is too small to show."
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    # Bisection ends on some tooth; continue to the last size in the window that still falls short.
    start, end = int(high * (1.0 - WINDOW)), int(high * (1.0 + WINDOW)) + 10
    step = max(1, (end - start) // 400)
    short = [n for n in range(start, end + 1, step) if n >= 1 and not enough(n)]
    if not short:
        return max(1, start)
    last = max(short)
    return next(n for n in range(last + 1, last + step + 1) if enough(n))


def smallest_difference(
    n: int, discordant: float, *, power: float = 0.8, alpha: float = 0.05, test: ItemTest = "score"
) -> Power:
    """The smallest true difference that n items show with the given power.

    discordant: share of items on which the models disagree; the difference cannot be larger.

    Raises NotPossible if even a difference of all discordant items would not be detected.
    """
    _check_power(power)
    if not 0.0 < discordant <= 1.0:
        raise BadInput(f"A discordant share of {discordant:g} is not between 0 and 1.")

    def at(difference: float) -> Power:
        shares = (discordant + difference) / 2.0, (discordant - difference) / 2.0
        return power_mcnemar(*shares, n, alpha=alpha, test=test)

    if at(discordant).power < power:
        raise NotPossible(
            f"With {n} items and {discordant:g} of them discordant no difference is detected with power "
            f"{power:g}; use more items."
        )
    low, high = 0.0, discordant
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if at(middle).power >= power else (middle, high)
    return at(high)


def simulate_power(
    only_first: float,
    only_second: float,
    n: int,
    *,
    alpha: float = 0.05,
    trials: int = 10_000,
    seed: int = 0,
    test: ItemTest = "score",
) -> Power:
    """Power by simulation, as Card et al. (2020) compute it: a check on the exact sum.

    Each trial samples the table of n items and tests it.
    """
    check_shares(only_first, only_second, n, alpha)
    rng = np.random.default_rng(seed)
    tables = rng.multinomial(
        n, [only_first, only_second, max(0.0, 1.0 - only_first - only_second)], size=trials
    )
    counts = tables[:, 0] + tables[:, 1]
    significant = np.minimum(tables[:, 0], tables[:, 1]) <= critical_counts(counts, alpha, test=test)
    differences = (tables[:, 0] - tables[:, 1]) / n
    true = only_first - only_second
    right = significant & (np.sign(differences) == np.sign(true))
    any_found = bool(significant.any())
    return Power(
        n=n,
        only_first=only_first,
        only_second=only_second,
        alpha=alpha,
        power=float(right.mean()),
        type_m=float(np.abs(differences[significant]).mean() / abs(true)) if any_found else float("nan"),
        type_s=float((~right[significant]).mean()) if any_found else float("nan"),
    )


def power_of_suites(
    only_first: float,
    only_second: float,
    n: int,
    suites: int,
    *,
    between: float,
    alpha: float = 0.05,
    trials: int = TRIALS,
    seed: int = 0,
) -> Power:
    """Power of the test over suites of equal size, simulated: the test is `compare_shares` itself.

    between: the standard deviation of the suites' true differences. It cannot be larger than the discordant
        items allow: if every discordant item of a suite goes the same way.

    Raises BadInput for impossible shares, and for fewer items than suites.
    """
    check_shares(only_first, only_second, n, alpha)
    if suites < 2 or n < suites:
        raise BadInput(f"{n} items in {suites} suites cannot be tested over suites; give at least 2 suites.")
    rng = np.random.default_rng(seed)
    trials = max(1_000, min(trials, MOST_DRAWN // suites))
    total, split = only_first + only_second, only_first / (only_first + only_second)
    lean = _draw_leans(rng, split, between / (2.0 * total), (trials, suites))
    sizes = np.full(suites, n // suites) + (np.arange(suites) < n % suites)
    discordant = rng.binomial(np.broadcast_to(sizes, lean.shape), total)
    gained = rng.binomial(discordant, lean)
    differences = (2 * gained - discordant).astype(np.float64)
    cell = np.repeat(np.arange(trials), suites)
    weights = np.tile(sizes.astype(np.float64), trials)
    comparison = compare_shares(
        gained.sum(axis=1) / n,
        (discordant - gained).sum(axis=1) / n,
        np.full(trials, float(n)),
        [spread_clusters(cell, differences.ravel(), weights, trials)],
        ends=False,
    )
    significant = comparison.p <= alpha
    right = significant & (np.sign(comparison.estimate) == np.sign(only_first - only_second))
    any_found = bool(significant.any())
    return Power(
        n=n,
        only_first=only_first,
        only_second=only_second,
        alpha=alpha,
        power=float(right.mean()),
        type_m=float(np.abs(comparison.estimate[significant]).mean() / abs(only_first - only_second))
        if any_found
        else float("nan"),
        type_s=float((~right[significant]).mean()) if any_found else float("nan"),
        suites=suites,
        between=between,
    )


def _draw_leans(rng: np.random.Generator, split: float, sd: float, shape: tuple[int, int]) -> Vector:
    """The share of a suite's discordant items that the first gets right: beta with this mean and SD."""
    most = split * (1.0 - split)
    if sd <= 0.0 or most == 0.0:
        return np.full(shape, split)
    if sd**2 >= most * (1.0 - 1e-9):
        return (rng.random(shape) < split).astype(np.float64)
    concentration = most / sd**2 - 1.0
    return rng.beta(split * concentration, (1.0 - split) * concentration, size=shape)


def spread_of_suites(pairs: Pairs) -> float:
    """The SD of the suites' true differences, by moments: what exceeds the spread due to their items.

    Raises BadInput if there are not several suites.
    """
    if pairs.clusters is None or (count := int(pairs.clusters.max()) + 1) < 2:
        raise BadInput("The spread between suites needs at least two of them.")
    sizes = np.bincount(pairs.clusters).astype(np.float64)
    means = np.bincount(pairs.clusters, pairs.differences) / sizes
    squares = np.bincount(pairs.clusters, pairs.differences**2) / sizes
    within = float(np.sum((squares - means**2) * sizes) / max(pairs.n - count, 1))
    return float(np.sqrt(max(means.var(ddof=1) - within * float(np.mean(1.0 / sizes)), 0.0)))


def suites_needed(
    only_first: float,
    only_second: float,
    size: float,
    *,
    between: float,
    power: float = 0.8,
    alpha: float = 0.05,
    seed: int = 0,
) -> int:
    """The smallest number of suites of `size` items at which the test over suites reaches the power.

    Raises NotPossible if thousands of suites are not enough.
    """
    _check_power(power)

    def enough(suites: int) -> bool:
        items = max(suites, round(size * suites))
        options: dict[str, Any] = {"between": between, "alpha": alpha, "seed": seed}
        return power_of_suites(only_first, only_second, items, suites, **options).power >= power

    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_SUITES:
            raise NotPossible(f"More than {MOST_SUITES:,} suites would be needed for a power of {power:g}.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def smallest_difference_of_suites(
    n: int,
    suites: int,
    discordant: float,
    *,
    between: float,
    power: float = 0.8,
    alpha: float = 0.05,
    seed: int = 0,
) -> Power:
    """The smallest true difference that these items and suites show with the given power, simulated.

    Raises NotPossible if even a difference of all discordant items would not be detected.
    """
    _check_power(power)

    def at(difference: float) -> Power:
        shares = (discordant + difference) / 2.0, (discordant - difference) / 2.0
        return power_of_suites(*shares, n, suites, between=between, alpha=alpha, seed=seed)

    if at(discordant).power < power:
        raise NotPossible(
            f"With {n} items of {suites} suites and {discordant:g} of them discordant no difference is "
            f"detected with power {power:g}; use more suites."
        )
    low, high = 0.0, discordant
    for _ in range(12):
        middle = (low + high) / 2.0
        low, high = (low, middle) if at(middle).power >= power else (middle, high)
    return at(high)


def _check_power(power: float) -> None:
    if not 0.0 < power < 1.0:
        raise BadInput(f"A power of {power:g} is not between 0 and 1; 0.8 is customary.")
