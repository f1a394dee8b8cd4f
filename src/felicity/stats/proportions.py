"""Accuracy with intervals that respect suites.

The items of a suite are variations on one theme, so their answers hang together. Within a suite the
interval is Wilson's; above it, whole suites are drawn again, for other suites of the same kind are what
one would like to generalize to.
"""

import numpy as np
import polars as pl
from scipy.special import stdtrit

from felicity.core.schemas import ESTIMATES

Z_95 = 1.959963984540054
UPPER_TAIL = 0.975
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
    """95% interval of accuracy when suites are drawn again.

    `suites` holds the `passed` values of each suite; `macro` averages over suites, not items. The
    bootstrap gives the standard error, Student's t with one degree of freedom less than there are
    suites the multiple of it: percentiles of the bootstrap itself are far too narrow for few suites.
    Where suites happen to agree, the interval is still as wide as Wilson's for independent items.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([len(passed) for passed in suites])
    totals = np.array([passed.sum() for passed in suites])
    count = len(suites)
    chosen = rng.integers(count, size=(draws, count))
    if macro:
        centre = float((totals / sizes).mean())
        drawn = (totals / sizes)[chosen].mean(axis=1)
    else:
        centre = float(totals.sum() / sizes.sum())
        drawn = totals[chosen].sum(axis=1) / sizes[chosen].sum(axis=1)
    error = drawn.std() * np.sqrt(count / (count - 1))
    half = float(stdtrit(count - 1, UPPER_TAIL) * error)
    low, high = wilson_interval(centre * int(sizes.sum()), int(sizes.sum()))
    return max(0.0, min(centre - half, low)), min(1.0, max(centre + half, high))


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
