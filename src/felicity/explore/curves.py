"""Curves and scatter plots that only some runs have: regions, contexts, ratings."""

from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.explore.collections import Collection, read_study_estimates
from felicity.explore.comparison import MOST_POINTS, bin_points
from felicity.stats import average_region_surprisal

RATED = "correlations"
CURVE_COLUMNS = (
    "model",
    "level",
    "name",
    "kind",
    "source",
    "perturbation",
    "length",
    "n",
    "accuracy",
    "low",
    "high",
)


def list_views(collection: Collection) -> list[str]:
    """The views that a collection has something for."""
    views = ["items", "compare", "suites"]
    if collection.has("regions") and collection.study is None:
        views.append("regions")
    if collection.study is not None:
        views.append("contexts")
    if collection.has("correlations"):
        views.append("ratings")
    return views


def list_region_suites(collection: Collection) -> list[str]:
    """The suites whose sentences are divided into regions."""
    suites: dict[str, None] = {}
    for source in collection.sources:
        if source.run.file("regions").exists():
            found = source.scan("regions").select(pl.col("suite").unique(maintain_order=True)).collect()
            suites |= dict.fromkeys(found["suite"].to_list())
    return list(suites)


def average_regions(collection: Collection, suite: str) -> dict[str, Any]:
    """Mean surprisal in bits of every region of a suite, by model and condition, with 95% intervals."""
    curves = []
    regions: dict[str, str] = {}
    for source in collection.sources:
        if not source.run.file("regions").exists():
            continue
        frame = source.scan("regions").filter(pl.col("suite") == suite).collect()
        regions |= dict(frame.select("region", "name").unique(maintain_order=True).iter_rows())
        for (condition,), part in average_region_surprisal(frame).group_by("condition", maintain_order=True):
            points = part.select("region", "mean", "low", "high", "n").rows()
            curves.append(
                {"model": source.model, "condition": condition, "points": [list(row) for row in points]}
            )
    ordered = sorted(
        regions, key=lambda region: (not region.isdigit(), int(region) if region.isdigit() else 0)
    )
    return {"suite": suite, "regions": [[region, regions[region]] for region in ordered], "curves": curves}


def read_contexts(collection: Collection) -> dict[str, Any]:
    """Accuracy by length and kind of context, as the study estimated it, for all levels."""
    if collection.study is None:
        return {"rows": [], "unit": ""}
    estimates, unit = read_study_estimates(collection.study)
    return {"unit": unit, "rows": estimates.select(CURVE_COLUMNS).to_dicts()}


def read_ratings(collection: Collection, measure: str, model: int) -> dict[str, Any]:
    """Mean ratings against a model's scores, and their correlations, by condition.

    Raises BadInput if there are no ratings.
    """
    source = collection.sources[model]
    if "rating" not in source.scan("items").collect_schema().names() or not source.run.file(RATED).exists():
        raise BadInput(f"The stimuli of {source.run.path} have no ratings; choose another run.")
    items = source.scan("items").select("item", "condition", "rating")
    asked = source.scan("requests").select("request", "item", "condition")
    scores = source.scan("scores").filter(pl.col("measure") == measure).select("request", "value")
    joined = asked.join(items, on=["item", "condition"]).join(scores, on="request")
    keys = collection.scan().filter(pl.col("measure") == measure)
    keyed = keys.select("item", pl.col("condition").list.first(), "key")
    frame = joined.join(keyed, on=["item", "condition"], how="left", maintain_order="left").collect()
    panels = []
    for (condition,), part in frame.group_by("condition", maintain_order=True):
        drawn = part.filter(pl.col("rating").is_finite() & pl.col("value").is_finite())
        panel: dict[str, Any] = {"condition": condition, "n": len(drawn)}
        if len(drawn) <= MOST_POINTS:
            panel["points"] = [list(row) for row in drawn.select("key", "rating", "value").iter_rows()]
        else:
            panel |= bin_points(drawn["rating"].to_numpy(), drawn["value"].to_numpy())
        panels.append(panel)
    return {"panels": panels, "correlations": _read_correlations(collection, measure, model)}


def _read_correlations(collection: Collection, measure: str, model: int) -> list[dict[str, Any]]:
    frame = collection.sources[model].run.read(RATED)
    return frame.filter(pl.col("measure") == measure, pl.col("level") == "all").to_dicts()
