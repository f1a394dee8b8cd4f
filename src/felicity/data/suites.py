"""Suites with regions and predictions: felicity's own form, SyntaxGym's JSON, and its old tables.

The old table form has one row per region and no predictions:
item_number,condition_name,region_number,region_name,content
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.documents import Document, Where, read_document
from felicity.core.errors import BadInput
from felicity.core.formulas import ALL_REGIONS, list_regions, parse_prediction
from felicity.core.regions import is_seamless
from felicity.core.schemas import ITEMS
from felicity.data.entry import Entry, Method
from felicity.data.rows import LEFT_OUT, ItemRows
from felicity.data.tables import Table, read_table

METRICS = ("sum", "mean", "median", "range", "max", "min")
REGION = pl.Struct({"region": pl.String(), "name": pl.String(), "start": pl.UInt32(), "end": pl.UInt32()})
SUITE_ITEMS = ITEMS | {
    "line": pl.Int64(),
    "regions": pl.List(REGION),
    "metric": pl.String(),
    "predictions": pl.List(pl.String()),
}
# No space is written before these.
CLOSING = re.compile(r"[,.;:!?)]")
BOUNDARIES = ("auto", "corrected", "plain")
FIELDS = ("name", "phenomenon", "metric", "boundary", "regions", "predictions", "items")
COLUMNS = ("item_number", "condition_name", "region_number", "region_name", "content")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Items by number, each with its conditions, each with the contents of its regions in order.

    regions: the number and name of each region. phenomenon: if empty, the suite is its own. boundary: how the
    tokens of a region are summed: `corrected` for trailing white space, `plain`, or `auto`: corrected where
    the model can.
    """

    name: str
    metric: str
    regions: tuple[tuple[str, str], ...]
    predictions: tuple[str, ...]
    items: Mapping[str, Mapping[str, Sequence[str]]]
    lines: Mapping[str, int]
    phenomenon: str = ""
    boundary: str = "auto"


def build_suite_items(suite: Suite) -> pl.DataFrame:
    """One row per item and condition, with the whole sentence and the characters of every region."""
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
        if clean and text and not CLOSING.match(clean) and not is_seamless(text, clean):
            text += " "
        start = len(text) if clean else len(text.rstrip())
        text += clean
        spans.append((start, len(text)))
    return text, spans


def check_prediction(formula: str, suite_regions: Sequence[tuple[str, str]], conditions: set[str]) -> None:
    """Check that a formula is valid and uses existing regions and conditions.

    Raises BadInput.
    """
    numbers = {number for number, _ in suite_regions}
    names = [name for _, name in suite_regions]
    regions = {*numbers, *names, ALL_REGIONS}
    for region in list_regions(parse_prediction(formula)):
        if region.condition not in conditions:
            raise BadInput(
                f"Formula '{formula}' names the condition '{region.condition}', but there are only "
                f"{', '.join(sorted(conditions))}."
            )
        if region.region not in regions:
            raise BadInput(
                f"Formula '{formula}' names the region '{region.region}', but there are only "
                f"{', '.join(number for number, _ in suite_regions)}."
            )
        if region.region not in numbers and names.count(region.region) > 1:
            raise BadInput(
                f"Formula '{formula}' names the region '{region.region}', but several have that name; use "
                "numbers."
            )


def find_clash(regions: Sequence[tuple[str, str]]) -> str | None:
    """The first region name that is the number of another region, so that a formula could mean either.

    >>> find_clash([("1", "2"), ("2", "verb")])
    '2'
    """
    numbers = {number for number, _ in regions}
    return next(
        (name for number, name in regions if name != number and name in {*numbers, ALL_REGIONS}), None
    )


def parse_suite(document: Document) -> Suite:
    """The suite that a document describes.

    Raises BadInput naming line and field of anything missing, misspelt or inconsistent.
    """
    document.only((), FIELDS)
    name = document.text(("name",), "the suite's name")
    metric = document.text(("metric",)) if "metric" in document.content else "sum"
    if metric not in METRICS:
        document.fail(("metric",), f"is '{metric}', not one of {', '.join(METRICS)}")
    items, lines = _items(document)
    regions = _regions(document, items)
    conditions = set.intersection(*(set(item) for item in items.values()))
    for number, item in items.items():
        if set(item) != conditions:
            odd = sorted(set(item) - conditions)[0]
            document.fail(
                ("items", list(items).index(number)), f"has a condition '{odd}' that another item lacks"
            )
    predictions = document.texts(("predictions",), "a list of formulas")
    check_predictions(
        document, predictions, [("predictions", n) for n in range(len(predictions))], regions, conditions
    )
    return Suite(
        name=name,
        metric=metric,
        regions=tuple(regions),
        predictions=tuple(predictions),
        items=items,
        lines=lines,
        phenomenon=document.text(("phenomenon",)) if "phenomenon" in document.content else "",
        boundary=_boundary(document, ("boundary",), document.content),
    )


