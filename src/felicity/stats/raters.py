"""Human ratings: upper bounds of correlation, reliability of raters, and cleaning with a report.

The cleaning steps of Lau et al. (2020) for crowd ratings, each a function from ratings to ratings, run in one
order and reported in one table. Their bounds were stated for a scale from 1 to 4; here they are shares of the
range, and no rating leaves the scale. The rules are not idempotent (dropping outliers makes new ones), so
cleaning marks its output, and ratings cleaned before are refused.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Codes, Frame, Vector, as_polars, level_codes, take_column

Method = Literal["pearson", "spearman"]
CLEANED = "cleaned"
Scale = tuple[float, float]
# Of a scale from 1 to 4: raters below 3.0 on controls are dropped, those more than 1.0 off shifted by 1.0.
LEAST_CONTROL = 2 / 3
SHIFT = 1 / 3


def one_against_rest(
    ratings: Sequence[Sequence[float]], *, trials: int = 1_000, seed: int = 0, method: Method = "pearson"
) -> pl.DataFrame:
    """UB1: one row with the mean correlation, its SD over trials, items, trials, and 95% of the trials.

    A trial in which all items are rated alike has no correlation and is left out; `trials` counts the others.

    ratings: the ratings of each item. Raises BadInput if an item has fewer than two, or no trial is left.
    """
    values, item, size = _lay_out(ratings)
    rng = np.random.default_rng(seed)
    starts = np.cumsum(size) - size
    totals = np.bincount(item, values)
    correlations = []
    for _ in range(trials):
        chosen = values[starts + rng.integers(0, size)]
        correlations.append(_correlation(chosen, (totals - chosen) / (size - 1), method))
    return _summary(correlations, len(size))


def half_against_half(
    ratings: Sequence[Sequence[float]], *, trials: int = 1_000, seed: int = 0, method: Method = "pearson"
) -> pl.DataFrame:
    """UB2: one row with the mean correlation of random halves, and the further columns of UB1.

    With an odd number of ratings the second half is larger by one.
    """
    values, item, size = _lay_out(ratings)
    rng = np.random.default_rng(seed)
    starts = np.cumsum(size) - size
    totals = np.bincount(item, values)
    half = size // 2
    correlations = []
    for _ in range(trials):
        order = np.lexsort((rng.random(len(values)), item))
        in_first = np.arange(len(values)) - starts[item] < half[item]
        first = np.bincount(item, values[order] * in_first)
        correlations.append(_correlation(first / half, (totals - first) / (size - half), method))
    return _summary(correlations, len(size))


def leave_one_out_reliability(
    frame: Frame,
    *,
    rater: str = "rater",
    item: str = "item",
    rating: str = "rating",
    method: Method = "spearman",
    cutoff: float | None = None,
) -> pl.DataFrame:
    """One row per rater: n, reliability (correlation with the mean of the others on the same items).

    reliability is null for a rater who never varies or shares fewer than three items. With a cutoff
    there is a column `kept`.
    """
    table = as_polars(frame)
    names = {"rater": rater, "item": item, "rating": rating}
    data = pl.DataFrame({new: take_column(table, old) for new, old in names.items()})
    if data.select(pl.struct("rater", "item").is_duplicated().any()).item():
        raise BadInput("A rater has rated the same item twice; keep one rating of each.")
    score = pl.col("rating").cast(pl.Float64)
    others = (score.sum().over("item") - score) / (pl.len().over("item") - 1)
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
        raise BadInput("No two raters share an item, so reliability cannot be computed.")
    out = pl.DataFrame(rows, infer_schema_length=None)
    if cutoff is None:
        return out
    return out.with_columns((pl.col("reliability").fill_null(-1.0) >= cutoff).alias("kept"))


def _lay_out(ratings: Sequence[Sequence[float]]) -> tuple[Vector, Codes, Codes]:
    size = np.array([len(row) for row in ratings], dtype=np.int64)
    if len(size) < 3:
        raise BadInput(f"{len(size)} items are too few for a correlation over items; at least 3 are needed.")
    if size.min() < 2:
        raise BadInput(
            f"Item {int(np.argmin(size))} has {size.min()} ratings; an upper bound needs at least two each."
        )
    values = np.concatenate([np.asarray(row, dtype=np.float64) for row in ratings])
    if not np.isfinite(values).all():
        raise BadInput("A rating is NaN; drop it first.")
    return values, np.repeat(np.arange(len(size)), size), size


def _correlation(a: Vector, b: Vector, method: Method) -> float:
    if method not in ("pearson", "spearman"):
        raise UnknownName("correlation", str(method), ("pearson", "spearman"))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    if method == "spearman":
        a, b = stats.rankdata(a), stats.rankdata(b)
    return float(np.corrcoef(a, b)[0, 1])


def _summary(correlations: list[float], items: int) -> pl.DataFrame:
    """Mean, SD and quantiles over the trials that have a correlation.

    Raises BadInput if none has: the ratings do not differ between items.
    """
    defined = [one for one in correlations if not math.isnan(one)]
    if not defined:
        raise BadInput("All items are rated alike in every trial, so there is no correlation over items.")
    low, high = np.quantile(defined, (0.025, 0.975))
    mean, sd = float(np.mean(defined)), float(np.std(defined))
    row = {
        "r": mean,
        "sd": sd,
        "items": items,
        "trials": len(defined),
        "low": float(low),
        "high": float(high),
    }
    return pl.DataFrame([row])


def find_ceilings(
    ratings: Sequence[Sequence[float]], *, trials: int = 1_000, seed: int = 0
) -> tuple[pl.DataFrame, list[str]]:
    """UB1 and UB2 of the ratings of each item: a column `bound` and those of UB1, and why one is missing.

    They do not depend on the order of items and answers.
    """
    ordered = sorted(sorted(map(float, values)) for values in ratings)
    rows, missing = [pl.DataFrame(schema={"bound": pl.String})], []
    for bound, compute in {"UB1": one_against_rest, "UB2": half_against_half}.items():
        try:
            ceilings = compute(ordered, trials=trials, seed=seed)
        except BadInput as error:
            missing.append(f"{bound}: {error}")
        else:
            rows.append(ceilings.select(pl.lit(bound).alias("bound"), pl.all()))
    return pl.concat(rows, how="diagonal"), missing


def ratings_by_item(frame: Frame, *, item: str = "item", rating: str = "rating") -> list[list[float]]:
    """The ratings of each item, from one row per answer, items in sorted order."""
    table = as_polars(frame)
    codes, _ = level_codes(take_column(table, item))
    data = pl.DataFrame({"code": codes, "rating": take_column(table, rating).cast(pl.Float64)})
    return data.group_by("code").agg("rating").sort("code")["rating"].to_list()


Step = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class CleanedRatings:
    """The ratings left, and per step: raters and ratings before, dropped and changed."""

    ratings: pl.DataFrame
    steps: pl.DataFrame


def clean_ratings(
    frame: Frame,
    *,
    scale: Scale,
    control: str | None = None,
    least_control: float = LEAST_CONTROL,
    check: str | None = None,
    calibrate: float | None = SHIFT,
    outliers: float | None = 2.0,
) -> CleanedRatings:
    """Clean one row per answer, with columns rater, item, rating.

    scale: the lowest and the highest rating possible. control: a true/false column of items that everybody
        should rate high (originals among machine translations); raters whose mean on them is below the
        share `least_control` of the range (3.0 of 1 to 4) are dropped.
    check: a true/false column of attention checks passed; raters with any failure are dropped.
    calibrate: raters whose mean is further than this share of the range from the mean of all raters' means
        are shifted by as much towards it, but not beyond the ends of the scale; by a whole number if all
        ratings are whole numbers (1.0 of 1 to 4, as Lau et al.; 2 of 1 to 7). None leaves them.
    outliers: ratings further than this many standard deviations from their item's mean are dropped;
        None keeps them.

    Raises BadInput for ratings cleaned before or beyond the scale, gaps, double answers, and when nothing is
    left.
    """
    table = as_polars(frame)
    if CLEANED in table.columns:
        raise BadInput(
            "These ratings are already cleaned, and cleaning twice would drop more; use the original ratings."
        )
    for name in ("rater", "item", "rating", *filter(None, (control, check))):
        take_column(table, name)
    if table.select(pl.struct("rater", "item").is_duplicated().any()).item():
        raise BadInput("A rater has rated the same item twice; keep one rating of each.")
    data = table.with_columns(pl.col("rating").cast(pl.Float64))
    low, high = scale
    beyond = data.filter(~pl.col("rating").is_between(low, high))
    if beyond.height:
        raise BadInput(f"A rating is {beyond['rating'][0]:g}, beyond the scale of {low:g} to {high:g}.")
    steps: list[tuple[str, Step]] = []
    if control is not None:
        least = low + least_control * (high - low)
        steps.append((f"raters below {least:g} on controls", drop_careless(control, least)))
    if check is not None:
        steps.append(("raters who failed a check", drop_failed(check)))
    if calibrate is not None:
        bound = find_shift(data["rating"], scale, calibrate)
        steps.append((f"raters shifted by {bound:g}", calibrate_raters(bound, scale)))
    if outliers is not None:
        steps.append((f"ratings beyond {outliers:g} SD of their item", drop_outliers(outliers)))
    rows = []
    for name, step in steps:
        after = step(data)
        rows.append(_count(name, data, after))
        if not after.height:
            raise BadInput(f"No ratings are left after the step '{name}'; check its column or its bound.")
        data = after
    schema = {"step": pl.String, "raters": pl.Int64, "ratings": pl.Int64}
    schema |= {"raters_dropped": pl.Int64, "ratings_dropped": pl.Int64, "ratings_changed": pl.Int64}
    return CleanedRatings(data.with_columns(pl.lit(True).alias(CLEANED)), pl.DataFrame(rows, schema=schema))


def drop_careless(control: str, least: float) -> Step:
    """A step that drops raters whose mean on control items is below `least`."""
    mean_of_rater = pl.col("rating").filter(pl.col(control).cast(pl.Boolean)).mean().over("rater")
    return lambda data: data.filter(mean_of_rater.fill_null(least) >= least)


def drop_failed(check: str) -> Step:
    """A step that drops raters who failed any check."""
    return lambda data: data.filter(pl.col(check).cast(pl.Boolean).all().over("rater"))


def find_shift(ratings: pl.Series, scale: Scale, share: float) -> float:
    """A share of a scale's range, in whole points if the ratings are whole numbers.

    >>> find_shift(pl.Series([1, 4]), (1, 4), 1 / 3), find_shift(pl.Series([1, 6]), (1, 7), 1 / 3)
    (1.0, 2.0)
    """
    bound = share * (scale[1] - scale[0])
    whole = bool((ratings == ratings.round()).all())
    return float(max(1, round(bound))) if whole else bound


def calibrate_raters(bound: float, scale: Scale) -> Step:
    """A step that shifts raters by `bound` whose mean is more than `bound` from the mean of means."""

    def step(data: pl.DataFrame) -> pl.DataFrame:
        means = data.group_by("rater").agg(pl.col("rating").mean())
        centre = means["rating"].mean()
        gap = pl.col("rating").mean().over("rater") - centre
        shift = pl.when(gap > bound).then(-bound).when(gap < -bound).then(bound).otherwise(0.0)
        return data.with_columns((pl.col("rating") + shift).clip(*scale))

    return step


def drop_outliers(bound: float) -> Step:
    """A step that drops ratings more than `bound` standard deviations from their item's mean."""
    gap = (pl.col("rating") - pl.col("rating").mean().over("item")).abs()
    # The standard deviation of these ratings, not an estimate for a population.
    sd = pl.col("rating").std(ddof=0).over("item")
    return lambda data: data.filter(gap <= bound * sd)


