"""Token-length bias (Ueda et al. 2024): does accuracy depend on which sentence of a pair is longer?

A is the acceptable sentence, U the unacceptable one. Each suite is split by their lengths in the
model's own tokens; accuracy is then computed within each split, and by the difference in length.
"""

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.errors import BadInput
from felicity.core.schemas import Schema
from felicity.engines import CountTokens
from felicity.stats import estimate_accuracy

SPLITS = ("A=U", "A>U", "A<U")
# What the two sentences of a pair are called if the dataset has no words of its own.
SIDES = {"good": "acceptable", "bad": "unacceptable"}
INTERVALS = "95% intervals are Wilson's: over suites where the pairs come from several, else over pairs."
EVERYTHING = "all"
FOUND = ("suites", "accuracy", "low", "high", "interval")

SPLIT_TABLE: Schema = {
    "model": pl.String(),
    "measure": pl.String(),
    "suite": pl.String(),
    "split": pl.String(),
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "accuracy": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "interval": pl.String(),
}
CURVE_TABLE: Schema = {
    "model": pl.String(),
    "measure": pl.String(),
    "difference": pl.Int32(),
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "accuracy": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "interval": pl.String(),
}


def write_legend(headline: Headline = ACCURACY) -> str:
    """What A, U and the splits are, in the dataset's words."""
    a, u = (SIDES.get(name, name) for name in (headline.call("good"), headline.call("bad")))
    meaning = "" if headline.graded else f" {headline.describe('pair')}"
    return (
        f"A is the {a} sentence, U the {u} one; A=U, A>U and A<U compare their lengths in the model's own "
        f"tokens.{meaning}"
    )


def measure_lengths(items: pl.DataFrame, count: CountTokens) -> pl.DataFrame:
    """One row per pair: item, suite, tokens of A and of U, their difference, and the split.

    Raises BadInput if the items are not pairs of a good and a bad sentence.
    """
    if set(items["condition"].unique()) != {"good", "bad"}:
        raise BadInput(
            "Token-length bias needs pairs; this dataset's items are not pairs of a good and a bad sentence."
        )
    lengths = items.with_columns(pl.Series("length", count(items["text"].to_list()), dtype=pl.Int32))
    sides = [
        lengths.filter(pl.col("condition") == condition).select("item", pl.col("length").alias(name))
        for condition, name in (("good", "a"), ("bad", "u"))
    ]
    pairs = items.select("item", "suite").unique(maintain_order=True)
    for side in sides:
        pairs = pairs.join(side, on="item", maintain_order="left")
    difference = pl.col("a") - pl.col("u")
    split = pl.when(difference == 0).then(pl.lit(SPLITS[0])).when(difference > 0)
    return pairs.with_columns(
        difference.alias("difference"),
        split.then(pl.lit(SPLITS[1])).otherwise(pl.lit(SPLITS[2])).alias("split"),
    )


def split_suites(
    lengths: pl.DataFrame, model: str, *, judgements: pl.DataFrame | None = None
) -> pl.DataFrame:
    """n and accuracy of every suite and split, and of all suites together: rows of SPLIT_TABLE.

    Without judgements the accuracies are null, and so is that of an empty split.
    """
    sizes = _sizes(lengths)
    if judgements is None:
        table = sizes.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in ("measure", *FOUND))
    else:
        found = _accuracies(judgements.join(lengths.select("item", "split"), on="item"))
        measures = judgements.select("measure").unique(maintain_order=True)
        table = measures.join(sizes, how="cross").join(
            found, on=["measure", "suite", "split"], how="left", maintain_order="left"
        )
    return table.with_columns(pl.lit(model).alias("model")).select(
        pl.col(name).cast(dtype) for name, dtype in SPLIT_TABLE.items()
    )


def draw_curves(lengths: pl.DataFrame, model: str, judgements: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by difference in length, A minus U, for each measure: rows of CURVE_TABLE.

    The intervals are those of the splits: over suites if the pairs come from several.
    """
    judged = judgements.join(lengths.select("item", "difference"), on="item")
    curves = (
        _estimate_by(judged, "difference").filter(level="overall").with_columns(pl.lit(model).alias("model"))
    )
    return curves.select(pl.col(name).cast(dtype) for name, dtype in CURVE_TABLE.items()).sort(
        "measure", "difference", maintain_order=True
    )


def _sizes(lengths: pl.DataFrame) -> pl.DataFrame:
    whole = lengths.with_columns(pl.lit(EVERYTHING).alias("suite"))
    counted = pl.concat([whole, lengths]).group_by("suite", "split").len(name="n")
    suites = [EVERYTHING, *lengths["suite"].unique(maintain_order=True)]
    cells = pl.DataFrame({"suite": suites}).join(pl.DataFrame({"split": SPLITS}), how="cross")
    sized = cells.join(counted, on=["suite", "split"], how="left", maintain_order="left")
    return sized.with_columns(pl.col("n").fill_null(0))


def _accuracies(judged: pl.DataFrame) -> pl.DataFrame:
    suite = pl.when(pl.col("level") == "overall").then(pl.lit(EVERYTHING)).otherwise("name")
    kept = _estimate_by(judged, "split").filter(pl.col("level").is_in(["overall", "suite"]))
    return kept.select("measure", suite.alias("suite"), "split", *FOUND)


def _estimate_by(judged: pl.DataFrame, column: str) -> pl.DataFrame:
    """The estimates of a run within each value of a column."""
    parts = [
        estimate_accuracy(part).with_columns(pl.lit(value).alias(column))
        for (value,), part in judged.group_by(column, maintain_order=True)
    ]
    return pl.concat(parts)


def count_nontrivial(splits: pl.DataFrame) -> pl.DataFrame:
    """The three counts over the suites with pairs of unequal length, by model."""
    single = splits.filter(pl.col("suite") != EVERYTHING).unique(
        ["model", "suite", "split"], maintain_order=True
    )
    uneven = (
        single.filter((pl.col("split") != SPLITS[0]) & (pl.col("n") > 0)).select("model", "suite").unique()
    )
    kept = single.join(uneven, on=["model", "suite"])
    return kept.group_by("model", "split", maintain_order=True).agg(
        pl.col("n").sum(), pl.col("suite").n_unique().cast(pl.Int64).alias("suites")
    )
