"""Agreement beyond chance: Cohen's kappa of two raters, Fleiss' kappa of many."""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Frame, Vector, as_polars, column

Weights = Literal["none", "linear", "quadratic"]


def cohen_kappa(
    first: Sequence[Hashable] | pl.Series,
    second: Sequence[Hashable] | pl.Series,
    *,
    weights: Weights = "none",
    level: float = 0.95,
) -> pl.DataFrame:
    """One row: n, agreement, kappa, its large-sample standard error, p, low, high.

    weights: 'linear' or 'quadratic' for ordered categories (taken in sorted order).
    The standard error of the interval is that of Fleiss, Cohen & Everitt (1969); p tests kappa = 0.

    Raises BadInput for unequal lengths, gaps, or where both raters use one category only.
    """
    if weights not in ("none", "linear", "quadratic"):
        raise UnknownName("weights", str(weights), ("none", "linear", "quadratic"))
    table, n = _cross_table(pl.Series("first", first), pl.Series("second", second))
    w = _agreement_weights(len(table), weights)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    observed, expected = float((w * table).sum()), float(rows @ w @ columns)
    kappa = (observed - expected) / (1.0 - expected)
    row_means, column_means = w @ columns, rows @ w
    means = row_means[:, None] + column_means[None, :]
    spread = float((table * (w - means * (1.0 - kappa)) ** 2).sum()) - (kappa - expected * (1.0 - kappa)) ** 2
    se = float(np.sqrt(max(spread, 0.0) / n)) / (1.0 - expected)
    null = float((np.outer(rows, columns) * (w - means) ** 2).sum()) - expected**2
    z = kappa / (float(np.sqrt(null / n)) / (1.0 - expected))
    reach = float(stats.norm.ppf(0.5 + level / 2.0)) * se
    row = {"n": n, "agreement": float(np.trace(table)), "kappa": kappa, "se": se}
    ends = {"p": float(2.0 * stats.norm.sf(abs(z))), "low": kappa - reach, "high": kappa + reach}
    return pl.DataFrame([row | ends])


def _cross_table(first: pl.Series, second: pl.Series) -> tuple[Vector, int]:
    if len(first) != len(second):
        raise BadInput(f"One rater gave {len(first)} answers and the other {len(second)}; pair them first.")
    if not len(first):
        raise BadInput("There are no answers to agree on.")
    if first.null_count() or second.null_count():
        raise BadInput("An answer is missing; drop the items that not both have answered.")
    categories = sorted(set(first.to_list()) | set(second.to_list()), key=_sort_key)
    if len(categories) < 2:
        raise BadInput("Both raters use one category only, so agreement by chance is certain.")
    place = {category: i for i, category in enumerate(categories)}
    table = np.zeros((len(categories), len(categories)))
    for a, b in zip(first.to_list(), second.to_list(), strict=True):
        table[place[a], place[b]] += 1.0
    return table / len(first), len(first)


def _sort_key(value: object) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _agreement_weights(size: int, weights: Weights) -> Vector:
    if weights == "none":
        return np.eye(size)
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1)
    return np.asarray(1.0 - (apart if weights == "linear" else apart**2))


def fleiss_kappa(
    ratings: Frame, *, item: str = "item", rating: str = "rating", level: float = 0.95
) -> pl.DataFrame:
    """One row: items, raters, kappa, se, p, low, high, from one row per answer (Fleiss 1971).

    The standard error under the null is that of Fleiss, Nee & Landis (1979), and serves the test; the
    interval is by jackknife over items.

    Raises BadInput where items have different numbers of raters, fewer than two, or one category only.
    """
    table = as_polars(ratings)
    frame = pl.DataFrame({"item": column(table, item), "rating": column(table, rating)})
    counts = (
        frame.group_by("item", "rating").len().pivot(on="rating", index="item", values="len").fill_null(0)
    )
    n_ij = counts.drop("item").to_numpy().astype(np.float64)
    raters = n_ij.sum(axis=1)
    if np.ptp(raters) > 0 or raters[0] < 2:
        raise BadInput("Fleiss' kappa needs the same number of raters, two or more, for every item.")
    if n_ij.shape[1] < 2 or len(n_ij) < 2:
        raise BadInput("Fleiss' kappa needs at least two items and two categories in use.")
    m, items = float(raters[0]), len(n_ij)
    kappa = _fleiss(n_ij)
    shares = n_ij.sum(axis=0) / n_ij.sum()
    base = float(shares @ (1.0 - shares))
    cubic = float((shares * (1.0 - shares) * (1.0 - 2.0 * shares)).sum())
    null_se = float(np.sqrt(2.0 * (base**2 - cubic) / (items * m * (m - 1.0)))) / base
    left_out = np.array([_fleiss(np.delete(n_ij, i, axis=0)) for i in range(items)])
    se = float(np.sqrt((items - 1) / items * ((left_out - left_out.mean()) ** 2).sum()))
    reach = float(stats.t.ppf(0.5 + level / 2.0, items - 1)) * se
    row = {"items": items, "raters": int(m), "kappa": kappa, "se": se}
    p = float(2.0 * stats.norm.sf(abs(kappa / null_se)))
    return pl.DataFrame([row | {"p": p, "low": kappa - reach, "high": kappa + reach}])


def _fleiss(counts: Vector) -> float:
    m = counts.sum(axis=1)[0]
    observed = float(((counts**2).sum(axis=1) - m).mean() / (m * (m - 1.0)))
    expected = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (observed - expected) / (1.0 - expected) if expected < 1.0 else 1.0
