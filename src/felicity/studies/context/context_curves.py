"""Accuracy by kind and length of context, compared with the baseline, and the suites that change most."""

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import check_schema, conform
from felicity.core.sweep import BASELINE, FROM_KINDS, UNPERTURBED
from felicity.studies.context.intervals import accuracy_ends, change_ends, half_width, mark_clusters
from felicity.studies.context.sweep_tables import (
    ESTIMATES,
    STUDY_JUDGEMENTS,
    SUITE_CHANGES,
    order_kinds,
    order_seen,
)

ITEM = ["model", "suite", "phenomenon", "item", "rule"]
CELL = ["kind", "source", "perturbation", "length"]
LEVELS = {"overall": pl.lit("all"), "phenomenon": pl.col("phenomenon"), "suite": pl.col("suite")}
SUITE_CELL = ["model", "kind", "suite", "phenomenon"]
# What answers gain and lose, on average: their difference is the mean change.
CHANGES = (
    pl.col("delta").clip(lower_bound=0.0).mean().alias("gained"),
    pl.col("delta").clip(upper_bound=0.0).neg().mean().alias("lost"),
)


def pair_with_baseline(judgements: pl.DataFrame) -> pl.DataFrame:
    """One row per item and kind, source, perturbation and length of context, with draws averaged.

    Adds `base` (the item's accuracy without context), `delta`, and `series`, which items with the
    same contexts share. `judged`, `ties` and `unstable` count judgements before averaging. The baseline
    itself has the kind `none`, with delta 0.

    Raises BadInput for judgements of several measures, and for an item judged never or twice without
    context.
    """
    judged = check_judgements(judgements)
    bare = judged.filter(pl.col("kind") == BASELINE)
    twice = bare.filter(pl.struct(ITEM).is_duplicated())
    if twice.height:
        raise BadInput(
            f"Item '{twice['item'][0]}' is judged twice without context; keep one judgement of it."
        )
    units = judged.group_by(*ITEM, *CELL, maintain_order=True).agg(
        pl.col("passed").mean(),
        pl.len().alias("judged"),
        (~pl.col("passed").is_in([0.0, 1.0])).sum().alias("ties"),
        (~pl.col("stable")).sum().alias("unstable"),
        pl.col("n_tokens").cast(pl.Float64).mean().alias("tokens"),
        pl.when(pl.col("ppl_margin").is_finite()).then("ppl_margin").mean().alias("ppl_margin"),
        # Items of one group have the same series, so any one of them represents all.
        pl.col("series").min(),
    )
    base = bare.select(*ITEM, pl.col("passed").alias("base"))
    paired = units.join(base, on=ITEM, how="left", maintain_order="left")
    lonely = paired.filter(pl.col("base").is_null())
    if lonely.height:
        raise BadInput(
            f"Item '{lonely['item'][0]}' is judged with a context but not without; "
            f"a change in accuracy needs both."
        )
    return paired.with_columns((pl.col("passed") - pl.col("base")).alias("delta"))


def check_judgements(judgements: pl.DataFrame) -> pl.DataFrame:
    """Check that the judgements are those of a context study with one measure.

    Raises BadInput.
    """
    check_schema(judgements, STUDY_JUDGEMENTS, "judgements in context")
    measures = judgements["measure"].unique().sort().to_list()
    if len(measures) > 1:
        raise BadInput(f"The judgements are by {' and '.join(measures)}; analyse one measure at a time.")
    return judgements


def share_contexts(judgements: pl.DataFrame) -> bool:
    """Whether several items share a context, which is then a random effect of its own."""
    readers = judgements.filter(pl.col("kind") != BASELINE).group_by("series")
    return bool((readers.agg(pl.col("item").n_unique())["item"] > 1).any())


def draw_curves(judgements: pl.DataFrame) -> pl.DataFrame:
    """Rows of ESTIMATES: overall, by phenomenon and by suite, for every kind and length of context.

    A change is the mean over items of accuracy in context (the mean of an item's draws) minus accuracy
    without. Only items that reach a length count at that length, on both sides.

    Raises BadInput as `pair_with_baseline` does.
    """
    units = pair_with_baseline(judgements)
    levels = [
        units.with_columns(pl.lit(level).alias("level"), name.alias("name")) for level, name in LEVELS.items()
    ]
    curves = pl.concat([_estimate(level) for level in levels])
    models, names = (order_seen(curves, column) for column in ("model", "name"))
    level = pl.col("level").replace_strict({name: i for i, name in enumerate(LEVELS)}, return_dtype=pl.Int64)
    ordered = curves.sort(models, level, names, order_kinds(), "source", "perturbation", "length")
    return conform(ordered, ESTIMATES)


