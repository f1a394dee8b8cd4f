"""What a dataset contains, and problems in a user's table of pairs."""

import re
from typing import Any

import polars as pl

from felicity.data.catalogue import STARTER, STARTER_TITLE, Dataset
from felicity.data.entry import load_entries
from felicity.data.pairs import Columns, find_columns
from felicity.data.tables import Table

PROBLEMS = {"line": pl.UInt32(), "problem": pl.String(), "column": pl.String(), "detail": pl.String()}
STRAY = re.compile(r"^\s|\s$|\s\s|[\t\n\r\u00a0\u200b\ufeff]|\s[.,!?;:](?:\s|$)")


def check_pairs(table: Table, columns: Columns) -> pl.DataFrame:
    """One row per problem: empty cell, stray space, identical pair, duplicate sentence or pair."""
    columns = find_columns(table, columns)
    good = table.column(columns.good, option="good")
    bad = table.column(columns.bad, option="bad")
    found: list[tuple[int, str, str, str]] = []
    first_pair: dict[tuple[str, str], int] = {}
    for line, left, right in zip(table.lines, good, bad, strict=True):
        for column, cell in ((columns.good, left), (columns.bad, right)):
            if cell is None:
                found.append((line, "empty cell", column, ""))
            elif STRAY.search(cell):
                found.append((line, "stray space", column, cell))
        if left is None or right is None:
            continue
        if left == right:
            found.append((line, "identical pair", f"{columns.good}, {columns.bad}", left))
        if (left, right) in first_pair:
            found.append((line, "duplicate pair", columns.good, f"as on line {first_pair[left, right]}"))
        elif (right, left) in first_pair:
            found.append((line, "reversed pair", columns.good, f"of line {first_pair[right, left]}"))
        first_pair.setdefault((left, right), line)
    return pl.DataFrame(found, schema=PROBLEMS, orient="row")


def describe_dataset(dataset: Dataset, *, rows: int) -> dict[str, Any]:
    """What a dataset contains: sizes, suites, licence, rules, and its first items."""
    items = dataset.items
    entry = load_entries().get(dataset.name)
    suites = items.group_by("suite", "phenomenon", maintain_order=True).agg(pl.col("item").n_unique())
    firsts = items["item"].unique(maintain_order=True).head(rows)
    shown = items.filter(pl.col("item").is_in(firsts.to_list()))
    licence = "Apache-2.0" if dataset.name == STARTER else "the file's own"
    return {
        "name": dataset.name,
        "title": entry.title if entry else STARTER_TITLE if dataset.name == STARTER else "",
        "items": items["item"].n_unique(),
        "stimuli": len(items),
        "licence": entry.licence if entry else licence,
        "home": entry.home if entry else "",
        "version": entry.version if entry else "",
        "rule": dataset.method,
        "rules": {name: method.meaning for name, method in entry.methods.items()} if entry else {},
        "quirks": list(entry.quirks) if entry else [],
        "notes": list(dataset.notes),
        "left_out": dataset.left_out.group_by("reason", maintain_order=True).len(name="rows").to_dicts(),
        "suites": [{"name": s, "phenomenon": p, "items": n} for s, p, n in suites.iter_rows()],
        "phenomena": items["phenomenon"].unique(maintain_order=True).to_list(),
        "conditions": items["condition"].unique(maintain_order=True).to_list(),
        "examples": _examples(shown),
    }


def _examples(shown: pl.DataFrame) -> list[dict[str, Any]]:
    named = shown.get_column("context_text", default=None)
    contexts = [None] * len(shown) if named is None else named.to_list()
    found: dict[str, dict[str, Any]] = {}
    rows = zip(shown["item"], shown["condition"], contexts, shown["text"], strict=True)
    for item, condition, context, text in rows:
        whole = f"{context} {text}" if context else text
        found.setdefault(item, {"item": item})[condition] = whole
    return list(found.values())
