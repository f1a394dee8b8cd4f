"""Power of McNemar's test for two models on the same items, exactly.

With p1 the chance that only the first model is right on an item and p2 that only the second is, the
number of discordant items is binomial, and so is its split given the number. Power is the chance that
the two-sided test rejects with the right sign; Type M is how much a significant difference exaggerates
the true one, Type S how often it has the wrong sign.
References: Card et al. (2020), With Little Power Comes Great Responsibility; Gelman & Carlin (2014).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes
from felicity.stats.pairing import Pairs
from felicity.stats.wording import say_number, say_share

NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Power:
    """What a comparison on n items can show. Type M and S are NaN where nothing is ever significant."""

    n: int
    only_first: float
    only_second: float
    alpha: float
    power: float
    type_m: float
    type_s: float

    @property
    def difference(self) -> float:
        """The true difference in accuracy."""
        return self.only_first - self.only_second

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values; NaN as null."""
        values = {**self.__dict__, "difference": self.difference}
        return {name: None if value != value else value for name, value in values.items()}


def power_mcnemar(
    only_first: float, only_second: float, n: int, *, alpha: float = 0.05, mid: bool = False
) -> Power:
    """Exact power at n items of which these shares are right for one model only.

    >>> round(power_mcnemar(165 / 1500, 121 / 1500, 1500).power, 3)
    0.722

    Raises BadInput for shares that are no probabilities or equal: with no difference, no power.
    """
    check_shares(only_first, only_second, n, alpha)
    total, large = only_first + only_second, max(only_first, only_second)
    counts = _likely_counts(n, total)
    weights = stats.binom.pmf(counts, n, total)
    split = large / total
    reach = critical_counts(counts, alpha, mid=mid)
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
    found = sure + missed
    return Power(
        n=n,
        only_first=only_first,
        only_second=only_second,
        alpha=alpha,
        power=sure,
        type_m=size / (n * found * abs(only_first - only_second)) if found > 0 else float("nan"),
        type_s=missed / found if found > 0 else float("nan"),
    )


def power_of_pairs(pairs: Pairs, *, n: int | None = None, alpha: float = 0.05, mid: bool = False) -> Power:
    """Power if the truth were as two runs have it, at their own or another number of items."""
    only_first, only_second = pairs.discordant
    return power_mcnemar(only_first / pairs.n, only_second / pairs.n, n or pairs.n, alpha=alpha, mid=mid)


def power_curve(
    only_first: float, only_second: float, sizes: Sequence[int], *, alpha: float = 0.05, mid: bool = False
) -> pl.DataFrame:
    """Power, Type M and Type S over numbers of items, one row each."""
    points = [power_mcnemar(only_first, only_second, n, alpha=alpha, mid=mid) for n in sizes]
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


def critical_counts(counts: Codes, alpha: float, *, mid: bool = False) -> Codes:
    """Per number of discordant items, the largest smaller count that is still significant; -1 if none."""
    guess = stats.binom.ppf(alpha / 2.0, counts, 0.5).astype(np.int64) + 1
    for _ in range(3):
        tail = stats.binom.cdf(guess, counts, 0.5)
        if mid:
            tail = tail - 0.5 * stats.binom.pmf(guess, counts, 0.5)
        # A hair of slack, for cdf(k) equal to alpha / 2 up to rounding counts as significant.
        guess = np.where((guess >= 0) & (2.0 * tail > alpha * (1.0 + 1e-12)), guess - 1, guess)
    return np.asarray(np.maximum(guess, -1))


def check_shares(only_first: float, only_second: float, n: int, alpha: float) -> None:
    """Refuse what is no comparison.

    Raises BadInput.
    """
    if min(only_first, only_second) < 0 or only_first + only_second > 1.0 + 1e-12:
        raise BadInput(
            f"Discordant shares of {only_first:g} and {only_second:g} are no probabilities; "
            f"they must be at least 0 and sum to at most 1."
        )
    if only_first == only_second:
        raise BadInput("The two models differ by nothing, so there is no effect to have power for.")
    if n < 1:
        raise BadInput(f"{n} items are none; give at least 1.")
    if not 0.0 < alpha < 1.0:
        raise BadInput(f"alpha is {alpha:g}; choose a level between 0 and 1, such as 0.05.")


def describe_power(power: Power) -> str:
    """Power in words."""
    text = (
        f"If one model alone is right on {say_share(power.only_first)} of the items and the other alone on "
        f"{say_share(power.only_second)}, an exact McNemar test on {power.n} items finds the difference of "
        f"{say_number(100.0 * abs(power.difference))} points with probability {power.power:.3f} "
        f"(alpha {power.alpha:g})."
    )
    if power.type_m == power.type_m:
        text += (
            f" A significant difference would on average be {say_number(power.type_m)} times the true one "
            f"(Type M) and have the wrong sign with probability {power.type_s:.3f} (Type S)."
        )
    return text


def _likely_counts(n: int, total: float) -> Codes:
    low, high = stats.binom.ppf([NEGLIGIBLE, 1.0 - NEGLIGIBLE], n, total)
    return np.arange(max(0, int(low) - 1), min(n, int(high) + 1) + 1)
