"""Accuracy, its change and perplexity margins by kind and length of context: the lines of the figures."""

import numpy as np
import polars as pl

from felicity.core.schemas import conform
from felicity.stats.frames import Vector
from felicity.studies.context.intervals import (
    difference_interval,
    mark_clusters,
    reach_over_clusters,
    student_reach,
    widen,
    wilson_intervals,
)
from felicity.studies.context.pairing import CELL, pair_with_baseline
from felicity.studies.context.tables import CURVES, order_kinds, order_seen

LEVELS = {"overall": pl.lit("all"), "phenomenon": pl.col("phenomenon"), "suite": pl.col("suite")}


def draw_curves(judgements: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Rows of CURVES: overall, by phenomenon and by suite, for every kind and length of context.

    A change is the mean over items of accuracy in context (the mean of an item's draws) less accuracy
    without. Only items that a length was reached for count at that length, on both sides.

    Raises BadInput as `pair_with_baseline` does.
    """
    units = pair_with_baseline(judgements)
    levels = [
        units.with_columns(pl.lit(level).alias("level"), name.alias("name")) for level, name in LEVELS.items()
    ]
    curves = pl.concat([_estimate(level, seed) for level in levels])
    models, names = (order_seen(curves, column) for column in ("model", "name"))
    level = pl.col("level").replace_strict({name: i for i, name in enumerate(LEVELS)}, return_dtype=pl.UInt32)
    ordered = curves.sort(models, level, names, order_kinds(), "source", "perturbation", "length")
    return conform(ordered, CURVES)


def _estimate(units: pl.DataFrame, seed: int) -> pl.DataFrame:
    marked = mark_clusters(units, ["model", "name", *CELL])
    # By cell number, so that what is computed outside the frame falls into place.
    cells = (
        marked.group_by("cell")
        .agg(
            *(pl.col(name).first() for name in ("model", "level", "name", *CELL, "drawn")),
            pl.len().alias("n"),
            pl.col("suite").n_unique().alias("suites"),
            pl.col("passed").mean().alias("accuracy"),
            pl.col("base").mean(),
            pl.col("delta").mean(),
            pl.col("delta").sum().alias("delta_sum"),
            pl.col("delta").pow(2).sum().alias("delta_squares"),
            pl.col("ties", "unstable").sum(),
            pl.col("tokens").mean(),
            pl.col("ppl_margin").mean(),
            pl.col("ppl_margin").count().alias("ppl_n"),
            pl.col("ppl_margin").std().fill_null(0.0).alias("ppl_sd"),
        )
        .sort("cell")
    )
    intervals = {
        **_accuracy_interval(cells, reach_over_clusters(marked, "passed", cells.height, seed=seed)),
        **_delta_interval(cells, reach_over_clusters(marked, "delta", cells.height, seed=seed)),
        **_margin_interval(cells, reach_over_clusters(marked, "ppl_margin", cells.height, seed=seed)),
    }
    ratio = pl.when(pl.col("base") > 0).then(pl.col("accuracy") / pl.col("base") - 1)
    return cells.with_columns(
        ratio.alias("ratio"), *(pl.Series(name, ends, nan_to_null=True) for name, ends in intervals.items())
    )


def _accuracy_interval(cells: pl.DataFrame, reach: Vector) -> dict[str, Vector]:
    share, n = cells["accuracy"].to_numpy(), cells["n"].to_numpy()
    low, high = widen(share, reach, wilson_intervals(share * n, n), (0.0, 1.0))
    return {"low": low, "high": high}


def _delta_interval(cells: pl.DataFrame, reach: Vector) -> dict[str, Vector]:
    n = cells["n"].to_numpy().astype(np.float64)
    floor = difference_interval(cells["delta_sum"].to_numpy(), cells["delta_squares"].to_numpy(), n)
    low, high = widen(cells["delta"].to_numpy(), reach, floor, (-1.0, 1.0))
    # Without a context nothing can change, and there is no doubt about it.
    bare = cells["kind"].to_numpy() == "none"
    return {"delta_low": np.where(bare, 0.0, low), "delta_high": np.where(bare, 0.0, high)}


def _margin_interval(cells: pl.DataFrame, reach: Vector) -> dict[str, Vector]:
    sizes = cells["ppl_n"].to_numpy().astype(np.float64)
    half = np.maximum(reach, student_reach(cells["ppl_sd"].to_numpy(), sizes))
    mean = cells["ppl_margin"].fill_null(np.nan).to_numpy()
    return {"ppl_low": mean - half, "ppl_high": mean + half}
