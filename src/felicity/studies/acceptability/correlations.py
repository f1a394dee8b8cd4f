"""Scores against ratings: the table of the study, tests between its cells, and what context does to scores.

A cell is a model, the context it was given, and a measure; each is correlated with the ratings of every
setting, also those that were collected in another context, as in Table 3 of Lau et al. (2020).
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import Schema
from felicity.stats import adjust_bh, adjust_holm, bootstrap_mean, correlate, steiger_z, williams_t
from felicity.studies.acceptability.people import describe_line, find_ends
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import RatedSentences

SCORES: Schema = {
    "model": pl.String(),
    "context": pl.String(),
    "measure": pl.String(),
    "item": pl.String(),
    "value": pl.Float64(),
}
CORRELATIONS: Schema = {
    "model": pl.String(),
    "context": pl.String(),
    "measure": pl.String(),
    "setting": pl.String(),
    "n": pl.Int64(),
    "r": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "spearman": pl.Float64(),
    "kendall": pl.Float64(),
    "best_measure": pl.Boolean(),
    "best_model": pl.Boolean(),
}
TESTS: Schema = {
    "compares": pl.String(),
    "setting": pl.String(),
    "model": pl.String(),
    "context": pl.String(),
    "measure": pl.String(),
    "first": pl.String(),
    "second": pl.String(),
    "r_first": pl.Float64(),
    "r_second": pl.Float64(),
    "r_between": pl.Float64(),
    "t": pl.Float64(),
    "df": pl.Int64(),
    "p": pl.Float64(),
    "p_holm": pl.Float64(),
    "p_holm_within": pl.Float64(),
    "p_bh": pl.Float64(),
    "z": pl.Float64(),
    "p_steiger": pl.Float64(),
}
EFFECTS: Schema = {
    "who": pl.String(),
    "measure": pl.String(),
    "context": pl.String(),
    "slope": pl.Float64(),
    "slope_low": pl.Float64(),
    "slope_high": pl.Float64(),
    "sd_ratio": pl.Float64(),
    "raised": pl.Float64(),
    "raised_low": pl.Float64(),
    "raised_high": pl.Float64(),
    "good": pl.Float64(),
    "bad": pl.Float64(),
}
PEOPLE = "people"
# Two cells that correlate more strongly differ by rounding only.
SAME = 1 - 1e-12
MEASURE, MODEL, CONTEXT = "measure", "model", "context"


class Cell(NamedTuple):
    """A model, the context it was given, a measure."""

    model: str
    context: str
    measure: str


Vectors = dict[Cell, np.ndarray]


def lay_out(scores: pl.DataFrame, ratings: RatedSentences) -> tuple[Vectors, list[str]]:
    """The values of each cell in the order of the sentences, and notes on cells that cannot be used.

    scores: rows of SCORES.
    """
    vectors: Vectors = {}
    notes = []
    order = ratings.sentences.select("item")
    for key, part in scores.group_by("model", "context", "measure", maintain_order=True):
        cell = Cell(*(str(name) for name in key))
        values = order.join(part, on="item", how="left", maintain_order="left")["value"].to_numpy()
        shown = f"{cell.measure} of {cell.model} with context '{cell.context}'"
        if not np.isfinite(values).all():
            bad = int((~np.isfinite(values)).sum())
            notes.append(f"{shown} is not a number for {bad} sentences and is left out.")
        elif np.ptp(values) == 0:
            notes.append(f"{shown} is the same for all sentences and is left out.")
        else:
            vectors[cell] = values
    if not vectors:
        raise BadInput("No score varies over the sentences, so there is nothing to correlate.")
    return vectors, notes


def correlate_cells(vectors: Vectors, ratings: RatedSentences, *, seed: int = 0) -> pl.DataFrame:
    """Rows of CORRELATIONS, with bootstrap intervals over sentences for Pearson's r.

    best_measure: the highest of its row in the paper's table (setting, model, context); best_model: the
    highest of its column (setting, measure).
    """
    rows = []
    for setting in ratings.settings:
        target = ratings.mean(setting)
        for cell, values in vectors.items():
            found = correlate(values, target, interval="bootstrap", seed=seed).row(0, named=True)
            row = cell._asdict() | {"setting": setting}
            row |= {name: found[name] for name in ("n", "r", "low", "high", "p")}
            for method in ("spearman", "kendall"):
                row[method] = correlate(values, target, method=method)["r"].item()
            rows.append(row)
    table = pl.DataFrame(rows, schema={name: CORRELATIONS[name] for name in list(CORRELATIONS)[:-2]})
    return table.with_columns(
        (pl.col("r") == pl.col("r").max().over("setting", "model", "context")).alias("best_measure"),
        (pl.col("r") == pl.col("r").max().over("setting", "measure")).alias("best_model"),
    )


def compare_cells(vectors: Vectors, ratings: RatedSentences) -> pl.DataFrame:
    """Rows of TESTS: does one measure, model or context correlate more strongly than another?

    Cells that differ in one respect only are compared by Williams' t and Steiger's Z. p of Williams' test is
    adjusted (p_holm; p_bh, Benjamini and Hochberg) over all comparisons of the same kind in the study: of
    measures, of models, or of contexts. p_holm_within is adjusted only over those with the same ratings and,
    for measures and contexts, of the same model: for a reader who asked about that model alone. Two cells
    with the same values have no p.
    """
    r = _correlate_all(vectors, ratings)
    n = len(ratings.sentences)
    rows: list[dict[str, Any]] = []
    for kind, same in _KINDS.items():
        pairs = list(_pairs(vectors, same))
        for setting in ratings.settings:
            rows += [_compare(kind, setting, first, second, r, n) for first, second in pairs]
    known = [row for row in rows if row["p"] is not None]
    for family in _group(known, lambda row: row["compares"]):
        p = [row["p"] for row in family]
        for row, holm, bh in zip(family, adjust_holm(p), adjust_bh(p), strict=True):
            row |= {"p_holm": float(holm), "p_bh": float(bh)}
    for family in _group(known, lambda row: (row["compares"], row["setting"], row.get("model"))):
        for row, holm in zip(family, adjust_holm([row["p"] for row in family]), strict=True):
            row["p_holm_within"] = float(holm)
    return pl.DataFrame(rows, schema=TESTS)


def _correlate_all(vectors: Vectors, ratings: RatedSentences) -> dict[tuple[Cell | str, Cell], float]:
    """Pearson's r of every cell with the ratings of every setting, and of every two cells."""
    names: list[Cell | str] = [*ratings.settings, *vectors]
    matrix = np.corrcoef([*(ratings.mean(setting) for setting in ratings.settings), *vectors.values()])
    return {
        (first, second): float(matrix[i, j])
        for i, first in enumerate(names)
        for j, second in enumerate(names)
        if isinstance(second, Cell)
    }


