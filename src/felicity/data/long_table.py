"""A user's n-tuples: one row a stimulus, with the columns item, condition and text.

Further columns: context (what stands before the text and is not scored), suite, phenomenon. One
condition is the right one (`good`, or what --good names); it should score above all others.
"""

import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.errors import BadInput
from felicity.core.schemas import ITEMS
from felicity.data.pairs import Columns, read_labels
from felicity.data.tables import Table

NEEDED = ("item", "condition", "text")


def is_long(table: Table) -> bool:
    """Whether a table has one row a stimulus rather than one row a pair."""
    return {"condition", "text"} <= set(table.columns)


def read_long(table: Table, columns: Columns) -> tuple[pl.DataFrame, tuple[Contrast, ...]]:
    """Items of a long table, and the one contrast between their conditions.

    Raises BadInput naming line and column of an empty cell, of a condition that stands twice, and of an
    item that lacks one.
    """
    cells = {name: read_labels(table, None, name) for name in NEEDED}
    missing = [name for name, found in cells.items() if found is None]
    if missing:
        raise BadInput(f"{table.path} has no column '{missing[0]}'; a long table has {', '.join(NEEDED)}.")
    count = len(table.rows)
    suites = read_labels(table, columns.suite, "suite") or [table.path.name.split(".")[0]] * count
    phenomena = read_labels(table, columns.phenomenon, "phenomenon") or suites
    numbers, conditions, texts = (cells[name] or [] for name in NEEDED)
    names = [f"{suite}/{number}" for suite, number in zip(suites, numbers, strict=True)]
    frame = {
        "item": names,
        "suite": suites,
        "phenomenon": phenomena,
        "condition": conditions,
        "text": texts,
        "line": table.lines,
    }
    schema = ITEMS | {"line": pl.UInt32()}
    if "context" in table.columns:
        contexts = [row.get("context") for row in table.rows]
        frame["context_text"] = [str(c) if c is not None and str(c).strip() else None for c in contexts]
        schema |= {"context_text": pl.String()}
    _refuse_repeats(table, names, conditions)
    contrast = _contrast(table, conditions, columns.good)
    _refuse_gaps(table, names, conditions, contrast)
    return pl.DataFrame(frame, schema=schema), (contrast,)


def _contrast(table: Table, conditions: list[str], good: str) -> Contrast:
    known = list(dict.fromkeys(conditions))
    if good not in known:
        raise BadInput(
            f"{table.path} has no condition '{good}'; name the right one with --good "
            f"(conditions: {', '.join(known)})."
        )
    worse = tuple(name for name in known if name != good)
    if not worse:
        raise BadInput(f"{table.path} has only the condition '{good}'; a choice needs at least two.")
    if (good, worse) == (PAIR.better, PAIR.worse):
        return PAIR
    return Contrast(name="choice", better=good, worse=worse)


def _refuse_repeats(table: Table, names: list[str], conditions: list[str]) -> None:
    first: dict[tuple[str, str], int] = {}
    for name, condition, line in zip(names, conditions, table.lines, strict=True):
        if (name, condition) in first:
            raise BadInput(
                f"{table.path}, line {line}: 'condition' is '{condition}' for item '{name}', as on line "
                f"{first[name, condition]}."
            )
        first[name, condition] = line


def _refuse_gaps(table: Table, names: list[str], conditions: list[str], contrast: Contrast) -> None:
    of: dict[str, set[str]] = {}
    for name, condition in zip(names, conditions, strict=True):
        of.setdefault(name, set()).add(condition)
    for name, line in zip(names, table.lines, strict=True):
        lacking = [c for c in (contrast.better, *contrast.worse) if c not in of[name]]
        if lacking:
            raise BadInput(
                f"{table.path}, line {line}: item '{name}' lacks the condition '{lacking[0]}'; every item "
                "needs all of them."
            )
