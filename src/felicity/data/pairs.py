"""Users' tables: minimal pairs, one row each, and n-tuples, one row per stimulus.

A long table has the columns item, condition and text. Optional columns: context (the text before the
stimulus, not scored), suite, phenomenon. One condition is correct (`good`, or the one given by --good); it
should score above all others.
"""

import math
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.errors import BadInput, UnknownName
from felicity.core.schemas import ITEMS
from felicity.data.tables import Table

PAIR_CONDITIONS = ("good", "bad")
ITEM_SCHEMA = ITEMS | {"line": pl.Int64()}
# What BLiMP and its descendants call the two sentences, the suite and the phenomenon.
BLIMP_NAMES = (("sentence_good", "sentence_bad"), ("sen", "wrong_sen"), ("good_sentence", "bad_sentence"))
BLIMP_LABELS = {"suite": ("UID", "paradigm"), "phenomenon": ("linguistics_term", "phenomena")}
NEEDED = ("item", "condition", "text")
RATED = "rated"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns; None means the usual name, if the table has it.

    factors: columns whose values together name the condition of a stimulus. language: which language of a
    dataset to read, by tag, code or name, or `all`.
    """

    good: str = "good"
    bad: str = "bad"
    suite: str | None = None
    phenomenon: str | None = None
    factors: tuple[str, ...] = ()
    language: str | None = None

    @property
    def options(self) -> str:
        """The options that name these columns, each with a space before it, for a command to be repeated.

        >>> Columns(good="right", factors=("number",)).options
        ' --good right --factor number'
        """
        named = {"good": self.good, "bad": self.bad, "suite": self.suite, "phenomenon": self.phenomenon}
        given = [(name, value) for name, value in named.items() if value not in (None, name)]
        given += [("factor", value) for value in self.factors]
        return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in given)


def find_columns(table: Table, columns: Columns) -> Columns:
    """The named columns; if the table lacks the usual names, those of BLiMP and its descendants.

    >>> from pathlib import Path
    >>> table = Table(Path("zho.jsonl"), ["UID", "sentence_good", "sentence_bad"], [], [])
    >>> find_columns(table, Columns()).bad
    'sentence_bad'
    """
    known = set(table.columns)
    if (columns.good, columns.bad) != ("good", "bad") or known & {"good", "bad"}:
        return columns
    sentences = next((pair for pair in BLIMP_NAMES if set(pair) <= known), None)
    if sentences is None:
        return columns
    labels: dict[str, Any] = {
        label: getattr(columns, label) or next((name for name in names if name in known), None)
        for label, names in BLIMP_LABELS.items()
        if label not in known
    }
    return replace(columns, good=sentences[0], bad=sentences[1], **labels)


def read_pairs(table: Table, columns: Columns, *, extras: bool = True) -> pl.DataFrame:
    """Items of a table of pairs.

    Without a suite column the file is one suite; without a phenomenon column each suite is its own.

    Raises BadInput naming the line if a cell is empty or an item's name occurs twice.
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
    taken = {columns.good, columns.bad, columns.suite, columns.phenomenon}
    further = read_extras(table, taken) if extras else []
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
            ).with_columns(further)
            for condition in PAIR_CONDITIONS
        ]
    )


def read_labels(table: Table, named: str | None, usual: str) -> list[str] | None:
    """The cells of a named column, or of the usual one; None if the table has neither.

    Raises UnknownName for a named column that does not exist, BadInput naming the line of an empty cell.
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
    """Refuse empty cells.

    Raises BadInput naming its line and column.
    """
    for cell, line in zip(cells, table.lines, strict=True):
        if cell is None:
            raise BadInput(
                f"{table.path}, line {line}: '{column}' is empty; add a text or remove the line "
                f"(`felicity stimuli check {table.path}{table.options}` lists all such lines)."
            )


def _names(table: Table, suites: list[str]) -> list[str]:
    """suite/number, the number from the column `item` if it exists, else counted from 1."""
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
                f"{table.path}, line {line}: item '{name}' is already on line {first[name]}; "
                "give each pair its own number in the column 'item', or drop the column."
            )
        first[name] = line
    return names


def name_conditions(table: Table, factors: Sequence[str]) -> Table:
    """The table with a column `condition` made of the values of its factors, which stay as they are.

    >>> from pathlib import Path
    >>> rows = [{"ambiguity": "ambiguous", "comma": "no", "text": "He left."}]
    >>> table = Table(Path("garden.csv"), ["ambiguity", "comma", "text"], rows, [2])
    >>> name_conditions(table, ["ambiguity", "comma"]).rows[0]["condition"]
    'ambiguous, no'

    Raises UnknownName for a factor that is not a column, BadInput for an empty cell, or if the table has a
    column `condition` already.
    """
    if not factors:
        return table
    if "condition" in table.columns:
        raise BadInput(f"{table.path} has a column 'condition' already; leave --factor out.")
    cells = [read_labels(table, factor, factor) or [] for factor in factors]
    named = [", ".join(values) for values in zip(*cells, strict=True)]
    rows = [row | {"condition": name} for row, name in zip(table.rows, named, strict=True)]
    return replace(table, columns=[*table.columns, "condition"], rows=rows)


def is_long(table: Table) -> bool:
    """Whether a table has one row per stimulus rather than one row per pair."""
    return {"condition", "text"} <= set(table.columns)


def read_long(table: Table, columns: Columns) -> tuple[pl.DataFrame, tuple[Contrast, ...]]:
    """Items of a long table, and the one contrast between their conditions.

    Raises BadInput naming line and column of an empty cell, of a repeated condition, and of an item that
    lacks a condition.
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
    schema = ITEMS | {"line": pl.Int64()}
    if "context" in table.columns:
        frame["context_text"] = [_read_text(row.get("context")) for row in table.rows]
        schema |= {"context_text": pl.String()}
    _refuse_repeats(table, names, conditions)
    contrast = _contrast(table, conditions, columns.good)
    _refuse_gaps(table, names, conditions, contrast)
    further = read_extras(table, {columns.suite, columns.phenomenon})
    return pl.DataFrame(frame, schema=schema).with_columns(further), (contrast,)


