"""One reader per file format of the catalogue: files in, items out, by the templates of the entry."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.registry import Registry
from felicity.data.entry import Entry, Method
from felicity.data.rows import Rows, read_rows
from felicity.data.suites import read_suites
from felicity.data.tables import Table, parse_cells, read_plain, read_table

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
    """One sentence per line, two lines per pair, a comma at the end of each: fields sentence, pair, member.

    A file with an odd number of lines is refused: every pair after a lost line would be shifted.
    """
    lines = read_plain(path).splitlines()
    filled = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if len(filled) % 2:
        raise BadInput(
            f"{path} has {len(filled)} sentences, an odd number, but its lines should come in pairs."
        )
    rows: list[dict[str, object]] = [
        {"sentence": line.rstrip(" ,"), "pair": str(place // 2 + 1), "member": str(place % 2)}
        for place, (_, line) in enumerate(filled)
    ]
    return Table(path, ["sentence", "pair", "member"], rows, [number for number, _ in filled])


def read_headless(path: Path, entry: Entry) -> Table:
    """Tab-separated cells without header or quotes; the entry names the columns."""
    columns, cells, lines = parse_cells(read_plain(path), path, separator="\t", columns=entry.columns)
    rows = [{"number": str(line)} | row for line, row in zip(lines, cells, strict=True)]
    return Table(path, [*columns, "number"], rows, lines)


def read_headed(path: Path, _: Entry) -> Table:
    """A table with a header, or JSON lines; rows are numbered from 1 in the field `number`."""
    table = read_table(path)
    rows = [{"number": str(place)} | row for place, row in enumerate(table.rows, start=1)]
    return Table(path, [*table.columns, "number"], rows, table.lines)


FORMATS.register("table", _by_table(read_headed))
FORMATS.register("pair lines", _by_table(read_pair_lines))
FORMATS.register("headless", _by_table(read_headless))
FORMATS.register("syntaxgym", read_suites)
