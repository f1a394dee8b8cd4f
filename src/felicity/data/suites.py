"""Suites of regions and predictions into items: each condition a sentence, each region a span of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.formulas import ALL_REGIONS, list_regions, parse_formula
from felicity.core.schemas import ITEMS

METRICS = ("sum", "mean", "median", "range", "max", "min")
REGION = pl.Struct({"region": pl.String(), "name": pl.String(), "start": pl.UInt32(), "end": pl.UInt32()})
SUITE_ITEMS = ITEMS | {
    "line": pl.UInt32(),
    "regions": pl.List(REGION),
    "metric": pl.String(),
    "predictions": pl.List(pl.String()),
}
# Before these no space is written.
CLOSING = re.compile(r"[,.;:!?)]")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Items by number, each with its conditions, each with the contents of its regions in order.

    regions: the number and name of each region. phenomenon: empty means the suite is its own.
    """

    name: str
    metric: str
    regions: tuple[tuple[str, str], ...]
    predictions: tuple[str, ...]
    items: Mapping[str, Mapping[str, Sequence[str]]]
    lines: Mapping[str, int]
    phenomenon: str = ""


def build_items(suite: Suite) -> pl.DataFrame:
    """A row per item and condition, the sentence in one piece and every region by its characters."""
    rows = []
    for number, conditions in suite.items.items():
        for condition, contents in conditions.items():
            text, spans = join_regions(contents)
            rows.append(
                {
                    "item": f"{suite.name}/{number}",
                    "suite": suite.name,
                    "phenomenon": suite.phenomenon or suite.name,
                    "condition": condition,
                    "text": text,
                    "line": suite.lines.get(number, 0),
                    "regions": [
                        {"region": region, "name": name, "start": start, "end": end}
                        for (region, name), (start, end) in zip(suite.regions, spans, strict=True)
                    ],
                    "metric": suite.metric,
                    "predictions": list(suite.predictions),
                }
            )
    return pl.DataFrame(rows, schema=SUITE_ITEMS)


def join_regions(contents: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The sentence and the span of each region; an empty region is an empty span.

    >>> join_regions(["The cat", " ", "purrs ", ", then sleeps", "."])
    ('The cat purrs, then sleeps.', [(0, 7), (7, 7), (8, 13), (13, 26), (26, 27)])
    """
    text = ""
    spans = []
    for content in contents:
        clean = " ".join(content.split())
        if clean and text and not CLOSING.match(clean):
            text += " "
        start = len(text) if clean else len(text.rstrip())
        text += clean
        spans.append((start, len(text)))
    return text, spans


def check_prediction(formula: str, suite_regions: Sequence[tuple[str, str]], conditions: set[str]) -> None:
    """Nothing, when a formula parses and speaks of regions and conditions that are there.

    Raises BadInput.
    """
    known = {part for pair in suite_regions for part in pair} | {ALL_REGIONS}
    for place in list_regions(parse_formula(formula)):
        if place.condition not in conditions:
            raise BadInput(
                f"Formula '{formula}' names the condition '{place.condition}', but there are only "
                f"{', '.join(sorted(conditions))}."
            )
        if place.region not in known:
            raise BadInput(
                f"Formula '{formula}' names the region '{place.region}', but there are only "
                f"{', '.join(number for number, _ in suite_regions)}."
            )
