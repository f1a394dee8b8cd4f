"""Rank agreement with ratings: how often a score orders two stimuli as people's ratings do."""

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import JUDGEMENTS, conform

BLOCK = 512


def judge_ratings(items: pl.DataFrame, requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """One judgement per stimulus and measure, among the stimuli of the same condition.

    `passed` is the share of the stimuli with a different rating that the score orders as the rating does;
    equal scores count one half. Its mean is Kendall's concordance, and for two ratings the area under the
    curve. `margin` is that share minus one half. A stimulus with no different ratings is not judged.

    Raises BadInput naming an item whose score or rating is not a number.
    """
    rated = items.select("item", "suite", "phenomenon", "condition", "rating")
    valued = requests.select("request", "item", "condition").join(scores, on="request")
    whole = rated.join(valued, on=["item", "condition"], maintain_order="left")
    unclear = whole.filter(pl.col("value").is_nan() | pl.col("rating").is_nan())
    if len(unclear):
        raise BadInput(f"Item '{unclear['item'][0]}' has a score or rating that is not a number.")
    judged = [
        part.with_columns(
            pl.Series("passed", find_concordance(part["rating"].to_numpy(), part["value"].to_numpy())),
            pl.lit(f"rating/{condition}").alias("rule"),
        )
        for (condition, _), part in whole.group_by("condition", "measure", maintain_order=True)
    ]
    judgements = pl.concat(judged).filter(pl.col("passed").is_not_nan())
    margin = pl.col("passed") - 0.5
    return conform(judgements.with_columns(margin.alias("margin"), pl.lit(True).alias("stable")), JUDGEMENTS)


def find_concordance(ratings: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each stimulus, the share of the others ordered alike; NaN if all ratings are equal.

    >>> find_concordance(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.3, 0.2])).tolist()
    [1.0, 0.5, 0.5]
    """
    shares = np.empty(len(ratings))
    for begin in range(0, len(ratings), BLOCK):
        rows = slice(begin, begin + BLOCK)
        rating = np.sign(ratings[rows, None] - ratings[None, :])
        # By comparing, not by subtracting: two scores of minus infinity are level.
        value = (values[rows, None] > values[None, :]) * 1.0 - (values[rows, None] < values[None, :])
        others = (rating != 0).sum(axis=1)
        alike = ((rating != 0) * (1 + rating * value) / 2).sum(axis=1)
        shares[rows] = np.divide(alike, others, out=np.full(len(others), np.nan), where=others > 0)
    return shares
