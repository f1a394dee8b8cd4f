"""What a dataset contains, and what is to be fixed in a user's file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from felicity.core.documents import is_document
from felicity.core.errors import FelicityError, UnknownName
from felicity.core.files import refuse_name
from felicity.data.catalogue import STARTER, STARTER_TITLE, Dataset, read_dataset, take_table
from felicity.data.cloze_table import NEEDED, is_cloze_table
from felicity.data.entry import load_entries
from felicity.data.languages import describe_tags
from felicity.data.pairs import PAIR_CONDITIONS, Columns, find_columns, is_long, is_rated, name_conditions
from felicity.data.tables import Table, read_table

PROBLEMS = {"line": pl.Int64(), "problem": pl.String(), "column": pl.String(), "detail": pl.String()}
STRAY = r"^\s|\s$|\s\s|[\t\n\r\u00a0\u200b\ufeff]|\s[.,!?;:](?:\s|$)"
CURLY = "[\u2018\u2019\u201c\u201d]"
ENDED = r"""[.!?\u2026\u3002\uff01\uff1f:;\u0964\u0965\u061f\u06d4]["'\u2019\u201d\u00bb)\]]*\s*$"""
MIXED = r"\p{Latin}[\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}]\p{Latin}"
EMPTY, STRAY_SPACE, IDENTICAL, DUPLICATE = "empty cell", "stray space", "identical texts", "duplicate item"
REVERSED, UNUSABLE, BARS = "reversed pair", "cannot be used", "region bars"
QUOTES, UNENDED, SCRIPTS = "curly quotes", "missing full stop", "mixed scripts"


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """What a file contains, as far as it can be read, and what is to be fixed in it, as rows of PROBLEMS.

    rows: how many rows of the kind `counted`. dataset: the stimuli of its lines without empty cells, if they
    can be used.
    """

    items: int
    rows: int
    problems: pl.DataFrame
    counted: Literal["stimuli", "ratings"] = "stimuli"
    dataset: Dataset | None = None


def check_file(path: Path, columns: Columns) -> CheckedFile:
    """Everything in a user's file that `felicity run` would refuse, or mention in its audit.

    A table is checked cell by cell before it is read, so that all its empty cells are listed; then it is
    read as for a run. What the reader refuses is a problem too.

    Raises UnknownName if the table lacks a column that `columns` names.
    """
    refuse_name(path)
    if is_document(path):
        dataset = read_dataset(str(path), columns)
        return _gather(dataset.items, check_items(dataset.items), dataset)
    return check_table(read_table(path), columns)


def check_table(table: Table, columns: Columns) -> CheckedFile:
    """The same of the rows of a file or a frame.

    Raises UnknownName if the table lacks a column that `columns` names.
    """
    path = table.path
    named = (*columns.factors, columns.suite, columns.phenomenon)
    for name in named:
        if name is not None and name not in table.columns:
            raise UnknownName("column", name, table.columns, where=str(path))
    empty = _find_empty(table, columns.factors)
    lines = set(empty["line"])
    whole = [(row, line) for row, line in zip(table.rows, table.lines, strict=True) if line not in lines]
    rest = Table(path, table.columns, [row for row, _ in whole], [line for _, line in whole])
    rest = name_conditions(rest, columns.factors)
    items = _lay_out(rest, columns)
    problems = pl.concat([empty, _find_empty(rest, _list_needed(rest, columns)), _find_words(rest)])
    dataset = None
    try:
        dataset = take_table(table, columns)
    except FelicityError as error:
        # An empty cell is the first thing that the reader refuses; it is in the list already.
        if problems.is_empty():
            row = (None, UNUSABLE, "", str(error))
            problems = pl.DataFrame([row], schema=PROBLEMS, orient="row")
        else:
            dataset = _take_whole_lines(table, columns, set(problems["line"]))
    else:
        items = dataset.items if is_rated(rest) or is_cloze_table(rest) else items
        bars = [(line, BARS, "", "taken out before scoring") for line in dataset.barred]
        problems = pl.concat([problems, pl.DataFrame(bars, schema=PROBLEMS, orient="row")])
    return _gather(items, pl.concat([problems, check_items(items)]), dataset)


def _take_whole_lines(table: Table, columns: Columns, faulty: set[int]) -> Dataset | None:
    """The stimuli of the other lines, if they can be used without the faulty ones."""
    rows = [(row, line) for row, line in zip(table.rows, table.lines, strict=True) if line not in faulty]
    rest = replace(table, rows=[row for row, _ in rows], lines=[line for _, line in rows])
    try:
        return take_table(rest, columns) if rows else None
    except FelicityError:
        return None


def _gather(items: pl.DataFrame, problems: pl.DataFrame, dataset: Dataset | None) -> CheckedFile:
    return CheckedFile(
        dataset=dataset,
        items=items["item"].n_unique(),
        rows=len(items),
        problems=problems.sort("line", maintain_order=True, nulls_last=True),
    )


def check_items(items: pl.DataFrame) -> pl.DataFrame:
    """Rows of PROBLEMS of stimuli: how texts are written, conditions with one text, items that occur twice.

    A pair of sentences that another item has the other way round is reported as reversed. A text without
    final punctuation is reported if others have it.
    """
    numbered = items if "line" in items.columns else items.with_row_index("line", offset=1)
    named = numbered.get_column("column", default=None)
    column = pl.lit("text") if named is None else pl.col("column")
    context = pl.col("context_text") if "context_text" in items.columns else pl.lit(None, dtype=pl.String)
    filled = numbered.with_columns(column.alias("column"), context.alias("context")).filter(
        pl.col("text").is_not_null()
    )
    text, ended = pl.col("text"), pl.col("text").str.contains(ENDED)
    written = {
        STRAY_SPACE: text.str.contains(STRAY),
        QUOTES: text.str.contains(CURLY),
        SCRIPTS: text.str.contains(MIXED),
        UNENDED: ~ended & ended.any(),
    }
    badly = [
        filled.filter(where).select(
            "line", pl.lit(problem).alias("problem"), "column", pl.col("text").alias("detail")
        )
        for problem, where in written.items()
    ]
    again = filled.filter(pl.struct("item", "context", "text").is_duplicated()).group_by(
        "item", "context", "text", maintain_order=True
    )
    identical = again.agg(pl.col("line").max(), pl.col("column").unique(maintain_order=True)).select(
        "line",
        pl.lit(IDENTICAL).alias("problem"),
        pl.col("column").list.join(", "),
        pl.col("text").alias("detail"),
    )
    rows = [*badly, identical, _find_repeats(filled)]
    return pl.concat([frame.cast(PROBLEMS) for frame in rows]).sort("line", maintain_order=True)  # type: ignore[arg-type]


def _find_repeats(filled: pl.DataFrame) -> pl.DataFrame:
    """Items whose texts are those of an earlier item, condition by condition or the other way round."""
    texts = pl.format("{}\n{}", pl.col("context").fill_null(""), "text")
    each = filled.group_by("item", maintain_order=True).agg(
        pl.col("line").min(),
        pl.col("column").first(),
        pl.struct("condition", texts.alias("text")).sort_by("condition").alias("as_is"),
        texts.sort().alias("sorted"),
    )
    # Only items with the same set of texts can be the same item, so few have to be compared closely.
    suspects = each.filter(pl.col("sorted").is_duplicated())
    first: dict[str, tuple[int, list[dict[str, str]]]] = {}
    rows = []
    for line, column, as_is, texts_of in suspects.select("line", "column", "as_is", "sorted").iter_rows():
        key = "\0".join(texts_of)
        if key not in first:
            first[key] = (line, as_is)
        elif as_is == first[key][1]:
            rows.append((line, DUPLICATE, column, f"as on line {first[key][0]}"))
        elif len(as_is) == len(PAIR_CONDITIONS):
            rows.append((line, REVERSED, column, f"of line {first[key][0]}"))
    return pl.DataFrame(rows, schema=PROBLEMS, orient="row")


def _lay_out(table: Table, columns: Columns) -> pl.DataFrame:
    """The cells of a table: line, column, item, condition, text and context_text, empty or not."""
    if is_rated(table) or is_cloze_table(table) or is_long(table):
        context = "context_text" if is_cloze_table(table) else "context"
        read = {"item": "item", "condition": "condition", "text": "text", "context_text": context}
        cells = {name: [_text(row.get(column)) for row in table.rows] for name, column in read.items()}
        if "item" not in table.columns:
            cells["item"] = [str(line) for line in table.lines]
        suites = [str(row.get(columns.suite or "suite", "")) for row in table.rows]
        laid = pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)).with_columns(
            pl.Series("line", table.lines, dtype=pl.Int64), pl.lit("text").alias("column")
        )
        return laid.with_columns(pl.format("{}/{}", pl.Series(suites, dtype=pl.String), "item").alias("item"))
    columns = find_columns(table, columns)
    return pl.concat(
        pl.DataFrame(
            {
                "line": table.lines,
                "column": [getattr(columns, condition)] * len(table.rows),
                "item": [str(line) for line in table.lines],
                "condition": [condition] * len(table.rows),
                "text": table.column(getattr(columns, condition), option=condition),
            }
        )
        for condition in PAIR_CONDITIONS
    )


