"""Cloze files: a row per sentence with its frame and its target, as `felicity stimuli` writes them."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.schemas import ITEMS
from felicity.data.tables import Table

NEEDED = ("item", "condition", "context_text", "text")


def is_cloze_table(table: Table) -> bool:
    """Whether a table's columns are those of a cloze file."""
    return all(name in table.columns for name in NEEDED)


def refuse_other_columns(columns: Sequence[str], path: Path) -> None:
    """Refuse a table that is not a cloze file.

    Raises BadInput naming the columns that it lacks.
    """
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise BadInput(
            f"{path} lacks {', '.join(missing)}; a cloze file has the columns item, condition, context_text "
            f"(the sentence up to the blank) and text (the target). It has {', '.join(columns)}."
        )


def read_cloze_table(
    rows: pl.DataFrame, path: Path, *, affirmative: str | None = None
) -> tuple[pl.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """Items, the conditions whose target is looked for, and the two between which the first word may change.

    affirmative: the condition whose target is looked for, as negated sentences have no one target; without
    it the targets of all conditions are. No condition is recognized by its name.

    Raises BadInput if a column is missing, a cell is empty, or an item has a condition twice; UnknownName if
    there is no such condition.
    """
    refuse_other_columns(rows.columns, path)
    given = rows.with_columns(pl.col(name).cast(pl.String) for name in NEEDED)
    for name in NEEDED:
        empty = given.with_row_index().filter(pl.col(name).is_null() | (pl.col(name).str.strip_chars() == ""))
        if empty.height:
            raise BadInput(f"{path}, row {empty['index'][0] + 1}: the cell of '{name}' is empty.")
    named = {"suite": path.stem, "phenomenon": path.stem}
    missing = {name: value for name, value in named.items() if name not in given.columns}
    items = given.with_columns(pl.lit(value).alias(name) for name, value in missing.items())
    items = items.select(*ITEMS, pl.exclude(*ITEMS))
    twice = items.with_row_index().filter(pl.struct("suite", "item", "condition").is_duplicated())
    if twice.height:
        row = twice.row(0, named=True)
        raise BadInput(
            f"{path}, row {row['index'] + 1}: item '{row['item']}' has the condition '{row['condition']}' "
            "more than once; give each sentence an item or a condition of its own."
        )
    conditions = tuple(items["condition"].unique(maintain_order=True))
    if affirmative is not None and affirmative not in conditions:
        raise UnknownName("condition", affirmative, conditions, where=str(path))
    return items, (affirmative,) if affirmative else conditions, conditions if len(conditions) == 2 else ()
