"""Minimal pairs in a table into items: one row per sentence, two per pair."""

from dataclasses import dataclass, replace

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.schemas import ITEMS
from felicity.data.tables import Table

PAIR_CONDITIONS = ("good", "bad")
ITEM_SCHEMA = ITEMS | {"line": pl.UInt32()}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which column holds what; None means the usual name where the table has it."""

    good: str = "good"
    bad: str = "bad"
    suite: str | None = None
    phenomenon: str | None = None


# What BLiMP and its kin call the two sentences, the suite and the phenomenon.
KIN = (("sentence_good", "sentence_bad"), ("sen", "wrong_sen"), ("good_sentence", "bad_sentence"))
KIN_LABELS = {"suite": ("UID", "paradigm"), "phenomenon": ("linguistics_term", "phenomena")}


def find_columns(table: Table, columns: Columns) -> Columns:
    """The columns asked for; where the usual names are not in the table, those of BLiMP and its kin.

    >>> from pathlib import Path
    >>> table = Table(Path("zho.jsonl"), ["UID", "sentence_good", "sentence_bad"], [], [])
    >>> find_columns(table, Columns()).bad
    'sentence_bad'
    """
    known = set(table.columns)
    if (columns.good, columns.bad) != ("good", "bad") or known & {"good", "bad"}:
        return columns
    sentences = next((pair for pair in KIN if set(pair) <= known), None)
    if sentences is None:
        return columns
    labels = {
        label: getattr(columns, label) or next((name for name in names if name in known), None)
        for label, names in KIN_LABELS.items()
        if label not in known
    }
    return replace(columns, good=sentences[0], bad=sentences[1], **labels)


def read_pairs(table: Table, columns: Columns) -> pl.DataFrame:
    """Items of a table of pairs.

    Without a suite column the file is one suite; without a phenomenon column each suite is its own.

    Raises BadInput naming the line where a cell is empty or an item's name stands twice.
    """
    columns = find_columns(table, columns)
    texts = {
        "good": table.column(columns.good, option="good"),
        "bad": table.column(columns.bad, option="bad"),
    }
    for condition, cells in texts.items():
        refuse_empty(table, getattr(columns, condition), cells)
    suites = read_labels(table, columns.suite, "suite") or [table.path.name.split(".")[0]] * len(table.rows)
    phenomena = read_labels(table, columns.phenomenon, "phenomenon") or suites
    names = _names(table, suites)
    return pl.concat(
        [
            pl.DataFrame(
                {
                    "item": names,
                    "suite": suites,
                    "phenomenon": phenomena,
                    "condition": [condition] * len(names),
                    "text": texts[condition],
                    "line": table.lines,
                },
                schema=ITEM_SCHEMA,
            )
            for condition in PAIR_CONDITIONS
        ]
    )


def read_labels(table: Table, named: str | None, usual: str) -> list[str] | None:
    """The cells of a named column, or of the usual one where the table has it; None where it has not.

    Raises UnknownName for a named column that is not there, BadInput naming the line of an empty cell.
    """
    if named is None and usual not in table.columns:
        return None
    name = named or usual
    if name not in table.columns:
        raise UnknownName("column", name, table.columns, where=str(table.path))
    cells = [row.get(name) for row in table.rows]
    labels = [None if cell is None or not str(cell).strip() else str(cell) for cell in cells]
    refuse_empty(table, name, labels)
    return [label for label in labels if label is not None]


def refuse_empty(table: Table, column: str, cells: list[str | None]) -> None:
    """Stop at an empty cell.

    Raises BadInput naming its line and column.
    """
    for cell, line in zip(cells, table.lines, strict=True):
        if cell is None:
            raise BadInput(
                f"{table.path}, line {line}: '{column}' is empty; fill it in or remove the line "
                f"(`felicity data check {table.path}` lists all such lines)."
            )


def _names(table: Table, suites: list[str]) -> list[str]:
    """suite/number, the number from the column `item` where there is one, else counted from 1."""
    if "item" in table.columns:
        numbers = [str(row.get("item")) for row in table.rows]
    else:
        seen: dict[str, int] = {}
        numbers = []
        for suite in suites:
            seen[suite] = seen.get(suite, 0) + 1
            numbers.append(str(seen[suite]))
    names = [f"{suite}/{number}" for suite, number in zip(suites, numbers, strict=True)]
    first: dict[str, int] = {}
    for name, line in zip(names, table.lines, strict=True):
        if name in first:
            raise BadInput(
                f"{table.path}, line {line}: item '{name}' stands already on line {first[name]}; "
                "give each pair its own number in the column 'item', or drop the column."
            )
        first[name] = line
    return names