def _text(cell: object) -> str | None:
    return None if cell is None or not str(cell).strip() else str(cell)


def _list_needed(table: Table, columns: Columns) -> list[str]:
    """The columns of a table in which the reader wants every cell filled."""
    if is_cloze_table(table) and not is_rated(table):
        return list(NEEDED)
    named = find_columns(table, columns)
    if is_rated(table):
        needed = ["text", "rating", "condition"]
    else:
        needed = ["item", "condition", "text"] if is_long(table) else [named.good, named.bad]
    needed += [named.suite or "suite", named.phenomenon or "phenomenon"]
    return [name for name in dict.fromkeys(needed) if name in table.columns]


def _find_empty(table: Table, names: Sequence[str]) -> pl.DataFrame:
    """Empty cells of the named columns."""
    rows = [
        (line, EMPTY, name, "")
        for name in names
        for row, line in zip(table.rows, table.lines, strict=True)
        if _text(row.get(name)) is None
    ]
    return pl.DataFrame(rows, schema=PROBLEMS, orient="row")


def _find_words(table: Table) -> pl.DataFrame:
    """Ratings that are not numbers."""
    rows = []
    if is_rated(table):
        cells = pl.Series([_text(row.get("rating")) for row in table.rows], dtype=pl.String)
        numbers = cells.str.strip_chars().cast(pl.Float64, strict=False)
        wrong = cells.is_not_null() & ~numbers.is_finite().fill_null(value=False)
        rows = [
            (line, UNUSABLE, "rating", f"'{cell}' is not a number")
            for line, cell, bad in zip(table.lines, cells, wrong, strict=True)
            if bad
        ]
    return pl.DataFrame(rows, schema=PROBLEMS, orient="row")


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
        "languages": describe_tags(dataset.languages),
        "home": entry.home if entry else "",
        "version": entry.version if entry else "",
        "rule": dataset.method,
        "rules": {name: method.meaning for name, method in entry.methods.items()} if entry else {},
        "score": dict(dataset.score),
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
    first_rows: dict[str, dict[str, Any]] = {}
    rows = zip(shown["item"], shown["condition"], contexts, shown["text"], strict=True)
    for item, condition, context, text in rows:
        whole = f"{context} {text}" if context else text
        first_rows.setdefault(item, {"item": item})[condition] = whole
    return list(first_rows.values())