def standardize_raters(frame: Frame) -> pl.DataFrame:
    """The ratings with a column z: in standard deviations of their own rater.

    Raises BadInput naming a rater who never varies.
    """
    table = as_polars(frame)
    for name in ("rater", "rating"):
        take_column(table, name)
    rating = pl.col("rating").cast(pl.Float64)
    flat = table.group_by("rater").agg(rating.std().alias("sd")).filter(pl.col("sd").fill_null(0.0) == 0.0)
    if flat.height:
        raise BadInput(f"Rater '{flat['rater'][0]}' gives one rating throughout; drop this rater first.")
    return table.with_columns(
        ((rating - rating.mean().over("rater")) / rating.std().over("rater")).alias("z")
    )


def _count(name: str, before: pl.DataFrame, after: pl.DataFrame) -> dict[str, object]:
    keys = ["rater", "item"]
    joined = after.select(*keys, "rating").join(before.select(*keys, pl.col("rating").alias("was")), on=keys)
    return {
        "step": name,
        "raters": before["rater"].n_unique(),
        "ratings": before.height,
        "raters_dropped": before["rater"].n_unique() - after["rater"].n_unique(),
        "ratings_dropped": before.height - after.height,
        "ratings_changed": joined.filter(pl.col("rating") != pl.col("was")).height,
    }
