"""How alike contexts and test sentences are, and how alike perturbed sentences and their originals."""

import polars as pl

from felicity.core.sweep import UNPERTURBED
from felicity.design.similarity import bag_f1, count_words, measure_similarity
from felicity.studies.context.planning import Planned
from felicity.studies.context.tables import PERTURBATION_SIMILARITY, SIMILARITY


def compare_contexts(planned: Planned, *, labels: bool) -> pl.DataFrame:
    """Rows of SIMILARITY: each item's acceptable sentence and its longest context of every series.

    The mean over the context's sentences, so that it does not fall with length. Of several acceptable
    conditions the first is taken. labels: compare dependency labels too.

    Raises NotPossible where labels are asked for and no parser is installed.
    """
    good = planned.sides.filter(pl.col("acceptable")).select("suite", "condition")
    tests = (
        planned.items.join(good, on=["suite", "condition"], how="semi", maintain_order="left")
        .unique("item", keep="first", maintain_order=True)
        .select("item", "condition")
    )
    requests = planned.requests.filter(
        pl.col("context").is_not_null(),
        pl.col("perturbation") == UNPERTURBED,
        pl.col("length") == pl.col("length").max().over("series"),
    )
    pairs = requests.join(tests, on=["item", "condition"], how="semi", maintain_order="left")
    pairs = pairs.select("item", "context", "text").unique(["item", "context"], maintain_order=True)
    contexts = planned.contexts.select("context", "sentences").unique("context", maintain_order=True)
    used = contexts.join(pairs, on="context", how="semi", maintain_order="left")
    found = measure_similarity(pairs, used, by="sentence", labels=labels)
    if not labels:
        found = found.with_columns(pl.lit(None, dtype=pl.Float64).alias("dependency_f1"))
    return found.select(pl.col(name).cast(dtype) for name, dtype in SIMILARITY.items())


def compare_perturbed(contexts: pl.DataFrame) -> pl.DataFrame:
    """Rows of PERTURBATION_SIMILARITY: token F1 of context sentences and what they were made from."""
    whole = ["suite", "group", "kind", "source", "draw"]
    longest = contexts.filter(pl.col("length") == pl.col("length").max().over("series"))
    single = longest.with_columns(pl.int_ranges(pl.col("sentences").list.len()).alias("place")).explode(
        "sentences", "origins", "place"
    )
    bare = single.filter(pl.col("perturbation") == UNPERTURBED).select(
        *whole, "place", "origins", pl.col("sentences").alias("original")
    )
    both = single.join(bare, on=[*whole, "place", "origins"], nulls_equal=True, maintain_order="left").select(
        "kind", "perturbation", "sentences", "original"
    )
    pairs = both.select("sentences", "original").unique(maintain_order=True)
    bags = count_words([*pairs["sentences"], *pairs["original"]])
    alike = [bag_f1(one, other) for one, other in zip(bags[: len(pairs)], bags[len(pairs) :], strict=True)]
    scored = both.join(
        pairs.with_columns(pl.Series("token_f1", alike, dtype=pl.Float64)), on=["sentences", "original"]
    )
    means = scored.group_by("kind", "perturbation", maintain_order=True).agg(pl.col("token_f1").mean())
    return means.select(pl.col(name).cast(dtype) for name, dtype in PERTURBATION_SIMILARITY.items())