def is_rated(table: Table) -> bool:
    """Whether a table has one rating per sentence."""
    return {"text", "rating"} <= set(table.columns)


def read_rated(table: Table, columns: Columns) -> pl.DataFrame:
    """Items of a table with the columns text and rating, and optionally context, condition, item.

    Raises BadInput naming the line of an empty text, a rating that is not a number, or a repeated item, and
    if all ratings are the same.
    """
    texts = table.column("text", option="text")
    refuse_empty(table, "text", texts)
    ratings = [_read_rating(row.get("rating"), table, line) for row, line in _numbered(table)]
    if len(set(ratings)) < 2:
        raise BadInput(
            f"All ratings of {table.path} are {ratings[0]:g}; scores cannot be compared with them."
        )
    count = len(table.rows)
    suites = read_labels(table, columns.suite, "suite") or [table.path.name.split(".")[0]] * count
    conditions = read_labels(table, None, "condition") or [RATED] * count
    names = _name_rated(table, suites, conditions)
    design: list[pl.Series] = []
    if _are_sentences(names, texts):
        # The conditions of an item are sentences, each a stimulus of its own.
        design = [pl.Series("design_item", names), pl.Series("design_condition", conditions)]
        names = [f"{name}/{condition}" for name, condition in zip(names, conditions, strict=True)]
        conditions = [RATED] * count
    frame = {
        "item": names,
        "suite": suites,
        "phenomenon": read_labels(table, columns.phenomenon, "phenomenon") or suites,
        "condition": conditions,
        "text": texts,
        "line": table.lines,
        "rating": ratings,
    }
    schema = ITEM_SCHEMA | {"rating": pl.Float64()}
    if "context" in table.columns:
        frame["context_text"] = [_read_text(row.get("context")) for row in table.rows]
        schema |= {"context_text": pl.String()}
    further = read_extras(table, {columns.suite, columns.phenomenon, "rating"})
    return pl.DataFrame(frame, schema=schema).with_columns(*design, *further)


def _name_rated(table: Table, suites: list[str], conditions: list[str]) -> list[str]:
    """suite/item; an item may occur once in each condition.

    Raises BadInput naming the line of a stimulus that occurs again.
    """
    if "item" not in table.columns:
        return _names(table, suites)
    names = [f"{suite}/{row.get('item')}" for suite, row in zip(suites, table.rows, strict=True)]
    first: dict[tuple[str, str], int] = {}
    for key, line in zip(zip(names, conditions, strict=True), table.lines, strict=True):
        if key in first:
            where = "" if key[1] == RATED else f" in the condition '{key[1]}'"
            raise BadInput(
                f"{table.path}, line {line}: item '{key[0]}'{where} is already on line {first[key]}; give a "
                "sentence one rating, or, if these are answers of several people, add a column 'rater' and "
                f"use `felicity acceptability {table.path}`."
            )
        first[key] = line
    return names


def _are_sentences(names: Sequence[str], texts: Sequence[str | None]) -> bool:
    """Whether some item has several sentences, so that its conditions tell sentences apart."""
    known: dict[str, str | None] = {}
    return any(known.setdefault(name, text) != text for name, text in zip(names, texts, strict=True))


def _numbered(table: Table) -> Iterator[tuple[dict[str, object], int]]:
    return zip(table.rows, table.lines, strict=True)


def _read_text(cell: object) -> str | None:
    return str(cell) if cell is not None and str(cell).strip() else None


def _read_rating(cell: object, table: Table, line: int) -> float:
    try:
        value = float(str(cell))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{table.path}, line {line}: 'rating' is {cell!r}, not a number.")
    return value


def read_extras(table: Table, taken: Collection[str | None]) -> list[pl.Series]:
    """Columns that have no meaning to felicity, such as frequency or list, unchanged.

    Columns of numbers are numbers, all others text; columns of lists are left out.
    """
    known = {"item", "condition", "text", "context", "suite", "phenomenon", *taken, *ITEM_SCHEMA}
    found = []
    for name in table.columns:
        cells = [row.get(name) for row in table.rows]
        if not name or name in known or any(isinstance(cell, list | dict) for cell in cells):
            continue
        texts = [None if cell is None or not str(cell).strip() else str(cell) for cell in cells]
        series = pl.Series(name, texts, dtype=pl.String)
        numbers = series.cast(pl.Float64, strict=False)
        plain = numbers.null_count() == series.null_count() and numbers.is_finite().all()
        found.append(numbers if plain and series.null_count() < len(series) else series)
    return found


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
