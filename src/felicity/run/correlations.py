"""Scores against ratings: Pearson and Spearman with intervals, by condition, over all and by suite."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import CORRELATIONS
from felicity.stats.correlation import correlate

METHODS = ("pearson", "spearman")
LEVELS = {"all": None, "phenomenon": "phenomenon", "suite": "suite"}


def correlate_ratings(items: pl.DataFrame, requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """Rows of CORRELATIONS; where nothing varies or there are fewer than four, r is null."""
    rated = items.select("item", "suite", "phenomenon", "condition", "rating")
    valued = requests.select("request", "item", "condition").join(scores, on="request")
    whole = rated.join(valued, on=["item", "condition"], maintain_order="left")
    rows: list[dict[str, object]] = []
    for (measure, condition), part in whole.group_by("measure", "condition", maintain_order=True):
        for level, column in LEVELS.items():
            groups = [("all", part)] if column is None else _split(part, column)
            if len(groups) == 1 and column is not None:
                continue
            for name, group in groups:
                shared = {"measure": measure, "condition": condition, "level": level, "name": name}
                rows += [shared | _correlate(group, method) for method in METHODS]
    return pl.DataFrame(rows, schema=CORRELATIONS)


def _split(part: pl.DataFrame, column: str) -> list[tuple[str, pl.DataFrame]]:
    return [(str(name), group) for (name,), group in part.group_by(column, maintain_order=True)]


def _correlate(group: pl.DataFrame, method: str) -> dict[str, object]:
    missing = {"method": method, "n": len(group), "r": None, "low": None, "high": None, "p": None}
    try:
        found = correlate(group["value"], group["rating"], method=method)  # type: ignore[arg-type]
    except BadInput:
        return missing
    return missing | found.row(0, named=True)
