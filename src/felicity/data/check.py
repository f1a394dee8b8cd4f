"""What a table of pairs has wrong with it, by line, before a model ever sees it."""

import re

import polars as pl

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
