"""Datasets by name, and users' own files, as items with a judging rule."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.documents import is_document
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import refuse_name
from felicity.core.frames import as_polars, is_frame
from felicity.core.regions import BAR, split_bars
from felicity.core.registry import BrokenPlugin
from felicity.data.benchmarks import load_benchmarks
from felicity.data.cloze_table import is_cloze_table, read_cloze_table
from felicity.data.entry import Entry, Method, load_entries
from felicity.data.formats import FORMATS, join_rows
from felicity.data.languages import ALL_LANGUAGES, choose_languages, match_languages
from felicity.data.locate import Copy, get_copy
from felicity.data.pairs import (
    Columns,
    find_columns,
    is_long,
    is_rated,
    name_conditions,
    read_long,
    read_pairs,
    read_rated,
)
from felicity.data.people import read_people
from felicity.data.rows import LEFT_OUT, ItemRows
from felicity.data.suites import build_suite_items, read_suite
from felicity.data.tables import Table, is_table, read_table

STARTER = "starter"
FRAME = "frame"
STARTER_TITLE = "felicity's own English minimal pairs, 60 in each of 12 phenomena"


def read_starter() -> pl.DataFrame:
    """Items of the built-in suite, one file per phenomenon."""
    with as_file(files("felicity.data") / "starter") as folder:
        parts = [
            read_pairs(read_table(path), Columns(), extras=False).with_columns(phenomenon=pl.lit(path.stem))
            for path in sorted(folder.glob("*.tsv"))
        ]
    return pl.concat(parts)


def sample_items(items: pl.DataFrame, size: int | None, *, seed: int) -> pl.DataFrame:
    """At most `size` items per suite, with all their conditions; all items without a size.

    Raises BadInput for a size below one.
    """
    if size is None:
        return items
    if size < 1:
        raise BadInput(f"A sample of {size} items per suite is empty; give at least 1.")
    names = items.select("suite", "item").unique(maintain_order=True)
    rng = np.random.default_rng(seed)
    chosen: list[str] = []
    for _, suite in names.group_by("suite", maintain_order=True):
        places = rng.permutation(len(suite))[:size]
        chosen += suite["item"].gather(np.sort(places)).to_list()
    return items.filter(pl.col("item").is_in(chosen))


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Stimuli ready to be scored, and how they are judged.

    rule: the judging rule; method: its name for this dataset. left_out: rows that are not stimuli, each with
    file, line and reason. notes: remarks on this copy for the reader. score: what its number and its
    sentences are called, by the fields of Headline, where that is not the rule's. boundary: how the tokens
    of a region are summed. barred: lines whose texts had bars between regions, which were taken out.
    languages: the tags of its items' languages, if stated. people: what people answered, by suite (see
    `read_people`). measures: those of the method, if it has its own.
    """

    name: str
    items: pl.DataFrame
    rule: str
    method: str
    contrasts: tuple[Contrast, ...] = ()
    cross: bool = False
    targets: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    score: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 0
    left_out: pl.DataFrame
    notes: tuple[str, ...] = ()
    boundary: str = "auto"
    barred: tuple[int, ...] = ()
    languages: tuple[str, ...] = ()
    people: pl.DataFrame | None = None
    measures: tuple[str, ...] = ()


def list_datasets(language: str | None = None) -> list[dict[str, Any]]:
    """Every named dataset: title, languages, licence, rules and home; only those in `language`, if given.

    Raises UnknownName for a language that is not known.
    """
    built_in = {
        "name": STARTER,
        "title": STARTER_TITLE,
        "languages": ["en"],
        "licence": "Apache-2.0",
        "rules": "pair",
        "home": "built in",
    }
    rows = [built_in, *(_describe(name) for name in load_entries())]
    rows += [
        {
            "name": one.name,
            "title": f"Benchmark: {one.title}",
            "languages": [one.language],
            "licence": "those of its datasets",
            "rules": ", ".join(task.name for task in one.tasks),
            "home": one.home,
        }
        for one in load_benchmarks().values()
    ]
    return [row for row in rows if language is None or match_languages(language, row["languages"])]


