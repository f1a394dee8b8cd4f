"""Rows of any table into items, by the templates of a catalogue entry; no row is dropped in silence."""

from dataclasses import dataclass

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import ITEMS, Schema
from felicity.data.entry import Entry, Method
from felicity.data.tables import Table
from felicity.data.templates import Unfit, fill_template, list_fields

# Kept columns that must hold numbers.
NUMBERS = ("rating", "bias")
LEFT_OUT = {"file": pl.String(), "line": pl.UInt32(), "reason": pl.String()}


@dataclass(frozen=True)
class Rows:
    """Items, how many rows they were made of, and every row that was left out, with the reason."""

    items: pl.DataFrame
    read: int
    left_out: pl.DataFrame


def read_rows(table: Table, entry: Entry, method: Method) -> Rows:
    """Items of one file.

    Raises BadInput where the file lacks a field that the entry names.
    """
    _refuse_other_fields(table, entry, method)
    made: list[dict[str, object]] = []
    left: list[tuple[str, int, str]] = []
    seen: dict[tuple[str, str], int] = {}
    used = 0
    for row, line in zip(table.rows, table.lines, strict=True):
        try:
            stimuli = _stimuli(row, line, table, entry, method)
            for stimulus in stimuli:
                key = str(stimulus["item"]), str(stimulus["condition"])
                if key in seen:
                    raise Unfit(f"item '{key[0]}', condition '{key[1]}' stands already on line {seen[key]}")
        except Unfit as reason:
            left.append((table.path.name, line, str(reason)))
            continue
        seen |= {(str(s["item"]), str(s["condition"])): line for s in stimuli}
        made += stimuli
        used += 1
    return Rows(_frame(made, method), used, pl.DataFrame(left, schema=LEFT_OUT, orient="row"))


def _refuse_other_fields(table: Table, entry: Entry, method: Method) -> None:
    templates = [method.item, method.suite, method.phenomenon, *method.keep.values()]
    templates += [t for s in method.stimuli for t in (s.condition, s.text, s.context)]
    needed = [name for template in templates for name in list_fields(template)]
    if method.where:
        # Files that the method does not apply to need not have its fields.
        needed = list(method.where)
    known = {*table.columns, "file"}
    missing = [name for name in needed if name not in known]
    if missing:
        raise BadInput(f"{table.path} has no field '{missing[0]}'; it is not a file of {entry.name}.")


def _stimuli(
    row: dict[str, object], line: int, table: Table, entry: Entry, method: Method
) -> list[dict[str, object]]:
    # The file's own name may be a field: some datasets keep a factor in it.
    fields = {"file": table.path.name.split(".")[0]} | row
    for name, value in method.where.items():
        if row.get(name) != value:
            raise Unfit(f"'{name}' is not {str(value).lower()}")
    suite = fill_template(method.suite, fields, entry.maps) if method.suite else entry.name
    phenomenon = fill_template(method.phenomenon, fields, entry.maps) if method.phenomenon else suite
    shared = {
        "item": f"{suite}/{fill_template(method.item, fields, entry.maps)}",
        "suite": suite,
        "phenomenon": phenomenon,
        "line": line,
    } | {name: _keep(name, template, fields, entry) for name, template in method.keep.items()}
    return [
        shared
        | {
            "condition": fill_template(stimulus.condition, fields, entry.maps),
            "context_text": _context(stimulus.context, fields, entry),
            "text": fill_template(stimulus.text, fields, entry.maps),
        }
        for stimulus in method.stimuli
    ]


def _keep(name: str, template: str, fields: dict[str, object], entry: Entry) -> str:
    text = fill_template(template, fields, entry.maps)
    if name in NUMBERS:
        try:
            float(text)
        except ValueError as error:
            raise Unfit(f"'{name}' is {text!r}, not a number") from error
    return text


def _context(template: str, fields: dict[str, object], entry: Entry) -> str | None:
    """A context may be absent where the dataset says so with a `?`."""
    if template.startswith("?"):
        try:
            return fill_template(template[1:], fields, entry.maps)
        except Unfit:
            return None
    return fill_template(template, fields, entry.maps) if template else None


def _frame(made: list[dict[str, object]], method: Method) -> pl.DataFrame:
    schema: Schema = ITEMS | {"line": pl.UInt32()}
    if any(stimulus.context for stimulus in method.stimuli):
        schema |= {"context_text": pl.String()}
    kept: Schema = {name: pl.String() for name in method.keep}
    frame = pl.DataFrame(made, schema=schema | kept)
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in NUMBERS if name in kept)
