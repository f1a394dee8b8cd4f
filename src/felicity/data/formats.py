"""One reader per format: files in, tables of rows out. What the rows mean, a catalogue entry says."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.registry import Registry
from felicity.data.entry import Entry, Method
from felicity.data.rows import Rows, read_rows
from felicity.data.syntaxgym import read_suites
from felicity.data.tables import Table, read_plain, read_table

ReadFiles = Callable[[list[Path], Entry, Method], Rows]
FORMATS: Registry[ReadFiles] = Registry("format")


def _join(parts: list[Rows]) -> Rows:
    return Rows(
        pl.concat([part.items for part in parts], how="diagonal"),
        sum(part.read for part in parts),
        pl.concat([part.left_out for part in parts]),
    )


def _by_table(read: Callable[[Path, Entry], Table]) -> ReadFiles:
    def read_files(paths: list[Path], entry: Entry, method: Method) -> Rows:
        return _join([read_rows(read(path, entry), entry, method) for path in paths])

    return read_files


def read_pair_lines(path: Path, _: Entry) -> Table:
    """A sentence a line, two lines a pair, a comma at the end of each: fields sentence, pair, member.

    A file that ends within a pair is refused: every pair behind a lost line would be shifted.
    """
    lines = read_plain(path).splitlines()
    filled = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if len(filled) % 2:
        raise BadInput(f"{path} holds {len(filled)} sentences, an odd number; its lines come in pairs.")
    rows: list[dict[str, object]] = [
        {"sentence": line.rstrip(" ,"), "pair": str(place // 2 + 1), "member": str(place % 2)}
        for place, (_, line) in enumerate(filled)
    ]
    return Table(path, ["sentence", "pair", "member"], rows, [number for number, _ in filled])


def read_headless(path: Path, entry: Entry) -> Table:
    """Tab-separated cells without header or quotes; the entry names the columns."""
    text = read_plain(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    rows: list[dict[str, object]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(entry.columns):
                raise BadInput(
                    f"{path}, line {reader.line_num}: {len(cells)} cells, where {entry.name} has "
                    f"{len(entry.columns)} ({', '.join(entry.columns)})."
                )
            rows.append({"number": str(reader.line_num), **dict(zip(entry.columns, cells, strict=True))})
            lines.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}.") from error
    if not rows:
        raise BadInput(f"{path} is empty; fetch it again.")
    return Table(path, [*entry.columns, "number"], rows, lines)


def read_headed(path: Path, _: Entry) -> Table:
    """A table with a header, or JSON lines; rows are numbered from 1 in the field `number`."""
    table = read_table(path)
    rows = [{"number": str(place)} | row for place, row in enumerate(table.rows, start=1)]
    return Table(path, [*table.columns, "number"], rows, table.lines)


FORMATS.register("table", _by_table(read_headed))
FORMATS.register("pair lines", _by_table(read_pair_lines))
FORMATS.register("headless", _by_table(read_headless))
FORMATS.register("syntaxgym", read_suites)