def _describe(name: str) -> dict[str, Any]:
    """A row of the list; for a broken outside package, what is wrong with it."""
    try:
        entry = load_entries()[name]
    except BrokenPlugin as error:
        broken = dict.fromkeys(("licence", "rules", "home"), "")
        return {"name": name, "title": str(error), "languages": []} | broken
    return {
        "name": entry.name,
        "title": entry.title,
        "languages": list(entry.languages),
        "licence": entry.licence,
        "rules": ", ".join(entry.methods),
        "home": entry.home,
    }


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
    affirmative: str | None = None,
) -> Dataset:
    """A dataset by its name, or from a file: pairs, n-tuples in a long table, or a suite with regions.

    For a file, `columns.suite` names the column; for a dataset it selects that suite. `columns.language`
    selects one language of several, or `all` of them. `folder` is the user's
    own copy. Rules in `without` are not used unless `rule` names them. `affirmative` is the condition of a
    cloze file whose targets are looked for; by default those of all conditions are.

    Raises UnknownName, or BadInput if a file cannot be used.
    """
    columns = columns or Columns()
    if name == STARTER or name in load_entries():
        _refuse_affirmative(affirmative, name)
        if name == STARTER and rule not in (None, "pair"):
            raise UnknownName(f"rule for '{STARTER}'", str(rule), ["pair"])
        if name == STARTER:
            choose_languages(STARTER, ["en"], columns.language)
            whole = _read_starter()
        else:
            whole = _read_entry(find_entry(name), rule, folder, without, columns.language)
        items = filter_items(whole.items, suite=columns.suite, phenomenon=columns.phenomenon)
        return Dataset(**(vars(whole) | {"items": items}))
    path = Path(name)
    if not is_table(name) and not is_document(path):
        known = [*load_entries(), STARTER]
        raise UnknownName("dataset", name, known, hint="see `felicity data ls`, or give a file that exists")
    if rule is not None:
        raise BadInput(f"The format of a file decides how it is judged; omit --rule for {name}.")
    return _choose_language(_read_file(path, columns, affirmative), columns.language)


def _refuse_affirmative(affirmative: str | None, name: str) -> None:
    if affirmative is not None:
        raise BadInput(
            f"--affirmative is for cloze files: {name} is none, or says itself whose targets count; omit it."
        )


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
        languages=("en",),
    )


def _read_entry(
    entry: Entry, rule: str | None, folder: Path | None, without: Collection[str], language: str | None
) -> Dataset:
    name, method = entry.method(rule, without=without)
    parts = entry.narrow(language)
    copies = [get_copy(part, folder) for part in parts]
    rows = join_rows([_read_part(part, copy, method) for part, copy in zip(parts, copies, strict=True)])
    people = [read_people(part, copy) for part, copy in zip(parts, copies, strict=True)]
    asked = [frame for frame in people if frame is not None]
    return Dataset(
        name=entry.name,
        items=rows.items,
        rule=method.rule,
        method=name,
        contrasts=method.contrasts,
        cross=method.cross,
        targets=method.targets,
        change=method.change,
        score=method.score,
        boundary=method.boundary,
        rows=rows.read + len(rows.left_out),
        left_out=rows.left_out,
        notes=tuple(copy.note for copy in copies if copy.note),
        languages=tuple(part.language for part in parts if part.language),
        people=pl.concat(asked) if asked else None,
        measures=method.measures,
    )


def _read_part(entry: Entry, copy: Copy, method: Method) -> ItemRows:
    """The items of one language; of a dataset with several, items and suites are named after theirs."""
    rows = FORMATS[entry.format](copy.paths, entry, method)
    if rows.items.is_empty():
        reason = rows.left_out["reason"][0] if len(rows.left_out) else "the files are empty"
        raise BadInput(f"No row of {copy.paths[0].parent} is a stimulus of {entry.name}: {reason}.")
    if not entry.parts:
        return rows
    items = rows.items.with_columns(language=pl.lit(entry.language))
    return replace(rows, items=_name_by_language(items))


def _name_by_language(items: pl.DataFrame) -> pl.DataFrame:
    """Items whose names, suites and phenomena begin with their language, so that none is pooled."""
    names = ("item", "suite", "phenomenon")
    return items.with_columns(pl.concat_str("language", name, separator="/").alias(name) for name in names)


def _choose_language(data: Dataset, asked: str | None) -> Dataset:
    """A user's own file, narrowed to a language by its column `language`, if it has one.

    Raises BadInput if it has several languages and none is asked for, or lacks the one asked for.
    """
    if "language" not in data.items.columns:
        if asked not in (None, ALL_LANGUAGES):
            raise BadInput(f"{data.name} has no column 'language'; add one, or omit --language.")
        return data
    items = data.items.with_columns(pl.col("language").cast(pl.String).fill_null(""))
    tags = items["language"].unique(maintain_order=True).to_list()
    chosen = choose_languages(data.name, tags, asked)
    named = _name_by_language(items) if len(tags) > 1 else items
    return replace(data, items=named.filter(pl.col("language").is_in(chosen)), languages=tuple(chosen))


