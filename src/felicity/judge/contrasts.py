"""Preference judgements: whether the condition that should score higher does, over one or several others."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.errors import BadInput
from felicity.core.schemas import JUDGEMENTS, TEXT, Schema, conform

# `error` is how far numerical noise may change the margin.
MARGINS: Schema = {**JUDGEMENTS, "error": pl.Float64()}
# Standard errors within which a margin is not told from zero.
STANDARD_ERRORS = 1.96


def judge_contrasts(
    items: pl.DataFrame,
    requests: pl.DataFrame,
    scores: pl.DataFrame,
    contrasts: Sequence[Contrast] = (PAIR,),
) -> pl.DataFrame:
    """One judgement per item, measure and contrast that applies to the item; `rule` is the contrast's name.

    The margin is the better condition minus the best of the worse ones. A tie is a margin of exactly zero;
    it counts as the chance of choosing correctly among the tied conditions. A judgement is stable if its
    margin exceeds the possible numerical noise (the column `error`: that of the better condition plus the
    largest of the worse ones, any of which noise may make the best). An item that lacks a condition is not
    judged by that contrast.

    Raises BadInput naming an item that lacks a score, or has one that is not a number.
    """
    labels = items.select("item", "suite", "phenomenon").unique(maintain_order=True)
    measures = scores.select("measure").unique(maintain_order=True)
    wanted = requests.select("request", "item", "condition").join(measures, how="cross")
    valued = wanted.join(scores, on=["request", "measure"], how="left")
    _refuse_gaps(valued)
    judged = [_judge(labels, valued, contrast) for contrast in contrasts]
    return conform(pl.concat(judged), MARGINS)


def add_sampling_error(
    judgements: pl.DataFrame,
    requests: pl.DataFrame,
    contrasts: Sequence[Contrast],
    *,
    left_out: np.ndarray,
    measures: Sequence[str],
) -> pl.DataFrame:
    """Judgements with `sampling_error`, the standard error of a margin that was estimated from draws.

    left_out: for each request what is subtracted from its value, without each draw in turn; the standard
    error is the jackknife's. With several worse conditions it is the largest. A judgement of these measures
    is stable if its margin exceeds the numerical noise and 1.96 standard errors; others have a null.
    """
    place = {key: row for row, key in enumerate(requests.select("item", "condition").iter_rows())}
    size = left_out.shape[1]
    rows: list[tuple[str, str, float]] = []
    for contrast in contrasts:
        for item in judgements.filter(rule=contrast.name)["item"].unique(maintain_order=True):
            better = left_out[place[item, contrast.better]]
            shifts = np.array([left_out[place[item, worse]] - better for worse in contrast.worse])
            spread = ((shifts - shifts.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
            rows.append((item, contrast.name, float(np.sqrt((size - 1) / size * spread).max())))
    errors = pl.DataFrame(
        rows, schema={"item": TEXT, "rule": TEXT, "sampling_error": pl.Float64()}, orient="row"
    )
    drawn = pl.col("measure").is_in(list(measures))
    within = pl.col("error") + STANDARD_ERRORS * pl.col("sampling_error").fill_null(0.0)
    return (
        judgements.join(errors, on=["item", "rule"], how="left", maintain_order="left")
        .with_columns(pl.when(drawn).then("sampling_error").alias("sampling_error"))
        .with_columns((pl.col("margin").abs() > within).alias("stable"))
    )


def _judge(labels: pl.DataFrame, valued: pl.DataFrame, contrast: Contrast) -> pl.DataFrame:
    if contrast.phenomenon is not None:
        labels = labels.filter(pl.col("phenomenon") == contrast.phenomenon)
    better = valued.filter(pl.col("condition") == contrast.better).select(
        "item", "measure", pl.col("value").alias("better"), pl.col("error").alias("better_error")
    )
    others = valued.filter(pl.col("condition").is_in(contrast.worse))
    worse = (
        others.group_by("item", "measure", maintain_order=True)
        .agg(
            pl.col("value").max().alias("worse"),
            pl.col("error").max().alias("worse_error"),
            (pl.col("value") == pl.col("value").max()).sum().alias("level"),
            pl.col("condition").n_unique().alias("found"),
        )
        .filter(pl.col("found") == len(contrast.worse))
    )
    both = better.join(worse, on=["item", "measure"])
    measures = valued.select("measure").unique(maintain_order=True)
    higher, lower = pl.col("better") > pl.col("worse"), pl.col("better") < pl.col("worse")
    # Two scores of minus infinity are level; their difference would not be a number.
    level = pl.col("better") == pl.col("worse")
    margin = pl.when(level).then(0.0).otherwise(pl.col("better") - pl.col("worse"))
    return (
        labels.join(measures, how="cross", maintain_order="left")
        .join(both, on=["item", "measure"], maintain_order="left")
        .with_columns(
            pl.lit(contrast.name).alias("rule"),
            pl.when(higher)
            .then(1.0)
            .when(lower)
            .then(0.0)
            .otherwise(1 / (1 + pl.col("level")))
            .alias("passed"),
            margin.alias("margin"),
            (pl.col("better_error") + pl.col("worse_error")).alias("error"),
        )
        .with_columns((pl.col("margin").abs() > pl.col("error")).alias("stable"))
        .select(list(MARGINS))
    )


def _refuse_gaps(valued: pl.DataFrame) -> None:
    gaps = valued.filter(pl.col("value").is_null())
    if len(gaps):
        item, condition = gaps.row(0, named=True)["item"], gaps["condition"][0]
        raise BadInput(f"Item '{item}' lacks a score for '{condition}'; a judgement needs all of them.")
    unclear = valued.filter(pl.col("value").is_nan())
    if len(unclear):
        raise BadInput(f"Item '{unclear['item'][0]}' has a score that is not a number.")
