"""What goes together with what: points for scatter plots, and the correlations of those points."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import check_schema, conform
from felicity.core.sweep import BASELINE, FROM_KINDS, UNPERTURBED
from felicity.stats.correlation import Method, correlate
from felicity.studies.context.matrix import join_similarity, pick_length
from felicity.studies.context.pairing import check_judgements
from felicity.studies.context.tables import LINKS, PERTURBATION_SIMILARITY, POINTS, order_kinds, order_seen

DIGITS = 12
BASELINE_LINK = "baseline and longest context"
PERTURBATION_LINK = "perturbation similarity and change"
SIMILARITIES = {"token_f1": "token F1", "dependency_f1": "dependency F1"}
METHODS: dict[str, tuple[Method, ...]] = {
    BASELINE_LINK: ("pearson", "spearman"),
    PERTURBATION_LINK: ("spearman",),
    **{f"{label} and correctness": ("point_biserial",) for label in SIMILARITIES.values()},
    **{f"{label} and change": ("spearman",) for label in SIMILARITIES.values()},
}


def correlate_points(points: pl.DataFrame) -> pl.DataFrame:
    """Rows of LINKS, one a model, link, kind and method; points with a gap are left out.

    Intervals and p take the points to be independent. Where there are too few of them, or all are alike,
    r is null and the note says why.
    """
    rows: list[dict[str, object]] = []
    # Means that are equal must be so to the last digit, or ranks would tell them apart.
    known = points.drop_nulls(["x", "y"]).with_columns(pl.col("x", "y").round(DIGITS))
    for (model, link, kind), part in known.group_by("model", "link", "kind", maintain_order=True):
        for method in METHODS[str(link)]:
            row = {"model": model, "link": link, "kind": kind, "method": method, "n": part.height}
            # Correctness, 0 or 1, is what `correlate` calls x.
            x, y = (part["y"], part["x"]) if method == "point_biserial" else (part["x"], part["y"])
            try:
                found = correlate(x, y, method=method).row(0, named=True)
            except BadInput as error:
                rows.append(row | {"note": str(error)})
            else:
                rows.append(row | {name: found[name] for name in ("r", "low", "high", "p")} | {"note": ""})
    return pl.DataFrame(rows, schema=LINKS)


def baseline_points(curves: pl.DataFrame, *, perturbation: str = UNPERTURBED) -> pl.DataFrame:
    """A suite's accuracy without context (x) and with the longest context of a kind that it has (y)."""
    suites = curves.filter(
        pl.col("kind") != BASELINE,
        ~pl.col("kind").is_in(list(FROM_KINDS)),
        level="suite",
        perturbation=perturbation,
    )
    longest = pick_length(suites, ["model", "name", "kind"], None)
    return _points(
        longest,
        BASELINE_LINK,
        x=pl.col("accuracy") - pl.col("delta"),
        y=pl.col("accuracy"),
        name=pl.col("name"),
    )


def correctness_points(
    judgements: pl.DataFrame,
    similarity: pl.DataFrame,
    *,
    length: int | None = None,
    perturbation: str = UNPERTURBED,
) -> pl.DataFrame:
    """Similarity of context and test sentence (x) and whether the item is judged right (y, ties wrong).

    One length at a time, by default each kind's longest: both similarity and accuracy change with length.
    """
    judged = check_judgements(judgements).filter(pl.col("kind") != BASELINE, perturbation=perturbation)
    known = join_similarity(pick_length(judged, ["model", "kind"], length), similarity)
    right = (pl.col("passed") == 1.0).cast(pl.Float64)
    return pl.concat(
        _points(known, f"{label} and correctness", x=pl.col(column), y=right, name=pl.col("item"))
        for column, label in SIMILARITIES.items()
    )


def matrix_points(matrix: pl.DataFrame) -> pl.DataFrame:
    """Mean similarity (x) and change in accuracy (y) of each cell of the suite by suite matrix."""
    name = pl.format("{} > {}", "source", "suite")
    return pl.concat(
        _points(matrix, f"{label} and change", x=pl.col(column), y=pl.col("delta"), name=name)
        for column, label in SIMILARITIES.items()
    )


def perturbation_points(curves: pl.DataFrame, similarity: pl.DataFrame) -> pl.DataFrame:
    """Similarity of perturbed and original sentences (x), and mean change over lengths (y), by kind.

    `similarity` is the table PERTURBATION_SIMILARITY; a row for `none` (similarity 1) takes the
    unperturbed contexts in as well.
    """
    check_schema(similarity, PERTURBATION_SIMILARITY, "similarity of perturbations")
    overall = curves.filter(pl.col("kind") != BASELINE, level="overall")
    changes = overall.group_by("model", "kind", "perturbation", maintain_order=True).agg(
        pl.col("delta").mean()
    )
    known = changes.join(
        similarity.select(list(PERTURBATION_SIMILARITY)), on=["kind", "perturbation"], maintain_order="left"
    )
    return _points(
        known, PERTURBATION_LINK, x=pl.col("token_f1"), y=pl.col("delta"), name=pl.col("perturbation")
    )


def _points(frame: pl.DataFrame, link: str, *, x: pl.Expr, y: pl.Expr, name: pl.Expr) -> pl.DataFrame:
    ordered = frame.sort(order_seen(frame, "model"), order_kinds(), maintain_order=True)
    named = ordered.with_columns(
        pl.lit(link).alias("link"), x.alias("x"), y.alias("y"), name.alias("name")
    ).filter(pl.col("x").is_not_null())
    return conform(named, POINTS)
