"""Items in their contexts: each stimulus by itself, and behind every context of its group."""

import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.schemas import CONTEXTS, conform
from felicity.core.sweep import BASELINE, SWEEP_REQUESTS, UNPERTURBED


def put_in_context(items: pl.DataFrame, contexts: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Rows of SWEEP_REQUESTS: the baseline of every item, then every item in every context of its group.

    contexts: rows of SWEEP_CONTEXTS; groups: rows of GROUPS, as `assign_groups` gives them. A case is an
    item in one context; all conditions of the item are scored in it.

    Raises NotPossible where items have contexts of their own already.
    """
    if "context_text" in items.columns and items["context_text"].is_not_null().any():
        raise NotPossible(
            "These items stand in contexts of their own; choose a rule that scores whole sentences."
        )
    stimuli = items.select("item", "suite", "condition", "text")
    baseline = stimuli.with_columns(
        pl.col("item").alias("case"),
        pl.lit(None, dtype=pl.String).alias("context"),
        pl.lit(BASELINE).alias("kind"),
        pl.lit(None, dtype=pl.String).alias("source"),
        pl.lit(UNPERTURBED).alias("perturbation"),
        pl.lit(0).alias("draw"),
        pl.lit(None, dtype=pl.String).alias("series"),
        pl.lit(0).alias("length"),
        pl.lit(0).alias("n_tokens"),
    )
    grouped = stimuli.join(groups, on=["suite", "item"], how="inner", maintain_order="left")
    factors = contexts.drop("sentences", "origins", "context_text")
    behind = grouped.join(factors, on=["suite", "group"], how="inner", maintain_order="left_right")
    cased = behind.with_columns(pl.format("{}@{}/{}", "item", "series", "length").alias("case"))
    named = pl.format("{}/{}", "case", "condition").alias("request")
    return pl.concat([conform(part.with_columns(named), SWEEP_REQUESTS) for part in (baseline, cased)])


def list_texts(contexts: pl.DataFrame) -> pl.DataFrame:
    """Rows of CONTEXTS: each text of SWEEP_CONTEXTS once, however many series it stands in."""
    return conform(contexts.unique("context", keep="first", maintain_order=True), CONTEXTS)
