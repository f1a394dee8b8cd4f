"""Suite by suite: what contexts of one suite do to the items of another, and how alike the two are."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import check_schema, conform
from felicity.core.sweep import FROM_KINDS, UNPERTURBED
from felicity.studies.context.pairing import ITEM, pair_with_baseline
from felicity.studies.context.tables import MATRIX, SIMILARITY, order_kinds, order_seen

CELL = ["model", "kind", "source", "suite", "length"]
MEASURES = ("token_f1", "dependency_f1")


def build_matrix(
    judgements: pl.DataFrame,
    similarity: pl.DataFrame | None = None,
    *,
    length: int | None = None,
    perturbation: str = UNPERTURBED,
) -> pl.DataFrame:
    """Rows of MATRIX: the mean change in accuracy for every pair of a source and a suite.

    similarity: a table SIMILARITY, averaged over the contexts and items of a cell; without it, nulls.
    length: which length of context; by default each cell's longest.

    Raises BadInput as `pair_with_baseline` does.
    """
    chosen = judgements.filter(pl.col("kind").is_in(list(FROM_KINDS)), perturbation=perturbation)
    chosen = pick_length(chosen, CELL[:-1], length)
    units = pair_with_baseline(pl.concat([judgements.filter(kind="none"), chosen]))
    cells = (
        units.filter(pl.col("kind") != "none")
        .group_by(CELL, maintain_order=True)
        .agg(pl.len().alias("n"), pl.col("delta").mean())
    )
    alike = _average_similarity(chosen, similarity)
    matrix = cells.join(alike, on=CELL, how="left", maintain_order="left")
    return conform(
        matrix.sort(order_seen(matrix, "model"), order_kinds(), "source", "suite", maintain_order=True),
        MATRIX,
    )


def pick_length(judgements: pl.DataFrame, by: list[str], length: int | None) -> pl.DataFrame:
    """The judgements at one length, or at the longest that each group of `by` has."""
    if length is not None:
        return judgements.filter(pl.col("length") == length)
    return judgements.filter(pl.col("length") == pl.col("length").max().over(by))


def join_similarity(judgements: pl.DataFrame, similarity: pl.DataFrame) -> pl.DataFrame:
    """Judgements with the similarity of their item and context beside them.

    Raises BadInput where a pair of item and context stands twice.
    """
    check_schema(similarity, SIMILARITY, "similarity")
    pairs = similarity.select(list(SIMILARITY))
    twice = pairs.filter(pl.struct("item", "context").is_duplicated())
    if twice.height:
        raise BadInput(f"Item '{twice['item'][0]}' has two similarities with one context; keep one of them.")
    return judgements.join(pairs, on=["item", "context"], maintain_order="left")


def _average_similarity(chosen: pl.DataFrame, similarity: pl.DataFrame | None) -> pl.DataFrame:
    if similarity is None:
        empty = {name: chosen.schema[name] for name in CELL} | {name: pl.Float64() for name in MEASURES}
        return pl.DataFrame(schema=empty)
    # An item's draws count as one, as they do in its change.
    known = join_similarity(chosen, similarity)
    items = known.group_by(*CELL, *(name for name in ITEM if name not in CELL)).agg(pl.col(MEASURES).mean())
    return items.group_by(CELL).agg(pl.col(MEASURES).mean())
