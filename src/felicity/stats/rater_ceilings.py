"""How well people predict people: rater reliability, and the ceilings UB1 and UB2 of a model's score.

UB1 sets one random rating of each sentence against the mean of the rest, UB2 a random half of its
ratings against the other half; correlations over sentences, averaged over many draws (Lau et al. 2020).
Leave-one-out reliability is each rater's correlation with the mean of the others on the same items
(Huynh et al. 2022).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Codes, Frame, Vector, as_polars, column, level_codes

Method = Literal["pearson", "spearman"]


def one_against_rest(
    ratings: Sequence[Sequence[float]], *, trials: int = 1_000, seed: int = 0, method: Method = "pearson"
) -> pl.DataFrame:
    """UB1: one row with the mean correlation, its SD over trials, items and trials.

    ratings: the ratings of each item. Raises BadInput where an item has fewer than two.
    """
    values, item, size = _lay_out(ratings)
    rng = np.random.default_rng(seed)
    starts = np.cumsum(size) - size
    totals = np.bincount(item, values)
    found = []
    for _ in range(trials):
        chosen = values[starts + rng.integers(0, size)]
        found.append(_correlation(chosen, (totals - chosen) / (size - 1), method))
    return _summary(found, len(size))


def half_against_half(
    ratings: Sequence[Sequence[float]], *, trials: int = 1_000, seed: int = 0, method: Method = "pearson"
) -> pl.DataFrame:
    """UB2: one row with the mean correlation of random halves, its SD over trials, items and trials.

    With an odd number of ratings the second half is larger by one.
    """
    values, item, size = _lay_out(ratings)
    rng = np.random.default_rng(seed)
    starts = np.cumsum(size) - size
    totals = np.bincount(item, values)
    half = size // 2
    found = []
    for _ in range(trials):
        order = np.lexsort((rng.random(len(values)), item))
        in_first = np.arange(len(values)) - starts[item] < half[item]
        first = np.bincount(item, values[order] * in_first)
        found.append(_correlation(first / half, (totals - first) / (size - half), method))
    return _summary(found, len(size))


def leave_one_out_reliability(
    frame: Frame,
    *,
    rater: str = "rater",
    item: str = "item",
    rating: str = "rating",
    method: Method = "spearman",
    cutoff: float | None = None,
) -> pl.DataFrame:
    """A row per rater: n, reliability (correlation with the mean of the others on the same items).

    reliability is null for a rater who never varies or shares fewer than three items. With a cutoff
    there is a column `kept`.
    """
    table = as_polars(frame)
    names = {"rater": rater, "item": item, "rating": rating}
    data = pl.DataFrame({new: column(table, old) for new, old in names.items()})
    if data.select(pl.struct("rater", "item").is_duplicated().any()).item():
        raise BadInput("A rater has rated the same item twice; keep one rating of each.")
    own = pl.col("rating").cast(pl.Float64)
    others = (own.sum().over("item") - own) / (pl.len().over("item") - 1)
    shared = data.with_columns(others.alias("others")).filter(pl.len().over("item") > 1)
    rows = []
    for (name,), part in shared.group_by("rater", maintain_order=True):
        mine, theirs = part["rating"].cast(pl.Float64).to_numpy(), part["others"].to_numpy()
        usable = len(mine) > 2 and np.ptp(mine) > 0 and np.ptp(theirs) > 0
        rows.append(
            {
                "rater": name,
                "n": len(mine),
                "reliability": _correlation(mine, theirs, method) if usable else None,
            }
        )
    if not rows:
        raise BadInput("No two raters share an item, so nothing can be reliable.")
    out = pl.DataFrame(rows, infer_schema_length=None)
    if cutoff is None:
        return out
    return out.with_columns((pl.col("reliability").fill_null(-1.0) >= cutoff).alias("kept"))


def _lay_out(ratings: Sequence[Sequence[float]]) -> tuple[Vector, Codes, Codes]:
    size = np.array([len(own) for own in ratings], dtype=np.int64)
    if len(size) < 3:
        raise BadInput(f"{len(size)} items are too few for a correlation over items; at least 3 are needed.")
    if size.min() < 2:
        raise BadInput(
            f"Item {int(np.argmin(size))} has {size.min()} ratings; a ceiling needs at least two each."
        )
    values = np.concatenate([np.asarray(own, dtype=np.float64) for own in ratings])
    if not np.isfinite(values).all():
        raise BadInput("A rating is NaN; drop it first.")
    return values, np.repeat(np.arange(len(size)), size), size


def _correlation(a: Vector, b: Vector, method: Method) -> float:
    if method not in ("pearson", "spearman"):
        raise UnknownName("correlation", str(method), ("pearson", "spearman"))
    if method == "spearman":
        a, b = stats.rankdata(a), stats.rankdata(b)
    return float(np.corrcoef(a, b)[0, 1])


def _summary(found: list[float], items: int) -> pl.DataFrame:
    return pl.DataFrame(
        [{"r": float(np.mean(found)), "sd": float(np.std(found)), "items": items, "trials": len(found)}]
    )


def ratings_by_item(frame: Frame, *, item: str = "item", rating: str = "rating") -> list[list[float]]:
    """The ratings of each item, from one row per answer, items in sorted order."""
    table = as_polars(frame)
    codes, _ = level_codes(column(table, item))
    data = pl.DataFrame({"code": codes, "rating": column(table, rating).cast(pl.Float64)})
    return data.group_by("code").agg("rating").sort("code")["rating"].to_list()
