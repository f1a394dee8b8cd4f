"""Raw ratings made fit for use, every step counted.

The steps of Lau et al. (2020) for crowd ratings, each a function from ratings to ratings, run in one
order and reported in one table. The rules are not idempotent (dropping outliers makes new ones), so
cleaning marks its output, and ratings cleaned before are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from felicity.core.errors import BadInput
from felicity.stats.frames import Frame, as_polars, column

CLEANED = "cleaned"
Step = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class CleanedRatings:
    """The ratings left, and per step: raters and ratings before, dropped and changed."""

    ratings: pl.DataFrame
    steps: pl.DataFrame


def clean_ratings(
    frame: Frame,
    *,
    control: str | None = None,
    least_control: float = 3.0,
    check: str | None = None,
    calibrate: float | None = 1.0,
    outliers: float | None = 2.0,
) -> CleanedRatings:
    """Clean one row per answer, with columns rater, item, rating.

    control: a true/false column of items that everybody should rate high (originals among machine
        translations); raters whose mean on them is below `least_control` are dropped.
    check: a true/false column of attention checks passed; raters with any failure are dropped.
    calibrate: raters whose mean is further than this from the mean of all raters' means are shifted
        by as much towards it (Lau et al. shift by 1.0); None leaves them.
    outliers: ratings further than this many standard deviations from their item's mean are dropped;
        None keeps them.

    Raises BadInput for ratings cleaned before, gaps, double answers, and when nothing is left.
    """
    table = as_polars(frame)
    if CLEANED in table.columns:
        raise BadInput("These ratings have been cleaned already, and the rules do not bear repeating.")
    for name in ("rater", "item", "rating", *filter(None, (control, check))):
        column(table, name)
    if table.select(pl.struct("rater", "item").is_duplicated().any()).item():
        raise BadInput("A rater has rated the same item twice; keep one rating of each.")
    data = table.with_columns(pl.col("rating").cast(pl.Float64))
    steps: list[tuple[str, Step]] = []
    if control is not None:
        steps.append((f"raters below {least_control:g} on controls", drop_careless(control, least_control)))
    if check is not None:
        steps.append(("raters who failed a check", drop_failed(check)))
    if calibrate is not None:
        steps.append((f"raters shifted by {calibrate:g}", calibrate_raters(calibrate)))
    if outliers is not None:
        steps.append((f"ratings beyond {outliers:g} SD of their item", drop_outliers(outliers)))
    rows = []
    for name, step in steps:
        after = step(data)
        rows.append(_count(name, data, after))
        if not after.height:
            raise BadInput(f"Nothing is left after the step '{name}'; check its column or its bound.")
        data = after
    schema = {"step": pl.String, "raters": pl.Int64, "ratings": pl.Int64}
    schema |= {"raters_dropped": pl.Int64, "ratings_dropped": pl.Int64, "ratings_changed": pl.Int64}
    return CleanedRatings(data.with_columns(pl.lit(True).alias(CLEANED)), pl.DataFrame(rows, schema=schema))


def drop_careless(control: str, least: float) -> Step:
    """A step that drops raters whose mean on control items is below `least`."""
    own = pl.col("rating").filter(pl.col(control).cast(pl.Boolean)).mean().over("rater")
    return lambda data: data.filter(own.fill_null(least) >= least)


def drop_failed(check: str) -> Step:
    """A step that drops raters who failed any check."""
    return lambda data: data.filter(pl.col(check).cast(pl.Boolean).all().over("rater"))


def calibrate_raters(bound: float) -> Step:
    """A step that shifts raters by `bound` whose mean is more than `bound` from the mean of means."""

    def step(data: pl.DataFrame) -> pl.DataFrame:
        means = data.group_by("rater").agg(pl.col("rating").mean())
        centre = means["rating"].mean()
        gap = pl.col("rating").mean().over("rater") - centre
        shift = pl.when(gap > bound).then(-bound).when(gap < -bound).then(bound).otherwise(0.0)
        return data.with_columns(pl.col("rating") + shift)

    return step


def drop_outliers(bound: float) -> Step:
    """A step that drops ratings more than `bound` standard deviations from their item's mean."""
    gap = (pl.col("rating") - pl.col("rating").mean().over("item")).abs()
    # The standard deviation of the ratings at hand, not of a population they are drawn from.
    sd = pl.col("rating").std(ddof=0).over("item")
    return lambda data: data.filter(gap <= bound * sd)


def standardize_raters(frame: Frame) -> pl.DataFrame:
    """The ratings with a column z: in standard deviations of their own rater.

    Raises BadInput naming a rater who never varies.
    """
    table = as_polars(frame)
    for name in ("rater", "rating"):
        column(table, name)
    own = pl.col("rating").cast(pl.Float64)
    flat = table.group_by("rater").agg(own.std().alias("sd")).filter(pl.col("sd").fill_null(0.0) == 0.0)
    if flat.height:
        raise BadInput(f"Rater '{flat['rater'][0]}' gives one rating throughout; drop this rater first.")
    return table.with_columns(((own - own.mean().over("rater")) / own.std().over("rater")).alias("z"))


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
