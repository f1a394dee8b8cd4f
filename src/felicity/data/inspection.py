"""What a dataset contains, and what is to be fixed in a user's file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.documents import is_document
from felicity.core.errors import FelicityError
from felicity.data.catalogue import STARTER, STARTER_TITLE, Dataset, read_dataset
from felicity.data.cloze_table import is_cloze_table
from felicity.data.entry import load_entries
from felicity.data.pairs import PAIR_CONDITIONS, Columns, find_columns, is_long, is_rated, name_conditions
from felicity.data.tables import Table, read_table

PROBLEMS = {"line": pl.UInt32(), "problem": pl.String(), "column": pl.String(), "detail": pl.String()}
STRAY = r"^\s|\s$|\s\s|[\t\n\r\u00a0\u200b\ufeff]|\s[.,!?;:](?:\s|$)"
EMPTY, STRAY_SPACE, IDENTICAL, DUPLICATE = "empty cell", "stray space", "identical texts", "duplicate item"
REVERSED, UNUSABLE = "reversed pair", "cannot be used"


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a file contains, as far as it can be read, and what is to be fixed in it, as rows of PROBLEMS."""

    items: int
    stimuli: int
    problems: pl.DataFrame


def check_file(path: Path, columns: Columns) -> Checked:
    """Everything in a user's file that `felicity run` would refuse, or mention in its audit.

    A table is checked cell by cell before it is read, so that all its empty cells are listed; then it is
    read as for a run. What the reader refuses is a problem too.
    """
    found = pl.DataFrame(schema=PROBLEMS)
    items = None
    if not is_document(path):
        items = _lay_out(name_conditions(read_table(path), columns.factors), columns)
        found = _find_empty(items) if items is not None else found
    try:
        read = read_dataset(str(path), columns).items
    except FelicityError as error:
        if items is None and found.is_empty():
            raise
        # An empty cell is the first thing that the reader refuses; it is in the list already.
        if found.is_empty():
            row = (None, UNUSABLE, "", str(error))
            found = pl.DataFrame([row], schema=PROBLEMS, orient="row")
    else:
        items = read if items is None else items
    whole = pl.DataFrame(schema=PROBLEMS) if items is None else check_items(items)
    return Checked(
        items=0 if items is None else items["item"].n_unique(),
        stimuli=0 if items is None else len(items),
        problems=pl.concat([found, whole]).sort("line", maintain_order=True, nulls_last=True),
    )


def check_items(items: pl.DataFrame) -> pl.DataFrame:
    """Rows of PROBLEMS of stimuli: stray spaces, conditions with the same text, items that occur twice.

    A pair of sentences that another item has the other way round is reported as reversed.
    """
    numbered = items if "line" in items.columns else items.with_row_index("line", offset=1)
    named = numbered.get_column("column", default=None)
    column = pl.lit("text") if named is None else pl.col("column")
    context = pl.col("context_text") if "context_text" in items.columns else pl.lit(None, dtype=pl.String)
    filled = numbered.with_columns(column.alias("column"), context.alias("context")).filter(
        pl.col("text").is_not_null()
    )
    stray = filled.filter(pl.col("text").str.contains(STRAY)).select(
        "line", pl.lit(STRAY_SPACE).alias("problem"), "column", pl.col("text").alias("detail")
    )
    again = filled.filter(pl.struct("item", "context", "text").is_duplicated()).group_by(
        "item", "context", "text", maintain_order=True
    )
    identical = again.agg(pl.col("line").max(), pl.col("column").unique(maintain_order=True)).select(
        "line",
        pl.lit(IDENTICAL).alias("problem"),
        pl.col("column").list.join(", "),
        pl.col("text").alias("detail"),
    )
    rows = [stray, identical, _find_repeats(filled)]
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
    # Only items with the same set of texts can be the same item, so few have to be looked at closely.
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


def _lay_out(table: Table, columns: Columns) -> pl.DataFrame | None:
    """The cells of a table of pairs or conditions: line, column, item, condition and text, empty or not."""
    if is_rated(table) or is_cloze_table(table):
        return None
    if is_long(table):
        cells = {name: [_text(row.get(name)) for row in table.rows] for name in ("item", "condition", "text")}
        suites = [str(row.get(columns.suite or "suite", "")) for row in table.rows]
        frame = {"line": table.lines, "column": ["text"] * len(table.rows)} | cells
        laid = pl.DataFrame(frame).with_columns(pl.format("{}/{}", pl.Series(suites), "item").alias("item"))
        contexts = [_text(row.get("context")) for row in table.rows]
        return laid.with_columns(pl.Series("context_text", contexts, dtype=pl.String))
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


def _find_empty(laid: pl.DataFrame) -> pl.DataFrame:
    """Empty cells of the text, the item and the condition."""
    empty = [
        laid.filter(pl.col(name).is_null()).select(
            "line",
            pl.lit(EMPTY).alias("problem"),
            pl.col("column") if name == "text" else pl.lit(name).alias("column"),
            pl.lit("").alias("detail"),
        )
        for name in ("item", "condition", "text")
    ]
    return pl.concat([frame.cast(PROBLEMS) for frame in empty])  # type: ignore[arg-type]


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
