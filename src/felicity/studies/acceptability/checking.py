"""What is to be fixed in a table of ratings before `felicity acceptability` can use it.

A table without sentences (rater, item, rating), which `felicity report --ratings` and `felicity fit` read, is
checked for what every reader of single ratings wants.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from felicity.core.documents import is_document
from felicity.core.errors import FelicityError, UnknownName
from felicity.data import (
    ALL_LANGUAGES,
    EMPTY,
    PROBLEMS,
    UNUSABLE,
    CheckedFile,
    Columns,
    Table,
    check_items,
    read_table,
    take_table,
)
from felicity.studies.acceptability.rated_rows import parse_number
from felicity.studies.acceptability.ratings import read_ratings

# With one of these beside text and rating, a table has single ratings, or ratings in several settings.
SINGLE = ("rater", "ratings", "condition")
# What tables without sentences call the rater and the item.
RATERS = ("rater", "participant")
ITEMS = ("item", "sentence", "idx")
# What tells two ratings of an item by one rater apart.
APART = ("condition", "context", "list")


def has_single_ratings(source: Path | Table) -> bool:
    """Whether a file is a table of single ratings, or of ratings in settings, not for `felicity run`."""
    if isinstance(source, Path) and (is_document(source) or not source.is_file()):
        return False
    columns = _read(source).columns
    if {"text", "rating"} <= set(columns):
        return any(name in columns for name in SINGLE)
    return "rating" in columns and all(_first(names, columns) for names in (RATERS, ITEMS))


def _read(source: Path | Table) -> Table:
    return source if isinstance(source, Table) else read_table(source)


def check_ratings(source: Path | Table, *, labels: Sequence[str] = ()) -> CheckedFile:
    """Empty cells, ratings that are not numbers, stray spaces, and what a reader of ratings refuses.

    labels: further columns in which no cell may be empty.

    Raises UnknownName for a label that is not a column.
    """
    table = _read(source)
    for name in labels:
        if name not in table.columns:
            raise UnknownName("column", name, table.columns, where=str(table.path))
    shown = [place for place, row in enumerate(table.rows) if str(row.get("role") or "target") == "target"]
    targets = Table(
        table.path, table.columns, [table.rows[k] for k in shown], [table.lines[k] for k in shown]
    )
    found = _check_cells(targets, labels)
    if "text" not in table.columns:
        item = _first(ITEMS, table.columns)
        if found.is_empty():
            found = _check_raters(targets)
        items = len({str(row.get(item)) for row in targets.rows})
        return CheckedFile(items=items, rows=len(table.rows), problems=found, counted="ratings")
    firsts: dict[str, int] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        if str(row.get("text") or "").strip():
            firsts.setdefault(str(row["text"]), line)
    texts = pl.DataFrame(
        {"line": list(firsts.values()), "text": list(firsts), "item": list(firsts)},
        schema={"line": pl.Int64, "text": pl.String, "item": pl.String},
    )
    stray = check_items(texts.with_columns(pl.lit("text").alias("condition")))
    sentences = len(firsts)
    if found.is_empty():
        try:
            sentences = len(read_ratings(table).sentences)
        except FelicityError as error:
            found = pl.DataFrame([(None, UNUSABLE, "", str(error))], schema=PROBLEMS, orient="row")
        # Without raters it is a table for `felicity run` too, which has a reader of its own.
        if found.is_empty() and not {"rater", "ratings"} & set(table.columns):
            found = _check_run(table)
    problems = pl.concat([found, stray]).sort("line", maintain_order=True, nulls_last=True)
    return CheckedFile(items=sentences, rows=len(table.rows), problems=problems, counted="ratings")


def _check_run(table: Table) -> pl.DataFrame:
    """What `felicity run` refuses."""
    try:
        take_table(table, Columns(language=ALL_LANGUAGES))
    except FelicityError as error:
        return pl.DataFrame([(None, UNUSABLE, "", str(error))], schema=PROBLEMS, orient="row")
    return pl.DataFrame(schema=PROBLEMS)


def _first(names: Sequence[str], columns: Sequence[str]) -> str:
    return next((name for name in names if name in columns), "")


def _check_cells(table: Table, labels: Sequence[str]) -> pl.DataFrame:
    """Empty cells, and ratings that are not numbers, line by line."""
    needed = [_first(RATERS, table.columns), _first(ITEMS, table.columns), "rating"]
    if "text" in table.columns:
        needed = [name for name in ("text", "rating", "rater") if name in table.columns]
    rows = []
    for row, line in zip(table.rows, table.lines, strict=True):
        cells = {name: str("" if row.get(name) is None else row[name]).strip() for name in (*needed, *labels)}
        rows += [(line, EMPTY, name, "") for name, cell in cells.items() if not cell]
        if cells["rating"] and parse_number(cells["rating"]) is None:
            rows.append((line, UNUSABLE, "rating", f"'rating' is '{cells['rating']}', not a number"))
    return pl.DataFrame(rows, schema=PROBLEMS, orient="row")


def _check_raters(table: Table) -> pl.DataFrame:
    """Items that a rater has rated twice, and ratings of one rater only."""
    rater, item = _first(RATERS, table.columns), _first(ITEMS, table.columns)
    apart = [name for name in APART if name in table.columns]
    firsts: dict[tuple[str, ...], int] = {}
    rows: list[tuple[int | None, str, str, str]] = []
    for row, line in zip(table.rows, table.lines, strict=True):
        key = tuple(str(row.get(name)) for name in (rater, item, *apart))
        if key in firsts:
            told = f"'{key[1]}' is rated twice by '{key[0]}', as on line {firsts[key]}"
            rows.append((line, UNUSABLE, item, told))
        firsts.setdefault(key, line)
    raters = {key[0] for key in firsts}
    if len(raters) == 1:
        rows.append((None, UNUSABLE, rater, "there is one rater, with whom nobody can be compared"))
    return pl.DataFrame(rows, schema=PROBLEMS, orient="row")