def _estimate(units: pl.DataFrame) -> pl.DataFrame:
    marked = mark_clusters(units, ["model", "name", *CELL])
    # By cell number, so that values computed outside the frame are in the right order.
    cells = (
        marked.group_by("cell", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in ("model", "level", "name", *CELL, "drawn")),
            pl.len().alias("n"),
            pl.col("suite").n_unique().alias("suites"),
            pl.col("passed").mean().alias("accuracy"),
            pl.col("base").mean(),
            pl.col("delta").mean(),
            *CHANGES,
            # The draws of an item are averaged, so that items count alike.
            (pl.len().cast(pl.Float64) ** 2 / (1 / pl.col("judged")).sum()).alias("answers"),
            pl.col("ties", "unstable").sum(),
            pl.col("tokens").mean(),
            pl.col("ppl_margin").mean(),
        )
        .sort("cell")
    )
    low, high = accuracy_ends(marked, cells)
    # Without a context nothing changes, so the interval is zero.
    changed = cells["kind"].to_numpy() != BASELINE
    delta_low, delta_high = (np.where(changed, end, 0.0) for end in change_ends(marked, cells))
    mean, half = (
        cells["ppl_margin"].fill_null(np.nan).to_numpy(),
        half_width(marked, "ppl_margin", cells.height),
    )
    ends = {"low": low, "high": high, "delta_low": delta_low, "delta_high": delta_high}
    ends |= {"ppl_low": mean - half, "ppl_high": mean + half}
    ratio = pl.when(pl.col("base") > 0).then(pl.col("accuracy") / pl.col("base") - 1)
    return cells.with_columns(
        ratio.alias("ratio"), *(pl.Series(name, end, nan_to_null=True) for name, end in ends.items())
    )


def rank_suite_changes(judgements: pl.DataFrame, *, perturbation: str = UNPERTURBED) -> pl.DataFrame:
    """Rows of SUITE_CHANGES, the largest rise of each model and kind first.

    The change at each length is averaged over lengths; the SD is that of those changes, as a
    population SD. The interval is over items (or the contexts they share), each with its mean
    change over lengths.

    Raises BadInput as `pair_with_baseline` does.
    """
    units = pair_with_baseline(judgements).filter(
        pl.col("kind") != BASELINE, ~pl.col("kind").is_in(list(FROM_KINDS)), perturbation=perturbation
    )
    lengths = units.group_by(*SUITE_CELL, "length", maintain_order=True).agg(pl.col("delta").mean())
    changes = lengths.group_by(SUITE_CELL, maintain_order=True).agg(
        pl.len().alias("lengths"),
        pl.col("delta").mean().alias("mean"),
        pl.col("delta").std(ddof=0).alias("sd"),
    )
    suites = changes.join(_over_items(units), on=SUITE_CELL)
    # The mean over lengths and that over items differ if not every item has every length.
    shift = pl.col("mean") - pl.col("item_mean")
    ends = [(pl.col(name) + shift).clip(-1.0, 1.0).alias(name) for name in ("low", "high")]
    ordered = suites.with_columns(ends).sort(
        order_seen(units, "model"), order_kinds(), pl.col("mean").neg(), "suite", maintain_order=True
    )
    return conform(ordered, SUITE_CHANGES)


def _over_items(units: pl.DataFrame) -> pl.DataFrame:
    """Number of items, mean and interval of each suite's items' mean changes.

    An item counts as one answer, at however many lengths it is judged.
    """
    items = units.group_by(
        *SUITE_CELL, *(name for name in ITEM if name not in SUITE_CELL), maintain_order=True
    ).agg(pl.col("delta").mean(), pl.col("series").first())
    marked = mark_clusters(items, SUITE_CELL)
    cells = (
        marked.group_by("cell", *SUITE_CELL, maintain_order=True)
        .agg(
            pl.len().alias("n"),
            pl.len().cast(pl.Float64).alias("answers"),
            pl.col("delta").mean().alias("item_mean"),
            *CHANGES,
        )
        .sort("cell")
    )
    low, high = change_ends(marked, cells)
    return cells.with_columns(pl.Series("low", low), pl.Series("high", high))
