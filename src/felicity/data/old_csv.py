"""The old table form of SyntaxGym suites: one row a region, without predictions.

item_number,condition_name,region_number,region_name,content
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.data.suites import METRICS, Suite, check_prediction
from felicity.data.tables import Table, read_table

COLUMNS = ("item_number", "condition_name", "region_number", "region_name", "content")


def read_old_suite(path: Path, *, name: str, metric: str, predictions: Sequence[str]) -> Suite:
    """A suite from the old table and the predictions that it lacks.

    Raises BadInput naming the line of whatever does not fit, or the formula that does not.
    """
    table = read_table(path)
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise BadInput(f"{path} has no column '{missing[0]}'; the old form has {', '.join(COLUMNS)}.")
    if metric not in METRICS:
        raise BadInput(f"The metric is '{metric}', not one of {', '.join(METRICS)}.")
    if not predictions:
        raise BadInput("The old form has no predictions; give at least one with --prediction.")
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
            raise BadInput(f"{path}, line {line}: region {region} of this condition stands there already.")
        contents[region] = str(row["content"] or "")
        lines.setdefault(item, line)
    for item, conditions in items.items():
        for condition, contents in conditions.items():
            if list(contents) != list(regions):
                raise BadInput(
                    f"{path}: item {item}, condition '{condition}' lacks a region, or has them out of order."
                )
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
    """A suite in the JSON form of SyntaxGym."""
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