def _boundary(document: Document, where: Where, fields: Mapping[str, Any]) -> str:
    """How the tokens of a region are summed, if the suite says so."""
    boundary = document.text(where) if "boundary" in fields else "auto"
    if boundary not in BOUNDARIES:
        document.fail(where, f"is '{boundary}', not one of {', '.join(BOUNDARIES)}")
    return boundary


def check_predictions(
    document: Document,
    formulas: list[str],
    places: list[tuple[str | int, ...]],
    regions: list[tuple[str, str]],
    conditions: set[str],
) -> None:
    """Check every formula, its regions and its conditions; an error names its line."""
    if not formulas:
        document.fail(("predictions",), "is empty; write at least one formula")
    for formula, path in zip(formulas, places, strict=True):
        try:
            check_prediction(formula, regions, conditions)
        except BadInput as error:
            document.fail(path, f"does not work: {str(error).rstrip('.')}")


def _items(document: Document) -> tuple[dict[str, dict[str, list[str]]], dict[str, int]]:
    items: dict[str, dict[str, list[str]]] = {}
    lines: dict[str, int] = {}
    if not document.get(("items",), list, "a list of items"):
        document.fail(("items",), "is empty; write at least one item")
    for place, item in enumerate(document.content["items"]):
        where = ("items", place)
        document.get(where, dict, "a table of conditions, each a list of regions")
        if not item:
            document.fail(where, "has no conditions")
        conditions = {str(name): document.texts((*where, name), "a list of regions") for name in item}
        for name, contents in conditions.items():
            if not any(text.strip() for text in contents):
                document.fail((*where, name), "has no words")
        items[str(place + 1)] = conditions
        lines[str(place + 1)] = document.line(where)
    return items, lines


def _regions(document: Document, items: dict[str, dict[str, list[str]]]) -> list[tuple[str, str]]:
    first = next(iter(next(iter(items.values())).values()))
    names = [str(place + 1) for place in range(len(first))]
    if "regions" in document.content:
        names = document.texts(("regions",), "a list of names")
        if len(set(names)) != len(names) or not all(name.strip() for name in names):
            document.fail(("regions",), "names a region twice, or with an empty name")
        clash = find_clash([(str(place + 1), name) for place, name in enumerate(names)])
        if clash:
            document.fail(("regions",), f"calls a region '{clash}', which is the number of another")
    for place, item in enumerate(items.values()):
        for condition, contents in item.items():
            if len(contents) != len(names):
                document.fail(
                    ("items", place, condition),
                    f"has {len(contents)} regions where there should be {len(names)}",
                )
    return [(str(place + 1), name) for place, name in enumerate(names)]


def read_suites(paths: list[Path], entry: Entry, _: Method) -> ItemRows:
    """Items of several suite files; the entry's map `phenomena` gives each suite's phenomenon by pattern."""
    patterns = entry.maps.get("phenomena", {})
    parts = [build_suite_items(read_suite(path, patterns)) for path in paths]
    items = pl.concat(parts)
    return ItemRows(items, len(items), pl.DataFrame(schema=LEFT_OUT))


def read_suite(path: Path, phenomena: Mapping[str, str] | None = None) -> Suite:
    """A suite from a file, in SyntaxGym's format or in felicity's own.

    Raises BadInput naming line and field of any error.
    """
    document = read_document(path)
    if "meta" not in document.content:
        return parse_suite(document)
    name = document.text(("meta", "name"), "the suite's name")
    matching = [what for pattern, what in (phenomena or {}).items() if fnmatchcase(name, pattern)]
    return _parse(document, name, matching[0] if matching else "")


def _parse(document: Document, name: str, phenomenon: str) -> Suite:
    metric = document.text(("meta", "metric"), "how the tokens of a region are combined")
    if metric not in METRICS:
        document.fail(("meta", "metric"), f"is '{metric}', not one of {', '.join(METRICS)}")
    names = document.get(("region_meta",), dict, "the regions' names by number")
    regions = [(str(number), str(label)) for number, label in names.items()]
    numbers = [number for number, _ in regions]
    clash = find_clash(regions)
    if clash:
        document.fail(("region_meta",), f"calls a region '{clash}', which is the number of another")
    items: dict[str, dict[str, list[str]]] = {}
    lines: dict[str, int] = {}
    for index in range(len(document.get(("items",), list, "a list of items"))):
        where: Where = ("items", index)
        number = str(document.get((*where, "item_number"), int, "a number"))
        if number in items:
            document.fail((*where, "item_number"), f"is {number}, which another item has already")
        items[number] = _conditions(document, (*where, "conditions"), numbers)
        lines[number] = document.line(where)
    if not items:
        document.fail(("items",), "is empty")
    conditions = set.intersection(*(set(item) for item in items.values()))
    count = len(document.get(("predictions",), list, "a list of predictions"))
    places: list[Where] = [("predictions", index, "formula") for index in range(count)]
    formulas = [document.text(index, "a formula") for index in places]
    check_predictions(document, formulas, places, regions, conditions)
    return Suite(
        name=name,
        metric=metric,
        regions=tuple(regions),
        predictions=tuple(formulas),
        items=items,
        lines=lines,
        phenomenon=phenomenon,
        boundary=_boundary(document, ("meta", "boundary"), document.content["meta"]),
    )


