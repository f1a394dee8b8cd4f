"""Correlations of a context study: points for scatter plots, their coefficients, and the suite matrix."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtr, stdtrit

from felicity.core.errors import BadInput
from felicity.core.schemas import check_schema, conform
from felicity.core.sweep import BASELINE, FROM_KINDS, UNPERTURBED
from felicity.stats import Method, adjust_holm, correlate
from felicity.studies.context.context_curves import ITEM, check_judgements, pair_with_baseline
from felicity.studies.context.intervals import UPPER_TAIL
from felicity.studies.context.sweep_tables import (
    CORRELATIONS,
    MATRIX,
    PERTURBATION_SIMILARITY,
    POINTS,
    SIMILARITY,
    order_kinds,
    order_seen,
)

CELL = ["model", "kind", "source", "suite", "length"]
MEASURES = ("token_f1", "dependency_f1")
DIGITS = 12
FEWEST_SUITES = 3
BASELINE_PAIR = "baseline and longest context"
PERTURBATION_PAIR = "perturbation similarity and change"
SIMILARITIES = {"token_f1": "token F1", "dependency_f1": "dependency F1"}
METHODS: dict[str, tuple[Method, ...]] = {
    BASELINE_PAIR: ("pearson", "spearman"),
    PERTURBATION_PAIR: ("spearman",),
    **{f"{label} and correctness": ("point_biserial",) for label in SIMILARITIES.values()},
    **{f"{label} and change": ("spearman",) for label in SIMILARITIES.values()},
}


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

    Raises BadInput if a pair of item and context occurs twice.
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
    keys = [*CELL, *(name for name in ITEM if name not in CELL)]
    # In order, for a mean depends to the last bit on the order of what it is taken over.
    items = known.group_by(keys, maintain_order=True).agg(pl.col(MEASURES).mean())
    return items.group_by(CELL, maintain_order=True).agg(pl.col(MEASURES).mean())


def correlate_points(points: pl.DataFrame, suites: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Rows of CORRELATIONS, one per model, pair of variables, kind and method.

    Points with missing values are left out.

    suites: the suite of each item. Points of items, and cells of the suite by suite matrix, are not
        independent: their interval and p are over suites, by leaving out each suite in turn (the jackknife of
        Fisher's z, with Student's t), and never surer than those of independent points.

    p is adjusted over all correlations of the study (Holm). If there are too few points, or all are equal, r
    is null and the note says why.
    """
    rows: list[dict[str, Any]] = []
    # Equal means must be equal to the last digit, or they would get different ranks.
    known = points.drop_nulls(["x", "y"]).with_columns(pl.col("x", "y").round(DIGITS))
    for (model, variables, kind), part in known.group_by("model", "variables", "kind", maintain_order=True):
        for method in METHODS[str(variables)]:
            row = {"model": model, "variables": variables, "kind": kind, "method": method, "n": part.height}
            # `correlate` expects correctness, 0 or 1, as x.
            x, y = (part["y"], part["x"]) if method == "point_biserial" else (part["x"], part["y"])
            try:
                found = correlate(x, y, method=method).row(0, named=True)
            except BadInput as error:
                rows.append(row | {"note": str(error)})
                continue
            found |= _over_suites(found, x, y, method, _list_suites(part["name"], suites or {}))
            names = ("r", "low", "high", "p", "suites")
            rows.append(row | {name: found.get(name) for name in names} | {"note": ""})
    tested = [row for row in rows if row.get("p") is not None]
    for row, p in zip(tested, adjust_holm([row["p"] for row in tested]) if tested else (), strict=True):
        row["p_holm"] = float(p)
    return pl.DataFrame(rows, schema=CORRELATIONS)


def _list_suites(names: pl.Series, suites: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The suites of each point: both of a cell of the matrix, that of an item, or none."""
    return [
        tuple(name.split(" > ")) if " > " in name else (suites[name],) if name in suites else ()
        for name in names
    ]


def _over_suites(
    found: dict[str, Any], x: pl.Series, y: pl.Series, method: Method, suites: list[tuple[str, ...]]
) -> dict[str, Any]:
    """Interval and p over suites; nothing if points have none, or there are fewer than three."""
    known = sorted({suite for own in suites for suite in own})
    if not all(suites) or len(known) < FEWEST_SUITES or abs(found["r"]) >= 1.0:
        return {}
    a, b = x.to_numpy(), y.to_numpy()
    kept = []
    for suite in known:
        rest = np.array([suite not in own for own in suites])
        try:
            r = correlate(a[rest], b[rest], method=method)["r"][0]
        except BadInput:
            return {}
        # A perfect correlation has no z to resample.
        if not abs(r) < 1.0:
            return {}
        kept.append(float(np.arctanh(r)))
    count = len(known)
    error = float(np.sqrt((count - 1) / count * np.sum((np.array(kept) - np.mean(kept)) ** 2)))
    z, multiple = float(np.arctanh(found["r"])), float(stdtrit(count - 1, UPPER_TAIL))
    p = 2.0 * float(stdtr(count - 1, -abs(z) / error)) if error > 0 else found["p"]
    return {
        "low": min(found["low"], float(np.tanh(z - multiple * error))),
        "high": max(found["high"], float(np.tanh(z + multiple * error))),
        "p": max(found["p"], p),
        "suites": count,
    }


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
        BASELINE_PAIR,
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

    `similarity` is the table PERTURBATION_SIMILARITY; a row for `none` (similarity 1) includes the
    unperturbed contexts.
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
        known, PERTURBATION_PAIR, x=pl.col("token_f1"), y=pl.col("delta"), name=pl.col("perturbation")
    )


def _points(frame: pl.DataFrame, variables: str, *, x: pl.Expr, y: pl.Expr, name: pl.Expr) -> pl.DataFrame:
    ordered = frame.sort(order_seen(frame, "model"), order_kinds(), maintain_order=True)
    named = ordered.with_columns(
        pl.lit(variables).alias("variables"), x.alias("x"), y.alias("y"), name.alias("name")
    ).filter(pl.col("x").is_not_null())
    return conform(named, POINTS)
