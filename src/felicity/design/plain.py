"""Every stimulus by itself: one request a stimulus, no context."""

import polars as pl

from felicity.core.schemas import CONTEXTS, REQUESTS, conform, empty_table


def build_requests(items: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests and contexts for items scored without context.

    >>> items = pl.DataFrame({"item": ["a/1"], "condition": ["good"], "text": ["It rains."]})
    >>> build_requests(items)[0]["request"].to_list()
    ['a/1/good']
    """
    requests = items.select(
        pl.format("{}/{}", "item", "condition").alias("request"),
        "item",
        "condition",
        pl.lit(None, dtype=pl.String).alias("context"),
        "text",
    )
    return conform(requests, REQUESTS), empty_table(CONTEXTS)


def build_prompts(requests: pl.DataFrame, contexts: pl.DataFrame) -> pl.DataFrame:
    """Requests as an engine takes them: with the context's text in place of its id."""
    return requests.join(contexts, on="context", how="left").select("request", "context_text", "text")
