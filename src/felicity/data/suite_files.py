"""A suite of regions and predictions from a file: felicity's own TOML or JSON form.

name = "agreement"
phenomenon = "number agreement"            # left out: the suite is its own
metric = "sum"                             # left out: sum; or mean, median, range, max, min
regions = ["subject", "verb", "end"]       # left out: 1, 2, 3
predictions = ["(verb;%match%) < (verb;%mismatch%)"]

[[items]]
match = ["The cats", "annoy", "Tim."]
mismatch = ["The cats", "annoys", "Tim."]
"""

from felicity.core.errors import BadInput
from felicity.data.document import Document
from felicity.data.suites import METRICS, Suite, check_prediction

FIELDS = ("name", "phenomenon", "metric", "regions", "predictions", "items")


def parse_suite(document: Document) -> Suite:
    """The suite that a document describes.

    Raises BadInput naming line and field of whatever is missing, misspelt or does not fit.
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
    )


def check_predictions(
    document: Document,
    formulas: list[str],
    places: list[tuple[str | int, ...]],
    regions: list[tuple[str, str]],
    conditions: set[str],
) -> None:
    """Every formula parsed, its regions and conditions looked up; an error names its line."""
    if not formulas:
        document.fail(("predictions",), "is empty; write at least one formula")
    for formula, place in zip(formulas, places, strict=True):
        try:
            check_prediction(formula, regions, conditions)
        except BadInput as error:
            document.fail(place, f"does not work: {str(error).rstrip('.')}")


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
                document.fail((*where, name), "holds no words")
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
    for place, item in enumerate(items.values()):
        for condition, contents in item.items():
            if len(contents) != len(names):
                document.fail(
                    ("items", place, condition),
                    f"has {len(contents)} regions where there should be {len(names)}",
                )
    return [(str(place + 1), name) for place, name in enumerate(names)]
