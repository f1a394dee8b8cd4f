"""Accuracy with intervals that respect suites.

The items of a suite are variations on one theme, so their answers are dependent. Within a suite the
interval is Wilson's; above it, whole suites are resampled, since other suites of the same kind are what
one would like to generalize to.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy import stats
from scipy.special import stdtrit

from felicity.core.errors import BadInput, UnknownName
from felicity.core.schemas import ESTIMATES
from felicity.stats.bootstrap import DRAWS, draw_clusters
from felicity.stats.frames import Vector, numbers
from felicity.stats.paired_tests import Ties

Z_95 = 1.959963984540054
UPPER_TAIL = 0.975


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion (Clopper & Pearson 1934): never too narrow, often too wide.

    >>> tuple(round(end, 4) for end in clopper_pearson(8, 10))
    (0.4439, 0.9748)

    Raises BadInput for impossible counts.
    """
    if n < 1 or not 0 <= successes <= n:
        raise BadInput(f"{successes} successes in {n} trials is not a proportion.")
    alpha = 1.0 - level
    low = float(stats.beta.ppf(alpha / 2.0, successes, n - successes + 1)) if successes else 0.0
    high = float(stats.beta.ppf(1.0 - alpha / 2.0, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


def proportion_right(
    answers: Sequence[float] | pl.Series | Vector, *, ties: Ties = "half", level: float = 0.95
) -> pl.DataFrame:
    """One row: n, ties, the share of correct answers with its exact interval.

    ties: an answer between 0 and 1 counts as 'half', that is as it is (the interval is then that
        of the rounded number of successes), as 'wrong', or 'drop'ped.
    """
    values = numbers(answers, "answers")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise BadInput("An answer must be 1 (right), 0 (wrong) or between them (a tie).")
    if ties not in ("wrong", "half", "drop"):
        raise UnknownName("treatment of ties", str(ties), ("wrong", "half", "drop"))
    tied = (values > 0.0) & (values < 1.0)
    kept = values[~tied] if ties == "drop" else values
    if not len(kept):
        raise BadInput("Every answer is a tie, so dropping ties leaves nothing.")
    right = float(kept.sum()) if ties == "half" else float((kept == 1.0).sum())
    low, high = clopper_pearson(round(right), len(kept), level=level)
    row = {"n": len(kept), "ties": int(tied.sum()), "share": right / len(kept), "low": low, "high": high}
    return pl.DataFrame([row])


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
    """95% bootstrap interval of accuracy over suites.

    `suites` holds the `passed` values of each suite; `macro` averages over suites, not items. The
    bootstrap gives the standard error, Student's t with one degree of freedom fewer than there are
    suites the critical value: percentiles of the bootstrap itself are far too narrow for few suites.
    If suites happen to agree, the interval is still as wide as Wilson's for independent items.
    """
    sizes = np.array([len(passed) for passed in suites])
    totals = np.array([passed.sum() for passed in suites])
    count = len(suites)
    chosen = draw_clusters(count, seed=seed, draws=draws)
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
