"""The table that is searched: one row per judgement, with the verdicts of every model side by side.

Columns: `row`, `key` (names the row in an address), `measure`, `item`, `suite`, `phenomenon`, `rule`,
`condition` (list), `text` (list, in the order of the conditions), `search` (item and texts in lower case),
in context studies also `context` and the factors of the context, of rated sentences `rating`. Model
number N adds `passed_N`, `margin_N`, `stable_N`, `verdict_N` and `difference_N`: the tokens of the first
condition minus those of the second, or of more conditions the longest minus the shortest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.schemas import sign_counts
from felicity.run import RunFolder

ORDER = {"good": 0, "bad": 1}
CONTEXT_FACTORS = ("kind", "length", "perturbation", "source", "draw")
RATING = "rating/"
VERDICTS = ("right", "wrong", "tie")


@dataclass(frozen=True, kw_only=True)
class Source:
    """One model's run: `run` has its scores, `home` its items, requests and contexts."""

    model: str
    run: RunFolder
    home: RunFolder
    manifest: Mapping[str, Any]

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of the run, read only as far as needed."""
        folder = self.home if table in ("items", "requests", "contexts") else self.run
        return sign_counts(pl.scan_parquet(folder.file(table)))

    @property
    def unit(self) -> list[str]:
        """The columns that name what is judged: an item, in one condition or context where that matters."""
        if self.home.path != self.run.path:
            return ["item", "context"]
        return ["item", "condition"] if self.run.file("correlations").exists() else ["item"]


def build_index(sources: Sequence[Source], path: Path) -> None:
    """Write the table for runs of the same stimuli."""
    first, *others = sources
    table = _judge(first, 0)
    keys = [name for name in _labels(first) if name not in ("suite", "phenomenon")]
    for number, source in enumerate(others, start=1):
        own = _judge(source, number)
        table = table.join(
            own, on=[*keys, "copy"], how="full", coalesce=True, nulls_equal=True, maintain_order="left_right"
        )
        again = [pl.coalesce(name, f"{name}_right").alias(name) for name in ("suite", "phenomenon")]
        table = table.with_columns(again).drop("suite_right", "phenomenon_right")
    texts = _list_texts(first)
    whole = table.join(texts, on=first.unit, how="left", nulls_equal=True, maintain_order="left")
    whole = whole.drop("condition", strict=False).rename({"conditions": "condition"})
    if "rating" in first.scan("items").collect_schema().names() and "condition" in first.unit:
        rated = first.scan("items").select("item", pl.concat_list("condition").alias("condition"), "rating")
        whole = whole.join(rated, on=["item", "condition"], how="left", maintain_order="left")
    words = pl.col("text").list.join(" ").fill_null("")
    whole = whole.with_columns(
        _key(first).alias("key"),
        pl.concat_str("item", words, separator=" ").str.to_lowercase().alias("search"),
    )
    whole.with_row_index("row").collect().write_parquet(path, compression="zstd", row_group_size=50_000)


def _labels(source: Source) -> list[str]:
    factors = list(CONTEXT_FACTORS) if "context" in source.unit else []
    further = [name for name in source.unit if name != "item"]
    return ["measure", "item", "suite", "phenomenon", "rule", *further, *factors]


def _judge(source: Source, number: int) -> pl.LazyFrame:
    judged = source.scan("judgements")
    if "condition" in source.unit:
        judged = judged.with_columns(pl.col("rule").str.strip_prefix(RATING).alias("condition"))
    labels = _labels(source)
    tied = (pl.col("margin") == 0) & pl.col("passed").is_between(0, 1, closed="none")
    verdict = (
        pl.when(tied)
        .then(pl.lit("tie"))
        .when(pl.col("passed") > 0.5)
        .then(pl.lit("right"))
        .when(pl.col("passed") < 0.5)
        .then(pl.lit("wrong"))
        .otherwise(pl.lit("tie"))
    )
    # A cloze item may be judged in several frames.
    copies = pl.int_range(pl.len()).over([name for name in labels if name not in ("suite", "phenomenon")])
    return judged.select(
        *labels,
        copies.alias("copy"),
        pl.col("passed").alias(f"passed_{number}"),
        pl.col("margin").fill_nan(None).alias(f"margin_{number}"),
        pl.col("stable").alias(f"stable_{number}"),
        verdict.alias(f"verdict_{number}"),
    ).join(_count_tokens(source, number), on=source.unit, how="left", nulls_equal=True, maintain_order="left")


def in_order(source: Source) -> pl.LazyFrame:
    """Requests, the conditions of each item in their order: good, bad, the others in order of occurrence."""
    asked = (
        source.scan("requests")
        .select("request", "item", "condition", "context", "text")
        .with_row_index("place")
    )
    rank = pl.col("condition").replace_strict(ORDER, default=len(ORDER), return_dtype=pl.Int64)
    return asked.sort(rank, "place")


def _count_tokens(source: Source, number: int) -> pl.LazyFrame:
    lengths = source.scan("tokens").select("request", pl.col("logprob").list.len().cast(pl.Int32).alias("n"))
    joined = in_order(source).join(lengths, on="request", maintain_order="left")
    two = (pl.len() == 2) & (pl.col("n").len() == 2)
    difference = (
        pl.when(two)
        .then(pl.col("n").first() - pl.col("n").last())
        .otherwise(pl.col("n").max() - pl.col("n").min())
    )
    return joined.group_by(source.unit, maintain_order=True).agg(difference.alias(f"difference_{number}"))


def _list_texts(source: Source) -> pl.LazyFrame:
    listed = pl.col("condition").alias("conditions") if "condition" not in source.unit else None
    grouped = in_order(source).group_by(source.unit, maintain_order=True)
    if listed is not None:
        return grouped.agg(listed, "text")
    return grouped.agg(pl.col("text")).with_columns(pl.concat_list("condition").alias("conditions"))


def _key(source: Source) -> pl.Expr:
    """What names a row within a measure: the item, and what else tells its judgements apart."""
    parts = [pl.col("item")]
    if "context" in source.unit:
        parts += [pl.col("context").fill_null("")]
    rules = (
        pl.when(pl.col("rule").n_unique() > 1).then(pl.concat_str(pl.lit("~"), "rule")).otherwise(pl.lit(""))
    )
    copies = (
        pl.when(pl.col("copy") > 0).then(pl.concat_str(pl.lit("~"), pl.col("copy"))).otherwise(pl.lit(""))
    )
    return pl.concat_str([pl.concat_str(parts, separator="~"), rules, copies]).str.strip_chars_end("~")