def _conditions(document: Document, where: Where, numbers: list[str]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for place in range(len(document.get(where, list, "a list of conditions"))):
        name = document.text((*where, place, "condition_name"), "the condition's name")
        if name in texts:
            document.fail((*where, place, "condition_name"), f"is '{name}', which this item has already")
        regions: Where = (*where, place, "regions")
        contents: dict[str, str] = {}
        for spot in range(len(document.get(regions, list, "a list of regions"))):
            number = str(document.get((*regions, spot, "region_number"), int, "a number"))
            if number in contents:
                document.fail((*regions, spot, "region_number"), f"is {number} for the second time")
            contents[number] = str(document.get((*regions, spot, "content"), str, "a text"))
        if list(contents) != numbers:
            document.fail(
                regions, f"numbers {', '.join(contents)}, where region_meta has {', '.join(numbers)}"
            )
        texts[name] = list(contents.values())
        if not any(text.strip() for text in texts[name]):
            document.fail(regions, "has no words")
    return texts


def read_old_suite(path: Path, *, name: str, metric: str, predictions: Sequence[str]) -> Suite:
    """A suite from a table in the old format, with its predictions given separately.

    Raises BadInput naming the line or the formula with an error.
    """
    table = read_table(path)
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise BadInput(f"{path} has no column '{missing[0]}'; the old format has {', '.join(COLUMNS)}.")
    if metric not in METRICS:
        raise BadInput(f"The metric is '{metric}', not one of {', '.join(METRICS)}.")
    if not predictions:
        raise BadInput("The old format has no predictions; give at least one with --prediction.")
    regions: dict[str, str] = {}
    items: dict[str, dict[str, dict[str, str]]] = {}
    lines: dict[str, int] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        item, condition, region = (_cell(table, row, column, line) for column in COLUMNS[:3])
        label = str(row["region_name"] or region)
        if regions.setdefault(region, label) != label:
            raise BadInput(
                f"{path}, line {line}: 'region_name' is '{label}', but was '{regions[region]}' before."
            )
        contents = items.setdefault(item, {}).setdefault(condition, {})
        if region in contents:
            raise BadInput(f"{path}, line {line}: region {region} of this condition occurs twice.")
        contents[region] = str(row["content"] or "")
        lines.setdefault(item, line)
    for item, conditions in items.items():
        for condition, contents in conditions.items():
            if list(contents) != list(regions):
                raise BadInput(
                    f"{path}: item {item}, condition '{condition}' lacks a region, or has them out of order."
                )
    clash = find_clash(list(regions.items()))
    if clash:
        raise BadInput(f"{path} calls a region '{clash}', which is the number of another; rename it.")
    shared = set.intersection(*(set(conditions) for conditions in items.values()))
    for formula in predictions:
        check_prediction(formula, list(regions.items()), shared)
    return Suite(
        name=name,
        metric=metric,
        regions=tuple(regions.items()),
        predictions=tuple(predictions),
        items={i: {c: list(r.values()) for c, r in conditions.items()} for i, conditions in items.items()},
        lines=lines,
    )


def write_suite(suite: Suite) -> str:
    """A suite in SyntaxGym's JSON format."""
    content: dict[str, Any] = {
        "meta": {"name": suite.name, "metric": suite.metric, "comment": "", "reference": "", "author": ""},
        "region_meta": dict(suite.regions),
        "predictions": [{"type": "formula", "formula": formula} for formula in suite.predictions],
        "items": [
            {
                "item_number": int(number),
                "conditions": [
                    {
                        "condition_name": condition,
                        "regions": [
                            {"region_number": int(region), "content": content}
                            for (region, _), content in zip(suite.regions, contents, strict=True)
                        ],
                    }
                    for condition, contents in conditions.items()
                ],
            }
            for number, conditions in suite.items.items()
        ],
    }
    return json.dumps(content, indent=4, ensure_ascii=False) + "\n"


def _cell(table: Table, row: dict[str, object], column: str, line: int) -> str:
    text = str(row[column] if row[column] is not None else "").strip()
    if not text or (column != "condition_name" and not text.isdecimal()):
        what = "empty" if not text else f"'{text}', not a number"
        raise BadInput(f"{table.path}, line {line}: '{column}' is {what}.")
    return text
