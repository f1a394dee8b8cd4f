"""What a page shows about a collection, and everything that a page without a server needs."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.policy import describe_policies
from felicity.explore.collections import Collection
from felicity.explore.comparison import tabulate_suites
from felicity.explore.curves import (
    average_regions,
    list_region_suites,
    list_views,
    read_contexts,
    read_ratings,
)
from felicity.explore.items import read_all_items
from felicity.explore.selection import (
    LARGEST_DIFFERENCE,
    PICKS,
    list_facets,
    list_stimuli,
    parse_selection,
)
from felicity.explore.texts import TextCollection, count_numbers, describe_texts, gather_passages

MOST_OFFLINE = 20_000
# What a report brings along unasked: about ten megabytes.
SMALL, SMALL_NUMBERS = 3_000, 300_000


def describe_collection(collection: Collection | TextCollection) -> dict[str, Any]:
    """Names, models, measures, facets and views of a collection, and the words of its dataset."""
    if isinstance(collection, TextCollection):
        return describe_texts(collection)
    passed = collection.headline.verdicts[0]
    return {
        "name": collection.name,
        "dataset": collection.dataset,
        "headline": collection.headline.name,
        "kind": collection.headline.kind,
        "chance": collection.headline.chance,
        "verdicts": list(collection.headline.verdicts),
        "sentences": dict(collection.headline.sentences),
        "graded": collection.headline.graded,
        "meaning": collection.headline.describe(),
        "policies": describe_policies(
            {source.model: source.manifest["model"] for source in collection.sources}
        ),
        "models": [
            {
                "name": source.model,
                "run": source.run.path.name,
                "family": source.manifest["model"].get("family", ""),
            }
            for source in collection.sources
        ],
        "measures": list(collection.measures),
        "units": collection.units,
        "facets": list_facets(collection),
        "largest_difference": LARGEST_DIFFERENCE,
        "picks": {name: text.format(passed) for name, text in PICKS.items()},
        "views": list_views(collection),
        "suites": list_region_suites(collection),
    }


def is_small(collections: Sequence[Collection | TextCollection]) -> bool:
    """Whether a page without a server that holds everything is small enough to be written unasked."""
    judged = [one for one in collections if isinstance(one, Collection)]
    rows = sum(len(one.sources) * one.scan().select(pl.len()).collect().item() for one in judged)
    numbers = sum(count_numbers(one) for one in collections if isinstance(one, TextCollection))
    return bool(rows <= SMALL and numbers <= SMALL_NUMBERS)


def gather_everything(collection: Collection | TextCollection) -> dict[str, Any]:
    """All views of a collection, for a page without a server.

    Raises NotPossible if there are too many judgements or words for one file.
    """
    if isinstance(collection, TextCollection):
        return gather_passages(collection)
    count = int(collection.scan().select("row").collect().height)
    if count > MOST_OFFLINE:
        raise NotPossible(
            f"{collection.dataset} has {count:,} judgements; a page without a server holds at most "
            f"{MOST_OFFLINE:,}: explore it without --static, or run it with --sample."
        )
    models = range(len(collection.sources))
    pairs = list(combinations(models, 2)) or [(0, 0)]
    views = list_views(collection)
    rated = "ratings" in views
    every = parse_selection(collection, {})
    return {
        "about": describe_collection(collection),
        "items": read_all_items(collection),
        "suites": {
            f"{measure} {a} {b}": tabulate_suites(collection, measure, a, b)
            for measure in collection.measures
            for a, b in pairs
        },
        "regions": {suite: average_regions(collection, suite) for suite in list_region_suites(collection)}
        if "regions" in views
        else {},
        "contexts": read_contexts(collection),
        "ratings": {
            f"{measure} {model}": read_ratings(collection, measure, model)
            for measure in collection.measures
            for model in models
            if rated
        },
        "stimuli": list_stimuli(collection, every).columns,
    }


def plain(value: Any) -> Any:
    """A value whose numbers JSON can hold: what is not finite becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
