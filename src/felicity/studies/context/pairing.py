"""Each item in context beside the same item without: what every later number is a mean of."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import check_schema
from felicity.core.sweep import BASELINE
from felicity.studies.context.tables import STUDY_JUDGEMENTS

ITEM = ["model", "suite", "phenomenon", "item", "rule"]
CELL = ["kind", "source", "perturbation", "length"]


def pair_with_baseline(judgements: pl.DataFrame) -> pl.DataFrame:
    """One row an item and kind, source, perturbation and length of context, the draws averaged.

    Adds `base` (the item's accuracy without context), `delta`, and `series`, which items that read the
    same contexts have in common. `ties` and `unstable` count judgements before averaging. The baseline
    itself is there as kind `none`, with delta 0.

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
        (~pl.col("passed").is_in([0.0, 1.0])).sum().alias("ties"),
        (~pl.col("stable")).sum().alias("unstable"),
        pl.col("n_tokens").cast(pl.Float64).mean().alias("tokens"),
        pl.when(pl.col("ppl_margin").is_finite()).then("ppl_margin").mean().alias("ppl_margin"),
        # Items of one group read the same series, so that any one of them stands for all.
        pl.col("series").min(),
    )
    base = bare.select(*ITEM, pl.col("passed").alias("base"))
    paired = units.join(base, on=ITEM, how="left", maintain_order="left")
    lonely = paired.filter(pl.col("base").is_null())
    if lonely.height:
        raise BadInput(
            f"Item '{lonely['item'][0]}' is judged in context but not without; "
            f"a change in accuracy needs both."
        )
    return paired.with_columns((pl.col("passed") - pl.col("base")).alias("delta"))


def check_judgements(judgements: pl.DataFrame) -> pl.DataFrame:
    """The judgements, where they are those of a context study with one measure.

    Raises BadInput.
    """
    check_schema(judgements, STUDY_JUDGEMENTS, "judgements in context")
    measures = judgements["measure"].unique().sort().to_list()
    if len(measures) > 1:
        raise BadInput(f"The judgements are by {' and '.join(measures)}; analyse one measure at a time.")
    return judgements


def share_contexts(judgements: pl.DataFrame) -> bool:
    """Whether several items read the same context: it is then a random effect of its own."""
    readers = judgements.filter(pl.col("kind") != BASELINE).group_by("series")
    return bool((readers.agg(pl.col("item").n_unique())["item"] > 1).any())
