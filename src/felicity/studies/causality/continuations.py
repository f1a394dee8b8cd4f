"""What a model writes after every prompt: continued, cut, flagged, and counted."""

import re
from collections import Counter
from typing import Any

import polars as pl

from felicity.core.engine import Sampling
from felicity.core.progress import Progress
from felicity.run import Model
from felicity.studies.causality.filters import flag_continuations
from felicity.studies.causality.preference import find_bin
from felicity.studies.causality.reference import assign_references, resolve_same_gender
from felicity.studies.causality.stimuli import StimulusSet

# At most so many tokens with the prompt, cut at the first full stop, as in the paper.
WHOLE_TOKENS = 50
FULL_STOP = "."
# A continuation that occurs more often than this is one of a few that the model gives to everything.
OFTEN = 100
WORD = re.compile(r"[\w'’]+")


def write_continuations(
    lm: Model, stimuli: StimulusSet, sampling: Sampling, *, progress: Progress | None = None
) -> pl.DataFrame:
    """One row per stimulus and sample: the continuation, its flags, and the noun it refers to.

    Batches are stored before the next begins, so that an interrupted study resumes.
    """
    rows = stimuli.rows
    written = lm.generate_all(rows["prompt"].to_list(), sampling=sampling, progress=progress)
    times = written.height // max(rows.height, 1)
    repeated = rows[[place for place in range(rows.height) for _ in range(times)]]
    table = pl.concat(
        [repeated, written.select("sample", "continuation", "n_tokens", "ended")], how="horizontal"
    )
    table = table.with_columns(
        pl.col("continuation").str.replace_all(r"\s+", " ").str.strip_chars(),
        bias_bin=find_bin(pl.col("bias")),
    )
    found = complete_table(stimuli, table)
    return resolve_same_gender(lm, stimuli, found)


def complete_table(stimuli: StimulusSet, table: pl.DataFrame) -> pl.DataFrame:
    """Continuations with their flags and references."""
    flags = flag_continuations(table["continuation"])
    empty = pl.col("continuation") == ""
    whole = pl.concat([table, flags, assign_references(stimuli, table)], how="horizontal")
    return whole.with_columns(
        flagged=pl.col("flagged") | empty,
        reasons=pl.when(empty).then(pl.lit("empty")).otherwise(pl.col("reasons")),
    )


def score_continuations(lm: Model, table: pl.DataFrame) -> pl.DataFrame:
    """The mean log-probability per token of each continuation, in nats, as the column `mean_lp`."""
    scored = lm.score(
        [f"{text}{FULL_STOP}" for text in table["continuation"]], context=table["prompt"].to_list()
    )
    return table.with_columns((scored["lp"] / scored["n_tokens"]).alias("mean_lp"))


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
