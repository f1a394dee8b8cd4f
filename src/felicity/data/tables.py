"""Rows of text from .csv, .tsv, .jsonl and .parquet files, each with the line it came from."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import decode


@dataclass(frozen=True)
class Table:
    """The rows of one file; `lines[i]` is where row i ends in it (its row number in Parquet)."""

    path: Path
    columns: list[str]
    rows: list[dict[str, object]]
    lines: list[int]

    def column(self, name: str, *, option: str) -> list[str | None]:
        """The texts of a column, None where a cell is empty.

        Raises UnknownName where there is no such column, BadInput where it does not hold text.
        """
        if name not in self.columns:
            known = ", ".join(self.columns)
            hint = f"name another with --{option} (columns: {known})"
            raise UnknownName("column", name, self.columns, hint=hint, where=str(self.path))
        cells = [row.get(name) for row in self.rows]
        for cell, line in zip(cells, self.lines, strict=True):
            if cell is not None and not isinstance(cell, str):
                raise BadInput(
                    f"{self.path}, line {line}: '{name}' is {cell!r}, not text; name a column of text."
                )
        texts = [cell if isinstance(cell, str) and cell.strip() else None for cell in cells]
        if texts and all(text is None or _is_number(text) for text in texts) and any(texts):
            raise BadInput(
                f"Column '{name}' of {self.path} holds numbers, not text; name another with --{option}."
            )
        return texts


def read_table(path: Path) -> Table:
    """The rows of a file, by its ending; a `.gz` behind the ending is fine.

    Raises BadInput where the file is missing, empty, of unknown kind, or broken (naming the line).
    """
    kind = _kind(path)
    content = _content(path)
    if kind == ".parquet":
        return _read_parquet(path, content)
    text = decode(content, path)
    if not text.strip():
        raise BadInput(f"{path} is empty; it should hold a table of sentences.")
    columns, rows, lines = READERS[kind](text, path)
    if not rows:
        raise BadInput(f"{path} has a header but no rows; add a pair a line.")
    return Table(path, columns, rows, lines)


def read_plain(path: Path) -> str:
    """The text of a file, plain or gzip.

    Raises BadInput where the file is missing, empty, cut off or not UTF-8 (naming the line).
    """
    text = decode(_content(path), path)
    if not text.strip():
        raise BadInput(f"{path} is empty.")
    return text


def is_table(name: str) -> bool:
    """Whether a name looks like a file of rows rather than a dataset's name."""
    return _ending(Path(name)) in KINDS or "/" in name or Path(name).exists()


def _ending(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _kind(path: Path) -> str:
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file ({', '.join(KINDS)}).")
    if not path.exists():
        raise BadInput(f"There is no file {path}; check the path.")
    ending = _ending(path)
    if ending not in KINDS:
        raise BadInput(f"{path} is not a kind of file felicity reads; use one of {', '.join(KINDS)}.")
    return ending


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not a whole gzip file; fetch or write it again.") from error
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error


def _read_separated(usual: str) -> "Reader":
    def read(text: str, path: Path) -> Rows:
        separator = _find_separator(text, usual)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        rows: list[dict[str, object]] = []
        lines: list[int] = []
        try:
            columns = _columns(next(reader), path)
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(columns):
                    step = (
                        "quote cells that hold the separator" if len(cells) > len(columns) else "fill it up"
                    )
                    raise BadInput(
                        f"{path}, line {reader.line_num}: {len(cells)} cells, but the header names "
                        f"{len(columns)}; {step}."
                    )
                rows.append(dict(zip(columns, cells, strict=True)))
                lines.append(reader.line_num)
        except csv.Error as error:
            raise BadInput(f"{path}, line {reader.line_num}: {error}; check its quotes.") from error
        return columns, rows, lines

    return read


def _find_separator(text: str, usual: str) -> str:
    """The usual separator, or what the header has instead: spreadsheets write `;` and tabs into .csv too."""
    header = text.split("\n", maxsplit=1)[0]
    return next((mark for mark in (usual, ";", "\t", ",") if mark in header), usual)


def _columns(header: list[str], path: Path) -> list[str]:
    columns = [name.strip() for name in header]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise BadInput(f"{path} names the column '{twice[0]}' twice; rename one.")
    return columns


def _read_jsonl(text: str, path: Path) -> "Rows":
    columns: dict[str, None] = {}
    rows: list[dict[str, object]] = []
    lines: list[int] = []
    for line, row in _json_lines(text, path):
        columns.update(dict.fromkeys(row))
        rows.append(row)
        lines.append(line)
    return list(columns), rows, lines


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise BadInput(f"{path}, line {number}: not JSON; each line should hold one object.") from error
        if not isinstance(row, dict):
            raise BadInput(f"{path}, line {number}: not an object with named fields.")
        yield number, row


def _read_parquet(path: Path, content: bytes) -> Table:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise BadInput(f"{path} is not a whole Parquet file; write it again.") from error
    if frame.is_empty():
        raise BadInput(f"{path} has no rows.")
    return Table(path, frame.columns, frame.to_dicts(), list(range(1, len(frame) + 1)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Rows = tuple[list[str], list[dict[str, object]], list[int]]
Reader = Callable[[str, Path], Rows]
READERS: dict[str, Reader] = {
    ".csv": _read_separated(","),
    ".tsv": _read_separated("\t"),
    ".jsonl": _read_jsonl,
}
KINDS = (*READERS, ".parquet")
