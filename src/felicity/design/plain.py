"""Every stimulus as it stands: one request a stimulus, after its context where it has one."""

import polars as pl

from felicity.core.ids import fingerprint
from felicity.core.schemas import CONTEXTS, REQUESTS, conform, empty_table


def build_requests(items: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests and contexts for items; the column `context_text`, where there is one, is the context.

    >>> items = pl.DataFrame({"item": ["a/1"], "condition": ["good"], "text": ["It rains."]})
    >>> build_requests(items)[0]["request"].to_list()
    ['a/1/good']
    """
    contexts = empty_table(CONTEXTS)
    named = items.with_columns(pl.lit(None, dtype=pl.String).alias("context"))
    if "context_text" in items.columns:
        texts = items["context_text"].drop_nulls().unique(maintain_order=True).to_list()
        contexts = pl.DataFrame(
            {"context": [fingerprint(text) for text in texts], "context_text": texts}, schema=CONTEXTS
        )
        named = items.join(contexts, on="context_text", how="left", maintain_order="left")
    requests = named.with_columns(pl.format("{}/{}", "item", "condition").alias("request"))
    return conform(requests, REQUESTS), contexts


def build_prompts(requests: pl.DataFrame, contexts: pl.DataFrame) -> pl.DataFrame:
    """Requests as an engine takes them: with the context's text in place of its id."""
    joined = requests.join(contexts, on="context", how="left", maintain_order="left")
    return joined.select("request", "context_text", "text")
