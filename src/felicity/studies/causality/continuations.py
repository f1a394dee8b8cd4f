"""What a model wrote after every prompt: flagged, assigned to a noun, and counted."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from felicity.run import StudyFolder
from felicity.studies.causality.filters import flag_continuations
from felicity.studies.causality.preference import find_bin
from felicity.studies.causality.prompts import GENERATED
from felicity.studies.causality.reference import assign_references

# A continuation that occurs more often than this is one of a few that the model gives to everything.
OFTEN = 100
WORD = re.compile(r"[\w'’]+")


def read_continuations(folder: StudyFolder, model: str) -> pl.DataFrame:
    """What a model wrote after every prompt, with its flags and the noun it refers to."""
    run = folder.run(model)
    written = run.read_file(run.path / f"{GENERATED}.parquet")
    return annotate_continuations(written, folder.read("stimuli"), folder.facts["pronouns"])


def annotate_continuations(
    written: pl.DataFrame, stimuli: pl.DataFrame, pronouns: Mapping[str, str]
) -> pl.DataFrame:
    """Continuations with the columns of their prompts, flags and references."""
    table = stimuli.join(written, on="item", how="right", maintain_order="right")
    table = table.select(*stimuli.columns, pl.exclude(stimuli.columns)).with_columns(
        bias_bin=find_bin(pl.col("bias"))
    )
    flags = flag_continuations(table["continuation"])
    empty = pl.col("continuation") == ""
    whole = pl.concat([table, flags, assign_references(pronouns, table)], how="horizontal")
    return whole.with_columns(
        flagged=pl.col("flagged") | empty,
        reasons=pl.when(empty).then(pl.lit("empty")).otherwise(pl.col("reasons")),
    )


def describe_diversity(table: pl.DataFrame) -> dict[str, Any]:
    """How varied the continuations are.

    repeated_often: share of continuations that occur more than 100 times. distinct_n: distinct n-grams of
    words over all of them (Li et al. 2016).
    """
    texts = [" ".join(WORD.findall(text.lower())) for text in table["continuation"]]
    counts = Counter(texts)
    found: dict[str, Any] = {
        "n": len(texts),
        "distinct": len(counts),
        "repeated_often": sum(n for n in counts.values() if n > OFTEN) / max(len(texts), 1),
        "mean_words": sum(len(text.split()) for text in texts) / max(len(texts), 1),
    }
    for size in (1, 2, 3):
        grams = Counter(
            tuple(words[place : place + size])
            for words in map(str.split, texts)
            for place in range(len(words) - size + 1)
        )
        found[f"distinct_{size}"] = len(grams) / max(sum(grams.values()), 1)
    return found


def count_continuations(table: pl.DataFrame) -> pl.DataFrame:
    """Every continuation with how often it occurs, most frequent first, and whether it is flagged."""
    return (
        table.group_by("continuation")
        .agg(n=pl.len(), verbs=pl.col("verb").n_unique(), flagged=pl.col("flagged").first())
        .with_columns(pl.col("n", "verbs").cast(pl.Int64))
        .sort("n", "continuation", descending=[True, False])
    )


def count_reasons(table: pl.DataFrame) -> pl.DataFrame:
    """How many continuations are flagged, by kind of reason."""
    kinds = (
        table.filter("flagged")
        .select(kind=pl.col("reasons").str.split("; "))
        .with_row_index("place")
        .explode("kind")
        .with_columns(pl.col("kind").str.extract(r"^(.*?)(?::.*?(\(.*\))?)?$", 1), detail=_detail())
        .with_columns(reason=pl.concat_str("kind", "detail", separator=" ").str.strip_chars())
    )
    counts = kinds.group_by("reason").agg(n=pl.col("place").n_unique().cast(pl.Int64))
    return counts.sort("n", descending=True)


def _detail() -> pl.Expr:
    return pl.col("kind").str.extract(r"(\([^()]*\))$", 1).fill_null("")