def take_frame(frame: Any, columns: Columns | None = None, *, affirmative: str | None = None) -> Dataset:
    """Stimuli from a polars or pandas frame, read as a file of the same columns would be.

    Raises BadInput if it is not a frame, is empty, or cannot be used.
    """
    return take_table(tabulate_frame(frame), columns or Columns(), affirmative=affirmative)


def take_table(table: Table, columns: Columns, *, affirmative: str | None = None) -> Dataset:
    """Stimuli from the rows of a file or a frame: ratings, n-tuples, blanks or pairs.

    Raises BadInput if they cannot be used.
    """
    return _choose_language(_take_table(table, columns, affirmative), columns.language)


def tabulate_frame(frame: Any) -> Table:
    """A polars or pandas frame as a table, its numbers as text, as in a file.

    Raises BadInput if it is not a frame, or is empty.
    """
    if not is_frame(frame):
        raise BadInput(f"A dataset is a name, a file or a frame, not {type(frame).__name__}.")
    frame = as_polars(frame)
    rows = frame.with_columns(pl.selectors.numeric().cast(pl.String)).to_dicts()
    return Table(Path(FRAME), frame.columns, rows, list(range(1, len(rows) + 1)))


def _read_file(path: Path, columns: Columns, affirmative: str | None) -> Dataset:
    # The name of a file becomes the name of a suite.
    refuse_name(path)
    if is_document(path):
        _refuse_affirmative(affirmative, str(path))
        suite = read_suite(path)
        items = filter_items(build_suite_items(suite), suite=columns.suite, phenomenon=columns.phenomenon)
        return Dataset(
            name=path.name,
            items=items,
            rule="formula",
            method="formula",
            boundary=suite.boundary,
            rows=len(items),
            left_out=pl.DataFrame(schema=LEFT_OUT),
        )
    return _take_table(read_table(path), columns, affirmative)


def _take_table(table: Table, columns: Columns, affirmative: str | None) -> Dataset:
    """Ratings, n-tuples or pairs, recognized by their columns."""
    table = name_conditions(replace(table, options=columns.options), columns.factors)
    name, nothing = table.path.name, pl.DataFrame(schema=LEFT_OUT)
    if is_rated(table) or not is_cloze_table(table):
        _refuse_affirmative(affirmative, name)
    table, barred = _take_bars(table, columns)
    if is_rated(table):
        return Dataset(
            name=name,
            items=read_rated(table, columns),
            rule="rating",
            method="rating",
            rows=len(table.rows),
            left_out=nothing,
            barred=barred,
        )
    if is_cloze_table(table):
        return _read_cloze(pl.DataFrame(table.rows, infer_schema_length=None), table.path, affirmative)
    if is_long(table):
        items, contrasts = read_long(table, columns)
        method = "pair" if contrasts == (PAIR,) else "choice"
    else:
        items, contrasts, method = read_pairs(table, columns), (PAIR,), "pair"
    return Dataset(
        name=name,
        items=items,
        rule="contrast",
        method=method,
        contrasts=contrasts,
        rows=len(table.rows),
        left_out=nothing,
        barred=barred,
    )


def _take_bars(table: Table, columns: Columns) -> tuple[Table, tuple[int, ...]]:
    """The table with bars between regions taken out of its sentences, and the lines that had any."""
    named = find_columns(table, columns)
    rows, barred = [], []
    for row, line in zip(table.rows, table.lines, strict=True):
        plain = {
            name: split_bars(str(row[name]))[0]
            for name in ("text", named.good, named.bad)
            if BAR in str(row.get(name) or "")
        }
        rows.append(row | plain)
        barred += [line] * bool(plain)
    return replace(table, rows=rows), tuple(barred)


def _read_cloze(rows: pl.DataFrame, path: Path, affirmative: str | None) -> Dataset:
    items, targets, change = read_cloze_table(rows, path, affirmative=affirmative)
    return Dataset(
        name=path.name,
        items=items,
        rule="cloze",
        method="cloze",
        targets=targets,
        change=change,
        rows=len(items),
        left_out=pl.DataFrame(schema=LEFT_OUT),
    )


def filter_items(items: pl.DataFrame, *, suite: str | None, phenomenon: str | None) -> pl.DataFrame:
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
