"""Rows of any table as items, by the templates of a catalogue entry; every dropped row is reported."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.articles import choose_article
from felicity.core.errors import BadInput
from felicity.core.schemas import ITEMS, Schema
from felicity.data.entry import Entry, Method
from felicity.data.tables import Table

PART = re.compile(r"\{([^{}|]+)((?:\|[a-z]+(?::[^{}|]*)?)*)\}")
ARTICLE = "(a|an)"
# Kept columns that must be numbers.
NUMBERS = ("rating", "bias")
LEFT_OUT = {"file": pl.String(), "line": pl.Int64(), "reason": pl.String()}

Row = Mapping[str, object]
Maps = Mapping[str, Mapping[str, str]]


class RowMismatch(ValueError):
    """A row that does not fit the template; the message is the reason."""


def list_fields(template: str) -> list[str]:
    """The fields that a template uses.

    >>> list_fields("{s1} {s2|article:target}")
    ['s1', 's2', 'target']
    """
    found: list[str] = []
    for name, chain in PART.findall(template):
        found += [name, *(argument for kind, argument in _chain(chain) if kind == "article")]
    return found


def fill_template(template: str, row: Row, maps: Maps) -> str:
    """The template filled with the row's cells, exactly as in the file.

    Raises RowMismatch if a cell is empty, not text, or does not fit a filter.

    >>> fill_template("{s|head}", {"s": "A cat is an animal"}, {})
    'A cat is an'
    """
    return PART.sub(lambda part: _fill(part, row, maps), template)


def _fill(part: re.Match[str], row: Row, maps: Maps) -> str:
    name = part[1]
    text = _cell(row, name)
    for kind, argument in _chain(part[2]):
        if kind == "article":
            text = text.replace(ARTICLE, choose_article(_cell(row, argument)))
        elif kind == "map":
            if text not in maps[argument]:
                raise RowMismatch(f"'{name}' is {text!r}, not one of {', '.join(maps[argument])}")
            text = maps[argument][text]
        else:
            text = FILTERS[kind](text, argument, name)
    return text


def _chain(written: str) -> list[tuple[str, str]]:
    parts = [step.partition(":") for step in written.split("|")[1:]]
    return [(kind, argument) for kind, _, argument in parts]


def _cell(row: Row, name: str) -> str:
    cell = row.get(name)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float):
        return str(cell)
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        raise RowMismatch(f"'{name}' is empty")
    if not isinstance(cell, str):
        raise RowMismatch(f"'{name}' is not text")
    return cell


def _head(text: str, _: str, name: str) -> str:
    words = text.split()
    if len(words) < 2:
        raise RowMismatch(f"'{name}' is a single word, with nothing before it")
    return " ".join(words[:-1])


def _sign(text: str, _: str, name: str) -> str:
    try:
        value = float(text)
    except ValueError as error:
        raise RowMismatch(f"'{name}' is {text!r}, not a number") from error
    return "positive" if value > 0 else "negative" if value < 0 else "zero"


def _side(place: int) -> Callable[[str, str, str], str]:
    def cut(text: str, mark: str, name: str) -> str:
        if mark not in text:
            raise RowMismatch(f"'{name}' is {text!r}, without '{mark}'")
        return text.rpartition(mark)[place]

    return cut


FILTERS: dict[str, Callable[[str, str, str], str]] = {
    "head": _head,
    "last": lambda text, _, __: text.split()[-1],
    "before": _side(0),
    "after": _side(2),
    "first": lambda text, _, __: text.split("|")[0],
    "sign": _sign,
    "strip": lambda text, _, __: text.strip(),
    "tabs": lambda text, _, __: text.replace("\t", " "),
    # Chinese words that a file separates by spaces, as they are written.
    "joined": lambda text, _, __: "".join(text.split()),
}


@dataclass(frozen=True)
class ItemRows:
    """Items, the number of rows they were built from, and every row left out, with the reason."""

    items: pl.DataFrame
    read: int
    left_out: pl.DataFrame


def read_item_rows(table: Table, entry: Entry, method: Method) -> ItemRows:
    """Items of one file.

    Raises BadInput if the file lacks a field that the entry names.
    """
    _refuse_other_fields(table, entry, method)
    made: list[dict[str, object]] = []
    left: list[tuple[str, int, str]] = []
    seen: dict[tuple[str, str], int] = {}
    used = 0
    # The names of the file and of its folder may be fields: some datasets encode a factor in them.
    named: dict[str, object] = {
        "file": table.path.name.split(".")[0],
        "folder": _name_folder(table.path, entry),
    }
    for row, line in zip(table.rows, table.lines, strict=True):
        try:
            stimuli = _stimuli(row, line, named, entry, method)
            for stimulus in stimuli:
                key = str(stimulus["item"]), str(stimulus["condition"])
                if key in seen:
                    raise RowMismatch(f"item '{key[0]}', condition '{key[1]}' is already on line {seen[key]}")
        except RowMismatch as reason:
            left.append((table.path.name, line, str(reason)))
            continue
        seen |= {(str(s["item"]), str(s["condition"])): line for s in stimuli}
        made += stimuli
        used += 1
    return ItemRows(_frame(made, method), used, pl.DataFrame(left, schema=LEFT_OUT, orient="row"))


def _refuse_other_fields(table: Table, entry: Entry, method: Method) -> None:
    templates = [method.item, method.suite, method.phenomenon, *method.keep.values()]
    templates += [t for s in method.stimuli for t in (s.condition, s.text, s.context)]
    needed = [name for template in templates for name in list_fields(template)]
    if method.where:
        # Files to which the method does not apply need not have its fields.
        needed = list(method.where)
    known = {*table.columns, "file", "folder"}
    missing = [name for name in needed if name not in known]
    if missing:
        raise BadInput(f"{table.path} has no field '{missing[0]}'; it is not a file of {entry.name}.")


def _stimuli(
    row: dict[str, object], line: int, named: dict[str, object], entry: Entry, method: Method
) -> list[dict[str, object]]:
    fields = named | row
    for name, value in method.where.items():
        if row.get(name) != value:
            raise RowMismatch(f"'{name}' is not {str(value).lower()}")
    suite = fill_template(method.suite, fields, entry.maps) if method.suite else entry.name
    phenomenon = fill_template(method.phenomenon, fields, entry.maps) if method.phenomenon else suite
    shared = {
        "item": f"{suite}/{fill_template(method.item, fields, entry.maps)}",
        "suite": suite,
        "phenomenon": phenomenon,
        "line": line,
    } | {name: _keep(name, template, fields, entry) for name, template in method.keep.items()}
    texts = [_fill_optional(stimulus.text, fields, entry) for stimulus in method.stimuli]
    return [
        shared
        | {
            "condition": fill_template(stimulus.condition, fields, entry.maps),
            "context_text": _fill_optional(stimulus.context, fields, entry),
            "text": text,
        }
        for stimulus, text in zip(method.stimuli, texts, strict=True)
        if text is not None
    ]


def _name_folder(path: Path, entry: Entry) -> str:
    """The folder of a file as the entry has it, whatever the folder of the copy is called."""
    name = path.name.removesuffix(".gz")
    return next((Path(file).parent.name for file in entry.files if Path(file).name == name), "")


def _keep(name: str, template: str, fields: dict[str, object], entry: Entry) -> str | None:
    text = _fill_optional(template, fields, entry)
    if name in NUMBERS and text is not None:
        try:
            float(text)
        except ValueError as error:
            raise RowMismatch(f"'{name}' is {text!r}, not a number") from error
    return text


def _fill_optional(template: str, fields: dict[str, object], entry: Entry) -> str | None:
    """A text, context or kept column may be absent if the entry marks it with `?`."""
    if template.startswith("?"):
        try:
            return fill_template(template[1:], fields, entry.maps)
        except RowMismatch:
            return None
    return fill_template(template, fields, entry.maps) if template else None


def _frame(made: list[dict[str, object]], method: Method) -> pl.DataFrame:
    schema: Schema = ITEMS | {"line": pl.Int64()}
    if any(stimulus.context for stimulus in method.stimuli):
        schema |= {"context_text": pl.String()}
    kept: Schema = {name: pl.String() for name in method.keep}
    frame = pl.DataFrame(made, schema=schema | kept)
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in NUMBERS if name in kept)
