"""How many items a comparison needs, and the smallest difference that a number of items can show."""

import numpy as np

from felicity.core.errors import BadInput, NotPossible
from felicity.stats.power import Power, check_shares, critical_counts, power_mcnemar

MOST_ITEMS = 10_000_000
WINDOW = 0.05


def items_needed(
    only_first: float, only_second: float, *, power: float = 0.8, alpha: float = 0.05, mid: bool = False
) -> int:
    """The fewest items from which on power stays at the goal.

    Power climbs in a saw-tooth, as an exact test's level does; a number that reaches the goal only at
    the tip of a tooth is passed over (the next 5% of sizes are looked at).

    Raises BadInput for a goal that is no power, NotPossible where millions of items would not do.
    """
    check_shares(only_first, only_second, 1, alpha)
    _check_power(power)

    def enough(n: int) -> bool:
        return power_mcnemar(only_first, only_second, n, alpha=alpha, mid=mid).power >= power

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
    # Bisection ends on some tooth; walk to the last size in the window that still falls short.
    start, end = int(high * (1.0 - WINDOW)), int(high * (1.0 + WINDOW)) + 10
    step = max(1, (end - start) // 400)
    short = [n for n in range(start, end + 1, step) if n >= 1 and not enough(n)]
    if not short:
        return max(1, start)
    last = max(short)
    return next(n for n in range(last + 1, last + step + 1) if enough(n))


def smallest_difference(
    n: int, discordant: float, *, power: float = 0.8, alpha: float = 0.05, mid: bool = False
) -> Power:
    """The smallest true difference that n items show with the given power.

    discordant: share of items on which the models disagree; the difference cannot be larger.

    Raises NotPossible where even a difference of all discordant items would not be shown.
    """
    _check_power(power)
    if not 0.0 < discordant <= 1.0:
        raise BadInput(f"A discordant share of {discordant:g} is not between 0 and 1.")

    def at(difference: float) -> Power:
        shares = (discordant + difference) / 2.0, (discordant - difference) / 2.0
        return power_mcnemar(*shares, n, alpha=alpha, mid=mid)

    if at(discordant).power < power:
        raise NotPossible(
            f"With {n} items and {discordant:g} of them discordant no difference is shown with power "
            f"{power:g}; take more items."
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
    mid: bool = False,
) -> Power:
    """Power by simulation, as Card et al. (2020) compute it: a check on the exact sum.

    Each trial draws the table of n items and tests it; what the exact sum adds up is counted.
    """
    check_shares(only_first, only_second, n, alpha)
    rng = np.random.default_rng(seed)
    tables = rng.multinomial(
        n, [only_first, only_second, max(0.0, 1.0 - only_first - only_second)], size=trials
    )
    counts = tables[:, 0] + tables[:, 1]
    significant = np.minimum(tables[:, 0], tables[:, 1]) <= critical_counts(counts, alpha, mid=mid)
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


def _check_power(power: float) -> None:
    if not 0.0 < power < 1.0:
        raise BadInput(f"A power of {power:g} is not between 0 and 1; 0.8 is customary.")
