"""Pair preference: which of the two the model finds better, by how much, and whether that is sure."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import JUDGEMENTS, conform

RULE = "pair"


def judge_pairs(items: pl.DataFrame, requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """One judgement per item and measure: good over bad.

    A tie is a margin of exactly zero and passes by half. A judgement is stable when its margin is
    larger than what numerical noise could make of it.

    Raises BadInput naming an item that lacks one of its two sentences or scores.
    """
    labels = items.select("item", "suite", "phenomenon").unique(maintain_order=True)
    valued = requests.select("request", "item", "condition").join(scores, on="request", how="inner")
    sides = {
        condition: valued.filter(pl.col("condition") == condition).select(
            "item", "measure", pl.col("value").alias(condition), pl.col("error").alias(f"{condition}_error")
        )
        for condition in ("good", "bad")
    }
    measures = scores.select("measure").unique(maintain_order=True)
    paired = (
        labels.join(measures, how="cross")
        .join(sides["good"], on=["item", "measure"], how="left")
        .join(sides["bad"], on=["item", "measure"], how="left")
    )
    _refuse_gaps(paired)
    margin = pl.col("good") - pl.col("bad")
    judged = paired.with_columns(
        pl.lit(RULE).alias("rule"),
        pl.when(margin > 0).then(1.0).when(margin < 0).then(0.0).otherwise(0.5).alias("passed"),
        margin.alias("margin"),
        (margin.abs() > pl.col("good_error") + pl.col("bad_error")).alias("stable"),
    )
    return conform(judged, JUDGEMENTS)


def _refuse_gaps(paired: pl.DataFrame) -> None:
    gaps = paired.filter(pl.col("good").is_null() | pl.col("bad").is_null())
    if len(gaps):
        raise BadInput(f"Item '{gaps['item'][0]}' lacks a score for 'good' or 'bad'; a pair needs both.")
    unclear = paired.filter(pl.col("good").is_nan() | pl.col("bad").is_nan())
    if len(unclear):
        raise BadInput(f"Item '{unclear['item'][0]}' has a score that is not a number.")
