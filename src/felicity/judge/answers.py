"""Answers to prompts as scores of conditions: Yes against No, or an option named in either order.

A condition may have further requests, named after it: `good@counter` is the answer that speaks against it,
`good@swapped` the same answer to a prompt that names the options in the other order.
"""

import polars as pl

from felicity.core.schemas import SCORES, conform

COUNTER, SWAPPED = "counter", "swapped"
SEPARATOR = "@"
# The measure: the log-probability of the answer, minus that of the answer that speaks against it.
ANSWER = "answer"


def name_variant(condition: str, variant: str) -> str:
    """The condition of a further request.

    >>> name_variant("good", COUNTER)
    'good@counter'
    """
    return f"{condition}{SEPARATOR}{variant}"


def keep_conditions(requests: pl.DataFrame) -> pl.DataFrame:
    """The requests that stand for a condition, without those that are named after it."""
    return requests.filter(~pl.col("condition").str.contains(SEPARATOR, literal=True))


def combine_answers(requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """Rows of SCORES, one per item and condition: the mean over orders, minus the answer against it.

    scores: of every request, by log-probability.
    """
    parts = pl.col("condition").str.split_exact(SEPARATOR, 1)
    named = requests.select(
        "item",
        parts.struct.field("field_0").alias("condition"),
        parts.struct.field("field_1").alias("variant"),
        "request",
    ).join(scores.select("request", "value", "error"), on="request", maintain_order="left")
    against = pl.col("variant") == COUNTER
    value = (
        pl.col("value").filter(~against.fill_null(value=False)).mean() - pl.col("value").filter(against).sum()
    )
    combined = named.group_by("item", "condition", maintain_order=True).agg(
        pl.col("request").filter(pl.col("variant").is_null()).first(),
        value.alias("value"),
        pl.col("error").sum(),
    )
    return conform(combined.with_columns(pl.lit(ANSWER).alias("measure")), SCORES)
