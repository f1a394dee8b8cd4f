"""Stored tokens into scores: every asked measure of every request, without the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import SCORES, conform
from felicity.measures.sentence import MEASURES, UNIGRAM_MEASURES, Totals
from felicity.measures.unigram import Unigram


@dataclass(frozen=True)
class Scored:
    """Scores, and how many tokens the unigram table did not know."""

    scores: pl.DataFrame
    unseen: int


def score_measures(
    tokens: pl.DataFrame,
    measures: Sequence[str],
    *,
    noise: float | np.ndarray,
    unigram: Unigram | None = None,
) -> Scored:
    """Rows of SCORES for each request and measure.

    `noise` is by how many nats the sum of a sentence may be off (one number for all, or one each); each
    value carries what that does to it.

    Raises UnknownName, or NotPossible where a measure needs unigram counts and has none.
    """
    check_measures(measures, unigram is not None)
    totals = _totals(tokens, unigram)
    empty = np.flatnonzero(totals.length == 0)
    if len(empty):
        raise BadInput(
            f"No token of '{tokens['request'][int(empty[0])]}' can be scored; give a begin token with --bos."
        )
    shifted = totals._replace(lp=totals.lp + noise)
    parts = []
    for name in measures:
        value = MEASURES[name](totals)
        error = np.abs(MEASURES[name](shifted) - value)
        parts.append(
            pl.DataFrame({"request": tokens["request"], "measure": name, "value": value, "error": error})
        )
    scores = conform(pl.concat(parts), SCORES)
    unseen = 0 if unigram is None else unigram.unseen(tokens["tokens"].explode(empty_as_null=False))
    return Scored(scores, unseen)


def check_measures(measures: Sequence[str], has_unigram: bool) -> None:
    """Refuse unknown measures, and those that lack their counts, before any scoring."""
    for name in measures:
        _ = MEASURES[name]
    needy = [name for name in measures if name in UNIGRAM_MEASURES]
    if needy and not has_unigram:
        raise NotPossible(
            f"'{needy[0]}' needs unigram counts of the model's tokens; build them with "
            "`felicity count CORPUS.txt -m MODEL -o counts.tsv` and pass --unigram counts.tsv."
        )


def _totals(tokens: pl.DataFrame, unigram: Unigram | None) -> Totals:
    """Sums over the tokens that were scored; those without a log-probability count nowhere."""
    flat = tokens.select(pl.int_range(pl.len()).alias("row"), "tokens", "logprob").explode(
        "tokens", "logprob"
    )
    flat = flat.filter(pl.col("logprob").is_not_null())
    base = unigram.logprob(flat["tokens"]) if unigram else np.zeros(len(flat))
    summed = (
        flat.select("row", pl.col("logprob").cast(pl.Float64), pl.Series("unigram", base))
        .group_by("row")
        .agg(pl.col("logprob").sum(), pl.col("unigram").sum(), pl.len().alias("length"))
    )
    rows = pl.DataFrame({"row": np.arange(len(tokens), dtype=np.int64)})
    whole = rows.join(summed, on="row", how="left", maintain_order="left").fill_null(0)
    return Totals(whole["logprob"].to_numpy(), whole["unigram"].to_numpy(), whole["length"].to_numpy())
