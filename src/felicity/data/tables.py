"""Rows of text from .csv, .tsv, .jsonl, .parquet and .xlsx files, each with the line it came from."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from felicity.core.documents import DuplicateField, load_json
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import decode, find_ending, parse_excel, parse_parquet, read_bytes, read_text

# Columns, rows, and the line at which each row ends.
Rows = tuple[list[str], list[dict[str, object]], list[int]]
Reader = Callable[[str, Path], Rows]


@dataclass(frozen=True)
class Table:
    """The rows of a file; `lines[i]` is the last line of row i (its row in Parquet and Excel).

    options: those that named its columns, for a command that a message suggests.
    """

    path: Path
    columns: list[str]
    rows: list[dict[str, object]]
    lines: list[int]
    options: str = ""

    def column(self, name: str, *, option: str) -> list[str | None]:
        """The texts of a column; None for an empty cell.

        Raises UnknownName if there is no such column, BadInput if it is not text.
        """
        if name not in self.columns:
            columns = ", ".join(self.columns)
            hint = f"name another with --{option} (columns: {columns})"
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
                f"Column '{name}' of {self.path} contains numbers, not text; name another with --{option}."
            )
        return texts


def read_table(path: Path) -> Table:
    """The rows of a file, by its ending, which may be followed by `.gz`.

    Raises BadInput if the file is missing, empty, of an unknown kind, or damaged (naming the line).
    """
    kind = _kind(path)
    content = read_bytes(path)
    if kind == ".parquet":
        return _read_parquet(path, content)
    if kind == ".xlsx":
        return _read_excel(path, content)
    text = decode(content, path)
    if not text.strip():
        raise BadInput(f"{path} is empty; it should contain a table of sentences.")
    columns, rows, lines = READERS[kind](text, path)
    if not rows:
        raise BadInput(f"{path} has a header but no rows; add one pair per line.")
    return Table(path, columns, rows, lines)


def read_plain(path: Path) -> str:
    """The text of a file, plain or gzipped.

    Raises BadInput if the file is missing, empty, damaged or not UTF-8 (naming the line).
    """
    text = read_text(path)
    if not text.strip():
        raise BadInput(f"{path} is empty.")
    return text


def is_table(name: str) -> bool:
    """Whether a name looks like a file rather than a dataset's name."""
    return find_ending(Path(name)) in KINDS or "/" in name or Path(name).exists()


def _kind(path: Path) -> str:
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file ({', '.join(KINDS)}).")
    if not path.exists():
        raise BadInput(f"There is no file {path}; check the path.")
    ending = find_ending(path)
    if ending not in KINDS:
        raise BadInput(f"{path} is of an unsupported kind; use one of {', '.join(KINDS)}.")
    return ending


def _read_separated(usual: str) -> Reader:
    def read(text: str, path: Path) -> Rows:
        return parse_cells(text, path, separator=_find_separator(text, usual))

    return read


def parse_cells(text: str, path: Path, *, separator: str, columns: Sequence[str] | None = None) -> Rows:
    """Cells by line; without given `columns` the first line names them, and cells may be quoted.

    Raises BadInput naming a line with another number of cells.
    """
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=separator,
        strict=True,
        quoting=csv.QUOTE_MINIMAL if columns is None else csv.QUOTE_NONE,
    )
    rows: list[dict[str, object]] = []
    lines: list[int] = []
    try:
        names = _columns(next(reader), path) if columns is None else list(columns)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                step = "quote cells that contain the separator" if len(cells) > len(names) else "add the rest"
                raise BadInput(
                    f"{path}, line {reader.line_num}: {len(cells)} cells instead of {len(names)} "
                    f"({', '.join(names)}); {step}."
                )
            rows.append(dict(zip(names, cells, strict=True)))
            lines.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}; check its quotes.") from error
    return names, rows, lines


def _find_separator(text: str, usual: str) -> str:
    """The usual separator, or that of the header: spreadsheets also write `;` and tabs into .csv files."""
    header = text.split("\n", maxsplit=1)[0]
    return next((mark for mark in (usual, ";", "\t", ",") if mark in header), usual)


def _columns(header: list[str], path: Path) -> list[str]:
    columns = [name.strip() for name in header]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise BadInput(f"{path} names the column '{twice[0]}' twice; rename one.")
    return columns


def _read_jsonl(text: str, path: Path) -> Rows:
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
            row = load_json(line)
        except DuplicateField as error:
            raise BadInput(f"{path}, line {number} {error}; remove one of them.") from error
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}, line {number}: not JSON; each line should be one object.") from error
        if not isinstance(row, dict):
            raise BadInput(f"{path}, line {number}: not an object with named fields.")
        yield number, row


def _read_parquet(path: Path, content: bytes) -> Table:
    frame = parse_parquet(content, path)
    if frame.is_empty():
        raise BadInput(f"{path} has no rows.")
    return Table(path, frame.columns, frame.to_dicts(), list(range(1, len(frame) + 1)))


def _read_excel(path: Path, content: bytes) -> Table:
    frame = parse_excel(content, path, as_text=True)
    columns = [name.strip() for name in frame.columns]
    numbered = zip(frame.iter_rows(), range(2, len(frame) + 2), strict=True)
    filled = [(row, line) for row, line in numbered if any(cell is not None for cell in row)]
    rows: list[dict[str, object]] = [dict(zip(columns, row, strict=True)) for row, _ in filled]
    return Table(path, columns, rows, [line for _, line in filled])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


READERS: dict[str, Reader] = {
    ".csv": _read_separated(","),
    ".tsv": _read_separated("\t"),
    ".jsonl": _read_jsonl,
}
KINDS = (*READERS, ".parquet", ".xlsx")