def _group(rows: list[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> list[list[dict[str, Any]]]:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


_KINDS: dict[str, Callable[[Cell], tuple[str, str]]] = {
    MEASURE: lambda cell: (cell.model, cell.context),
    MODEL: lambda cell: (cell.context, cell.measure),
    CONTEXT: lambda cell: (cell.model, cell.measure),
}


def _pairs(vectors: Vectors, same: Callable[[Cell], tuple[str, str]]) -> Iterator[tuple[Cell, Cell]]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in vectors:
        groups.setdefault(same(cell), []).append(cell)
    for group in groups.values():
        yield from combinations(group, 2)


def _compare(
    kind: str, setting: str, first: Cell, second: Cell, r: dict[tuple[Cell | str, Cell], float], n: int
) -> dict[str, Any]:
    row: dict[str, Any] = {"compares": kind, "setting": setting, "p": None}
    row |= {name: value for name, value in first._asdict().items() if name != kind}
    row |= {"first": getattr(first, kind), "second": getattr(second, kind)}
    three = r[setting, first], r[setting, second], r[first, second]
    if three[2] > SAME:
        return row
    try:
        t, df, p = williams_t(*three, n)
        z, p_steiger = steiger_z(*three, n)
    except BadInput:
        return row
    row |= dict(zip(("r_first", "r_second", "r_between"), three, strict=True))
    return row | {"t": t, "df": df, "p": p, "z": z, "p_steiger": p_steiger}


def measure_effects(vectors: Vectors, ratings: RatedSentences, *, seed: int = 0) -> pl.DataFrame:
    """Rows of EFFECTS: what each context does to ratings and to scores, in the same terms.

    In units of the standard deviation without a context: the slope of in-context values on those without,
    the ratio of the spreads (below 1: compressed; a slope is below 1 also by an imperfect correlation), how
    far values are raised on average, and how far good and bad sentences move, after the general rise is
    taken out.
    """
    if NONE not in ratings.settings:
        return pl.DataFrame(schema=EFFECTS)
    ends = {name: chosen for name, (_, chosen) in find_ends(ratings).items()}
    base = ratings.mean(NONE)
    rows = [
        _describe(PEOPLE, "rating", setting, base, ratings.mean(setting), ends, seed)
        for setting in ratings.in_context
    ]
    for cell, values in vectors.items():
        without = vectors.get(cell._replace(context=NONE))
        if cell.context != NONE and without is not None:
            rows.append(_describe(cell.model, cell.measure, cell.context, without, values, ends, seed))
    return pl.DataFrame(rows, schema=EFFECTS)


def _describe(
    who: str,
    measure: str,
    context: str,
    without: np.ndarray,
    within: np.ndarray,
    ends: dict[str, np.ndarray],
    seed: int,
) -> dict[str, Any]:
    x = (without - without.mean()) / without.std()
    y = (within - without.mean()) / without.std()
    line = describe_line(context, x, y)
    raised = bootstrap_mean(y - x, seed=seed)
    row: dict[str, Any] = {"who": who, "measure": measure, "context": context}
    row |= {name: line[name] for name in ("slope", "slope_low", "slope_high", "sd_ratio")}
    row |= {"raised": raised.estimate, "raised_low": raised.low, "raised_high": raised.high}
    moved = y - x - raised.estimate
    return row | {name: float(moved[own].mean()) if own.any() else None for name, own in ends.items()}


def find_best(table: pl.DataFrame, *, setting: str, model: str, context: str) -> str:
    """The measure of a model in a context that correlates most strongly with the ratings of a setting."""
    own = table.filter(setting=setting, model=model, context=context)
    return str(own.sort("r", descending=True)["measure"][0])


def pick_disagreements(
    vectors: Vectors, ratings: RatedSentences, cell: Cell, setting: str, *, k: int
) -> pl.DataFrame:
    """The k sentences that people rate furthest above the model, then the k furthest below.

    Columns item, text, rating, value, rating_z, value_z, difference (of the z-scores).
    """
    rating, value = ratings.mean(setting), vectors[cell]
    table = ratings.sentences.select("item", "text").with_columns(
        pl.Series("rating", rating),
        pl.Series("value", value),
        pl.Series("rating_z", (rating - rating.mean()) / rating.std()),
        pl.Series("value_z", (value - value.mean()) / value.std()),
    )
    ordered = table.with_columns((pl.col("rating_z") - pl.col("value_z")).alias("difference")).sort(
        "difference", descending=True, maintain_order=True
    )
    k = min(k, len(ordered) // 2)
    return pl.concat([ordered.head(k), ordered.tail(k).reverse()])
