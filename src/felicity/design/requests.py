"""From items to requests and prompts: each stimulus alone or after its contexts."""

import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.ids import fingerprint
from felicity.core.schemas import CONTEXTS, REQUESTS, conform, empty_table
from felicity.core.sweep import BASELINE, SWEEP_REQUESTS, UNPERTURBED

ARTICLES = ("a", "an")


def build_requests(items: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests and contexts for items; the column `context_text`, if present, is the context.

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
    """Requests as an engine expects them: with the context's text instead of its id."""
    joined = requests.join(contexts, on="context", how="left", maintain_order="left")
    return joined.select("request", "context_text", "text")


def cross_targets(items: pl.DataFrame) -> pl.DataFrame:
    """Items with further rows: condition `x:y` is the frame of condition x with the target of condition y.

    The article before a target changes with the target. Items whose two targets are the same word are left
    unchanged, since there is nothing to compare.
    """
    made = []
    for (_,), pair in items.group_by("item", maintain_order=True):
        rows = pair.to_dicts()
        made += rows
        if len(rows) != 2 or rows[0]["text"] == rows[1]["text"]:
            continue
        for row, other in (rows, rows[::-1]):
            made.append(
                row
                | {
                    "condition": f"{row['condition']}:{other['condition']}",
                    "context_text": _with_article(row["context_text"], other["context_text"]),
                    "text": other["text"],
                }
            )
    return pl.DataFrame(made, schema=items.schema)


def _with_article(frame: str, other: str) -> str:
    """A frame with the final article of the other frame, if both end in one.

    >>> _with_article("A cat is an", "A cat is not a")
    'A cat is a'
    """
    head, _, article = frame.rpartition(" ")
    wanted = other.rpartition(" ")[2]
    return f"{head} {wanted}" if article in ARTICLES and wanted in ARTICLES else frame


def put_in_context(items: pl.DataFrame, contexts: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Rows of SWEEP_REQUESTS: the baseline of every item, then every item in every context of its group.

    contexts: rows of SWEEP_CONTEXTS; groups: rows of GROUPS, as returned by `assign_groups`. A case is an
    item in one context; all conditions of the item are scored in it.

    Raises NotPossible if the items have contexts of their own.
    """
    if "context_text" in items.columns and items["context_text"].is_not_null().any():
        raise NotPossible(
            "These items have contexts of their own; choose a rule that scores whole sentences."
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
    """Rows of CONTEXTS: each text of SWEEP_CONTEXTS once, however many series contain it."""
    return conform(contexts.unique("context", keep="first", maintain_order=True), CONTEXTS)
