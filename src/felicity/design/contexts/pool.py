"""The sentences that contexts are drawn from: every stimulus on a side, with its suite and its item."""

import polars as pl

from felicity.core.schemas import TEXT, Schema, conform
from felicity.design.contexts.joining import sentence_key

POOL: Schema = {"sentence": TEXT, "suite": TEXT, "origin": TEXT, "acceptable": pl.Boolean()}


def build_pool(items: pl.DataFrame, sides: pl.DataFrame) -> pl.DataFrame:
    """A row of POOL for each sentence of `items` that `sides` (columns of SIDES) puts on a side.

    A sentence that several items of a suite share stands once. One that stands on both sides of its suite
    (BLiMP has pairs of two identical sentences) is neither, and left out. The order is by suite, side
    and item, whatever the order of `items`.
    """
    joined = items.join(sides, on=["suite", "condition"], how="inner")
    keyed = joined.with_columns(
        pl.Series("key", [sentence_key(text) for text in joined["text"]], dtype=pl.String),
        pl.col("text").alias("sentence"),
        pl.col("item").alias("origin"),
    )
    sided = keyed.filter(pl.col("acceptable").n_unique().over("suite", "key") == 1)
    ordered = sided.sort("suite", "acceptable", "origin", "sentence")
    return conform(ordered.unique(["suite", "acceptable", "key"], keep="first", maintain_order=True), POOL)
