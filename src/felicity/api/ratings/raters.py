"""Which raters to keep: each one's agreement with the others on the same list (Huynh et al. 2022)."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.stats import leave_one_out_reliability


def choose_raters(ratings: pl.DataFrame, *, quota: int, below: float) -> pl.DataFrame:
    """Keep the best `quota` raters of each list, of those whose reliability is not below a bound.

    ratings: one row per rating with rater, list, item, condition, role, rating. Reliability is the Spearman
    correlation of a rater with the mean of all other raters of the list.

    Gives one row per rater: list, rater, n, reliability (null if it cannot be computed), kept. Lists that
    fewer than `quota` raters have finished are not judged yet and left out.

    Raises BadInput if there are no numbers to compare.
    """
    targets = ratings.filter(pl.col("role") == "target", pl.col("rating").is_not_null())
    if targets.is_empty():
        raise BadInput("There are no numeric ratings of finished raters, so nobody can be compared.")
    cell = pl.concat_str("item", "condition", separator="\0").alias("cell")
    found = []
    for (name,), part in targets.with_columns(cell).group_by("list", maintain_order=True):
        if part["rater"].n_unique() < max(quota, 2):
            continue
        table = leave_one_out_reliability(part, item="cell")
        best = table.sort("reliability", descending=True, nulls_last=True)
        rank = pl.int_range(pl.len()).alias("rank")
        kept = (pl.col("rank") < quota) & (pl.col("reliability").fill_null(-1.0) >= below)
        chosen = best.with_columns(rank).with_columns(kept.alias("kept"))
        found.append(chosen.select(pl.lit(str(name)).alias("list"), "rater", "n", "reliability", "kept"))
    schema = {
        "list": pl.String,
        "rater": pl.String,
        "n": pl.Int64,
        "reliability": pl.Float64,
        "kept": pl.Boolean,
    }
    return pl.concat([pl.DataFrame(schema=schema), *(frame.cast(schema) for frame in found)])  # type: ignore[arg-type]
