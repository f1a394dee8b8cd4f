"""Suites in the JSON form of SyntaxGym (Gauthier et al. 2020; Hu et al. 2020)."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

from felicity.data.document import Document, read_document
from felicity.data.entry import Entry, Method
from felicity.data.positions import Where
from felicity.data.rows import LEFT_OUT, Rows
from felicity.data.suite_files import check_predictions, parse_suite
from felicity.data.suites import METRICS, Suite, build_items


def read_suites(paths: list[Path], entry: Entry, _: Method) -> Rows:
    """Items of several suite files; the entry's map `phenomena` says by pattern what each suite is about."""
    patterns = entry.maps.get("phenomena", {})
    parts = [build_items(read_suite(path, patterns)) for path in paths]
    items = pl.concat(parts)
    return Rows(items, len(items), pl.DataFrame(schema=LEFT_OUT))


def read_suite(path: Path, phenomena: Mapping[str, str] | None = None) -> Suite:
    """A suite from a file, in SyntaxGym's form or in felicity's own.

    Raises BadInput naming line and field of whatever is wrong.
    """
    document = read_document(path)
    if "meta" not in document.content:
        return parse_suite(document)
    name = document.text(("meta", "name"), "the suite's name")
    found = [what for pattern, what in (phenomena or {}).items() if fnmatchcase(name, pattern)]
    return _parse(document, name, found[0] if found else "")


def _parse(document: Document, name: str, phenomenon: str) -> Suite:
    metric = document.text(("meta", "metric"), "how tokens of a region are put together")
    if metric not in METRICS:
        document.fail(("meta", "metric"), f"is '{metric}', not one of {', '.join(METRICS)}")
    names = document.get(("region_meta",), dict, "the regions' names by number")
    regions = [(str(number), str(label)) for number, label in names.items()]
    numbers = [number for number, _ in regions]
    items: dict[str, dict[str, list[str]]] = {}
    lines: dict[str, int] = {}
    for place in range(len(document.get(("items",), list, "a list of items"))):
        where: Where = ("items", place)
        number = str(document.get((*where, "item_number"), int, "a number"))
        if number in items:
            document.fail((*where, "item_number"), f"is {number}, which another item has already")
        items[number] = _conditions(document, (*where, "conditions"), numbers)
        lines[number] = document.line(where)
    if not items:
        document.fail(("items",), "is empty")
    conditions = set.intersection(*(set(item) for item in items.values()))
    count = len(document.get(("predictions",), list, "a list of predictions"))
    places: list[Where] = [("predictions", place, "formula") for place in range(count)]
    formulas = [document.text(place, "a formula") for place in places]
    check_predictions(document, formulas, places, regions, conditions)
    return Suite(
        name=name,
        metric=metric,
        regions=tuple(regions),
        predictions=tuple(formulas),
        items=items,
        lines=lines,
        phenomenon=phenomenon,
    )


def _conditions(document: Document, where: Where, numbers: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for place in range(len(document.get(where, list, "a list of conditions"))):
        name = document.text((*where, place, "condition_name"), "the condition's name")
        if name in found:
            document.fail((*where, place, "condition_name"), f"is '{name}', which this item has already")
        regions: Where = (*where, place, "regions")
        contents: dict[str, str] = {}
        for spot in range(len(document.get(regions, list, "a list of regions"))):
            number = str(document.get((*regions, spot, "region_number"), int, "a number"))
            contents[number] = str(document.get((*regions, spot, "content"), str, "a text"))
        if list(contents) != numbers:
            document.fail(
                regions, f"numbers {', '.join(contents)}, where region_meta has {', '.join(numbers)}"
            )
        found[name] = list(contents.values())
        if not any(text.strip() for text in found[name]):
            document.fail(regions, "holds no words")
    return found
