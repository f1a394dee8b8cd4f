"""Datasets by name, and users' own files: stimuli in one form, whatever they came from."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.errors import BadInput, UnknownName
from felicity.data.document import is_document
from felicity.data.entry import Entry, load_entries
from felicity.data.fetch import get_copy
from felicity.data.formats import FORMATS
from felicity.data.long_table import is_long, read_long
from felicity.data.pairs import Columns, read_pairs
from felicity.data.rows import LEFT_OUT
from felicity.data.starter import read_starter
from felicity.data.suites import build_items
from felicity.data.syntaxgym import read_suite
from felicity.data.tables import is_table, read_table

STARTER = "starter"
STARTER_TITLE = "felicity's own English minimal pairs, 60 in each of 12 phenomena"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Stimuli ready to be scored, and how they are to be judged.

    rule: the judging rule; method: the name it goes by for this dataset. left_out: rows that are no
    stimuli, each with file, line and reason. notes: what a reader should be told of this copy.
    """

    name: str
    items: pl.DataFrame
    rule: str
    method: str
    contrasts: tuple[Contrast, ...] = ()
    cross: bool = False
    targets: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    rows: int = 0
    left_out: pl.DataFrame
    notes: tuple[str, ...] = ()


def list_datasets() -> list[dict[str, str]]:
    """Every dataset that has a name: title, licence, rules and home."""
    built_in = {
        "name": STARTER,
        "title": STARTER_TITLE,
        "licence": "Apache-2.0",
        "rules": "pair",
        "home": "built in",
    }
    return [
        built_in,
        *(
            {
                "name": entry.name,
                "title": entry.title,
                "licence": entry.licence,
                "rules": ", ".join(entry.methods),
                "home": entry.home,
            }
            for entry in load_entries().values()
        ),
    ]


def find_entry(name: str) -> Entry:
    """The catalogue's entry for a name.

    Raises UnknownName.
    """
    entries = load_entries()
    if name not in entries:
        raise UnknownName("dataset", name, [*entries, STARTER], hint="see `felicity data ls`")
    return entries[name]


def read_dataset(
    name: str,
    columns: Columns | None = None,
    *,
    rule: str | None = None,
    folder: Path | None = None,
    without: Collection[str] = (),
) -> Dataset:
    """A dataset by its name, or from a file: pairs, n-tuples in a long table, or a suite with regions.

    For a file, `columns.suite` names the column; for a dataset it narrows to that suite. `folder` is
    where the user has a copy. Rules in `without` are not taken unless `rule` names them.

    Raises UnknownName, or BadInput where a file cannot be used.
    """
    columns = columns or Columns()
    if name == STARTER or name in load_entries():
        if name == STARTER and rule not in (None, "pair"):
            raise UnknownName(f"rule for '{STARTER}'", str(rule), ["pair"])
        whole = _read_starter() if name == STARTER else _read_entry(find_entry(name), rule, folder, without)
        items = narrow(whole.items, suite=columns.suite, phenomenon=columns.phenomenon)
        return Dataset(**(vars(whole) | {"items": items}))
    path = Path(name)
    if not is_table(name) and not is_document(path):
        known = [*load_entries(), STARTER]
        raise UnknownName("dataset", name, known, hint="see `felicity data ls`, or name a file that exists")
    if rule is not None:
        raise BadInput(f"A file says by its form how it is judged; leave --rule out for {name}.")
    return _read_file(path, columns)


def read_items(name: str, columns: Columns | None = None) -> pl.DataFrame:
    """The items of a dataset or file, read by the rule its authors meant."""
    return read_dataset(name, columns).items


def _read_starter() -> Dataset:
    items = read_starter()
    return Dataset(
        name=STARTER,
        items=items,
        rule="contrast",
        method="pair",
        contrasts=(PAIR,),
        rows=len(items) // 2,
        left_out=pl.DataFrame(schema=LEFT_OUT),
    )


def _read_entry(entry: Entry, rule: str | None, folder: Path | None, without: Collection[str]) -> Dataset:
    name, method = entry.method(rule, without=without)
    copy = get_copy(entry, folder)
    rows = FORMATS[entry.format](copy.paths, entry, method)
    if rows.items.is_empty():
        reason = rows.left_out["reason"][0] if len(rows.left_out) else "the files are empty"
        raise BadInput(f"No row of {copy.paths[0].parent} is a stimulus of {entry.name}: {reason}.")
    return Dataset(
        name=entry.name,
        items=rows.items,
        rule=method.rule,
        method=name,
        contrasts=method.contrasts,
        cross=method.cross,
        targets=method.targets,
        change=method.change,
        rows=rows.read + len(rows.left_out),
        left_out=rows.left_out,
        notes=(copy.note,) if copy.note else (),
    )


def _read_file(path: Path, columns: Columns) -> Dataset:
    nothing = pl.DataFrame(schema=LEFT_OUT)
    if is_document(path):
        items = narrow(build_items(read_suite(path)), suite=columns.suite, phenomenon=columns.phenomenon)
        return Dataset(
            name=path.name, items=items, rule="formula", method="formula", rows=len(items), left_out=nothing
        )
    table = read_table(path)
    if is_long(table):
        items, contrasts = read_long(table, columns)
        method = "pair" if contrasts == (PAIR,) else "choice"
    else:
        items, contrasts, method = read_pairs(table, columns), (PAIR,), "pair"
    return Dataset(
        name=path.name,
        items=items,
        rule="contrast",
        method=method,
        contrasts=contrasts,
        rows=len(table.rows),
        left_out=nothing,
    )


def narrow(items: pl.DataFrame, *, suite: str | None, phenomenon: str | None) -> pl.DataFrame:
    """Only the items of one suite or phenomenon.

    Raises UnknownName suggesting the nearest.
    """
    for column, value in (("suite", suite), ("phenomenon", phenomenon)):
        if value is None:
            continue
        known = items[column].unique().to_list()
        if value not in known:
            raise UnknownName(column, value, known)
        items = items.filter(pl.col(column) == value)
    return items
