"""Accuracy with intervals that respect suites.

The items of a suite are variations on one theme, so their answers hang together. Within a suite the
interval is Wilson's; above it, suites are drawn again (and items within them), for another sample of
suites is what one would like to generalize to.
"""

import numpy as np
import polars as pl

from felicity.core.schemas import ESTIMATES

Z_95 = 1.959963984540054
DRAWS = 5000


def wilson_interval(successes: float, n: int, *, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval for a proportion (Wilson 1927); half successes are ties.

    >>> tuple(round(x, 4) for x in wilson_interval(8, 10))
    (0.4902, 0.9433)
    """
    if n == 0:
        return (float("nan"), float("nan"))
    share = successes / n
    scale = 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / scale
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / scale
    return (max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def bootstrap_suites(
    suites: list[np.ndarray], *, seed: int, macro: bool, draws: int = DRAWS
) -> tuple[float, float]:
    """95% percentile interval of accuracy when suites, and items within them, are drawn again.

    `suites` holds the `passed` values of each suite; `macro` averages over suites, not items.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([len(passed) for passed in suites])
    totals = np.empty((draws, len(suites)))
    for column, passed in enumerate(suites):
        values, counts = np.unique(passed, return_counts=True)
        totals[:, column] = rng.multinomial(len(passed), counts / len(passed), size=draws) @ values
    chosen = rng.integers(len(suites), size=(draws, len(suites)))
    drawn = np.take_along_axis(totals, chosen, axis=1)
    if macro:
        accuracy = (drawn / sizes[chosen]).mean(axis=1)
    else:
        accuracy = drawn.sum(axis=1) / sizes[chosen].sum(axis=1)
    low, high = np.quantile(accuracy, [0.025, 0.975])
    return float(low), float(high)


def estimate_accuracy(judgements: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Accuracy overall (over items), macro (over suites), by phenomenon and by suite: rows of ESTIMATES."""
    rows: list[dict[str, object]] = []
    for (measure,), judged in judgements.group_by("measure", maintain_order=True):
        rows.append(_estimate(judged, str(measure), "overall", "all", seed))
        rows.append(_estimate(judged, str(measure), "macro", "all", seed))
        for level in ("phenomenon", "suite"):
            for (name,), part in judged.group_by(level, maintain_order=True):
                rows.append(_estimate(part, str(measure), level, str(name), seed))
    return pl.DataFrame(rows, schema=ESTIMATES)


def _estimate(judged: pl.DataFrame, measure: str, level: str, name: str, seed: int) -> dict[str, object]:
    parts = [part["passed"].to_numpy() for _, part in judged.group_by("suite", maintain_order=True)]
    passed = judged["passed"].to_numpy()
    macro = level == "macro"
    if len(parts) > 1:
        low, high = bootstrap_suites(parts, seed=seed, macro=macro)
        interval = "bootstrap over suites"
    else:
        low, high = wilson_interval(float(passed.sum()), len(passed))
        interval = "Wilson"
    return {
        "measure": measure,
        "level": level,
        "name": name,
        "n": len(passed),
        "suites": len(parts),
        "accuracy": float(np.mean([part.mean() for part in parts])) if macro else float(passed.mean()),
        "low": low,
        "high": high,
        "interval": interval,
        "ties": int((passed == 0.5).sum()),
        "unstable": int((~judged["stable"]).sum()),
    }
