"""Agreement of raters: Cohen's and Fleiss' kappa, and Krippendorff's alpha.

Krippendorff's alpha = 1 - observed / expected disagreement, from the coincidences of values within items, for
any number of raters, any kind of scale, and missing answers.
Reference: Krippendorff (2011), Computing Krippendorff's alpha-reliability.
"""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Frame, Vector, as_polars, level_codes, take_column

Weights = Literal["none", "linear", "quadratic"]
SCALES = ("nominal", "ordinal", "interval", "ratio")


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

    Raises BadInput for unequal lengths, missing answers, or if both raters use one category only.
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
    # Where one rater uses one category only, kappa is 0 whatever the other says.
    z = kappa / (float(np.sqrt(null / n)) / (1.0 - expected)) if null > 0 else 0.0
    half_width = float(stats.norm.ppf(0.5 + level / 2.0)) * se
    row = {"n": n, "agreement": float(np.trace(table)), "kappa": kappa, "se": se}
    ends = {"p": float(2.0 * stats.norm.sf(abs(z))), "low": kappa - half_width, "high": kappa + half_width}
    return pl.DataFrame([row | ends])


def _cross_table(first: pl.Series, second: pl.Series) -> tuple[Vector, int]:
    if len(first) != len(second):
        raise BadInput(f"One rater gave {len(first)} answers and the other {len(second)}; pair them first.")
    if not len(first):
        raise BadInput("There are no answers to agree on.")
    if first.null_count() or second.null_count():
        raise BadInput("An answer is missing; drop the items that only one rater has answered.")
    categories = sorted(set(first.to_list()) | set(second.to_list()), key=_sort_key)
    if len(categories) < 2:
        raise BadInput("Both raters use one category only, so agreement by chance is certain.")
    row_of = {category: i for i, category in enumerate(categories)}
    table = np.zeros((len(categories), len(categories)))
    for a, b in zip(first.to_list(), second.to_list(), strict=True):
        table[row_of[a], row_of[b]] += 1.0
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

    The standard error under the null is that of Fleiss, Nee & Landis (1979), and is used for the test; the
    interval is by jackknife over items.

    Raises BadInput if items have different numbers of raters, fewer than two, or one category only.
    """
    table = as_polars(ratings)
    frame = pl.DataFrame({"item": take_column(table, item), "rating": take_column(table, rating)})
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
    half_width = float(stats.t.ppf(0.5 + level / 2.0, items - 1)) * se
    row = {"items": items, "raters": int(m), "kappa": kappa, "se": se}
    p = float(2.0 * stats.norm.sf(abs(kappa / null_se)))
    return pl.DataFrame([row | {"p": p, "low": kappa - half_width, "high": kappa + half_width}])


def _fleiss(counts: Vector) -> float:
    m = counts.sum(axis=1)[0]
    observed = float(((counts**2).sum(axis=1) - m).mean() / (m * (m - 1.0)))
    expected = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (observed - expected) / (1.0 - expected) if expected < 1.0 else 1.0


Scale = Literal["nominal", "ordinal", "interval", "ratio"]


def krippendorff_alpha(
    ratings: Frame,
    *,
    item: str = "item",
    rating: str = "rating",
    scale: Scale = "interval",
    level: float = 0.95,
    draws: int = 1_000,
    seed: int = 0,
) -> pl.DataFrame:
    """One row: items, answers, alpha, low, high, from one row per answer.

    Items with one answer are uninformative and left out. The interval is a bootstrap over items.

    Raises BadInput if no item has two answers, or all answers are the same.
    """
    if scale not in SCALES:
        raise UnknownName("scale", str(scale), SCALES)
    counts, values = _count_values(as_polars(ratings), item, rating, scale)
    alpha = _alpha(counts, values, scale)
    rng = np.random.default_rng(seed)
    alphas = []
    for _ in range(draws):
        drawn = counts[rng.integers(0, len(counts), len(counts))]
        if (drawn.sum(axis=0) > 0).sum() > 1:
            alphas.append(_alpha(drawn, values, scale))
    low, high = np.quantile(alphas, [0.5 - level / 2.0, 0.5 + level / 2.0]) if alphas else (np.nan, np.nan)
    row = {"items": len(counts), "answers": int(counts.sum()), "scale": scale, "alpha": alpha}
    return pl.DataFrame([row | {"low": float(low), "high": float(high)}])


def _count_values(frame: pl.DataFrame, item: str, rating: str, scale: Scale) -> tuple[Vector, Vector]:
    """How often each item got each value, and the values as numbers."""
    items, _ = level_codes(take_column(frame, item))
    given = take_column(frame, rating)
    if scale != "nominal" and not given.dtype.is_numeric():
        raise BadInput(f"Column '{rating}' is not numeric; only the nominal scale takes names.")
    codes, names = level_codes(given)
    values = np.sort(given.unique().to_numpy()).astype(float) if scale != "nominal" else np.arange(len(names))
    counts = np.zeros((int(items.max()) + 1, len(names)))
    np.add.at(counts, (items, codes), 1.0)
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        raise BadInput("No item has two answers, so nothing can agree.")
    if (counts.sum(axis=0) > 0).sum() < 2:
        raise BadInput("All answers are the same, so agreement by chance is certain.")
    return counts, np.asarray(values, dtype=np.float64)


def _alpha(counts: Vector, values: Vector, scale: Scale) -> float:
    per_item = counts.sum(axis=1)
    weights = counts / (per_item - 1.0)[:, None]
    coincidences = weights.T @ counts - np.diag(weights.sum(axis=0))
    totals = coincidences.sum(axis=0)
    distance = _distance(values, totals, scale)
    n = float(totals.sum())
    observed = float((coincidences * distance).sum())
    expected = float((np.outer(totals, totals) * distance).sum()) / (n - 1.0)
    return 1.0 - observed / expected


def _distance(values: Vector, totals: Vector, scale: Scale) -> Vector:
    if scale == "nominal":
        return 1.0 - np.eye(len(values))
    if scale == "ordinal":
        # Squared number of answers between two values, with half of their own.
        ranks = np.cumsum(totals) - totals / 2.0
        return np.asarray(np.subtract.outer(ranks, ranks) ** 2)
    apart = np.subtract.outer(values, values)
    if scale == "interval":
        return np.asarray(apart**2)
    total = np.add.outer(values, values)
    return np.asarray(np.divide(apart, total, out=np.zeros_like(apart), where=total != 0) ** 2)
