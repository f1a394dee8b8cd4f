"""Reading and writing files: writes are atomic, gzip is transparent, failures are one sentence."""

import codecs
import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from platformdirs import user_cache_path

from felicity.core.errors import BadInput, FelicityError, NotPossible

if TYPE_CHECKING:
    import polars as pl

GZIP_MARK = b"\x1f\x8b"
FRAMES = (".csv", ".tsv", ".parquet", ".xlsx")
# Name, machine and process in the name of a temporary file.
PART = re.compile(r"\.([0-9a-f]{8})-(\d+)\.[^.]+$")
MOST_OF_NAME = 50
# A Parquet table that takes more bytes than this, and more times its file than that, is refused.
MOST_UNPACKED = 1_000_000_000
MOST_RATIO = 200
CELL_BYTES = 8
# How polars, safetensors and torch report a full disk.
FULL = re.compile(
    r"no space left|os error 28|disk quota|os error 122|file too large|os error 27"
    r"|PytorchStreamWriter|unexpected pos",
    re.IGNORECASE,
)

# With these, also in full width, a spreadsheet begins a formula; a plain number is none.
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
NUMBER = r"^[+-]?\d+(\.\d+)?$"


def cache_folder() -> Path:
    """Where felicity caches models, datasets and scores: `$FELICITY_CACHE`, else the user's cache."""
    named = os.environ.get("FELICITY_CACHE")
    return Path(named).expanduser() if named else user_cache_path("felicity")


def data_folder() -> Path | None:
    """The folder of published datasets that `$FELICITY_DATA` names, if any."""
    named = os.environ.get("FELICITY_DATA")
    return Path(named).expanduser() if named else None


@contextmanager
def disk_errors(path: Path, action: str = "write") -> Iterator[None]:
    """Report an operating system error as one sentence about `path`.

    Raises FelicityError.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, OSError) and not (_is_library_error(error) and FULL.search(str(error))):
            raise
        reason = error.strerror or str(error) if isinstance(error, OSError) else "the disk is full"
        raise FelicityError(
            f"Cannot {action} {path}: {reason.lower()}; choose another path, or free some space."
        ) from error


def _is_library_error(error: BaseException) -> bool:
    """Whether an error may be a library's report of a failing disk; polars' panics are not Exceptions."""
    usual = isinstance(error, Exception) and not isinstance(error, FelicityError)
    return usual or type(error).__name__ == "PanicException"


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block succeeds.

    A reader sees the old file or the new one, never part of one, even after a power failure: the content is
    on disk before the file is renamed. A failure leaves nothing behind. A device or a pipe, such as /dev/null
    or /dev/stdout, is written to and never replaced. private: only the owner may ever read the file.
    """
    refuse_name(path)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        special = _is_special(path)
        handle, name = tempfile.mkstemp(prefix=_part_prefix(path), dir=None if special else path.parent)
        os.close(handle)
    part = Path(name)
    try:
        with disk_errors(path):
            yield part
            if special:
                with part.open("rb") as content, path.open("wb") as device:
                    shutil.copyfileobj(content, device)
                return
            if not private:
                part.chmod(0o666 & ~_umask())
            _sync(part)
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def refuse_name(path: Path) -> None:
    """Stop at a path that the libraries for tables cannot open.

    Raises BadInput.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"The path {path} is not valid Unicode; rename it, or choose another.") from error


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that replaces it when the block succeeds."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=_part_prefix(path), dir=path.parent))
    try:
        with disk_errors(path):
            yield part
            part.chmod(0o777 & ~_umask())
            for file in part.rglob("*"):
                if file.is_file():
                    _sync(file)
            if path.exists():
                shutil.rmtree(path)
            part.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def clear_leftovers(folder: Path) -> None:
    """Remove the temporary files that killed processes of this machine left in a folder."""
    for path in folder.glob(".*"):
        match = PART.search(path.name)
        if not match or match[1] != _host() or is_alive(int(match[2])):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _is_special(path: Path) -> bool:
    """Whether a path is a device, a pipe or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _part_prefix(path: Path) -> str:
    """How a temporary name begins: by it a later process can tell whether its owner is dead."""
    # File systems take names of 255 bytes at most.
    return f".{path.name[:MOST_OF_NAME]}.{_host()}-{os.getpid()}."


def _host() -> str:
    return hashlib.sha256(platform.node().encode("utf-8", "surrogatepass")).hexdigest()[:8]


def is_alive(process: int) -> bool:
    """Whether a process of this machine has not ended."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


@contextmanager
def open_bytes(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A file opened for reading, and its content, which differs from it if the file is gzipped.

    Raises BadInput if the file is missing, a folder, or a damaged gzip file.
    """
    try:
        with path.open("rb") as raw:
            zipped = path.suffix.lower() == ".gz" or raw.peek(len(GZIP_MARK)).startswith(GZIP_MARK)
            with gzip.open(raw) if zipped else raw as content:
                yield raw, cast(IO[bytes], content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not a complete gzip file; download or write it again.") from error
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed if it is gzipped.

    Raises BadInput if the file is missing, a folder, or a damaged gzip file.
    """
    with open_bytes(path) as (_, content):
        return content.read()


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, plain or gzipped.

    Raises BadInput if the file is missing, a folder, damaged, or not UTF-8 (naming the line).
    """
    return decode(read_bytes(path), path)


def decode(content: bytes, path: Path) -> str:
    """Bytes as UTF-8, or as UTF-16 if they start with its byte order mark; errors name file and line."""
    try:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return content.decode("utf-16")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}, line {line}: not UTF-8; save the file as UTF-8 and try again.") from error


def find_ending(path: Path) -> str:
    """The ending of a file's name in lower case, without `.gz`.

    >>> find_ending(Path("ratings.CSV.gz"))
    '.csv'
    """
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return endings[-1] if endings else ""


def read_frame(path: Path, *, as_text: bool = False) -> "pl.DataFrame":
    """A table with typed columns from a .csv, .tsv, .parquet or .xlsx file, plain or gzipped.

    Empty fields and R's NA are missing values. Of a workbook, the first sheet is read. as_text: every cell as
    text, as it is written: `007` keeps its zeros and NA is a word.

    Raises BadInput for another kind of file, and for one that is missing, empty or damaged.
    """
    ending = find_ending(path)
    if ending not in FRAMES:
        raise BadInput(f"'{path.name}' is not a table; give a .csv, .tsv, .parquet or .xlsx file.")
    if not path.exists():
        raise BadInput(f"There is no file {path}; give a .csv, .tsv, .parquet or .xlsx table that exists.")
    content = read_bytes(path)
    if ending == ".xlsx":
        return parse_excel(content, path, as_text=as_text)
    if ending == ".parquet":
        frame = parse_parquet(content, path)
        return _as_text(frame) if as_text else frame
    return _parse_csv(content, path, ending, as_text=as_text)


def parse_parquet(content: bytes, path: Path) -> "pl.DataFrame":
    """The table in a Parquet file.

    Raises BadInput if it is damaged, or would take far more memory than its size suggests.
    """
    import polars as pl

    from felicity.core.schemas import sign_counts

    try:
        refuse_inflated(io.BytesIO(content), len(content), path)
        return sign_counts(pl.read_parquet(io.BytesIO(content)))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise BadInput(f"{path} is not a complete Parquet file; write it again.") from error


def refuse_inflated(source: "IO[bytes] | Path", size: int, path: Path) -> None:
    """Refuse a Parquet file whose table would be far larger than the file, before it is unpacked.

    Raises BadInput; what cannot be read is left to the reader of the table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(source)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        # A value that is repeated takes no room in the file, but as much as any other in the table.
        cells = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
        unpacked = max(sum(group.total_byte_size for group in groups), cells * CELL_BYTES)
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return
    if unpacked > max(MOST_UNPACKED, MOST_RATIO * size):
        raise BadInput(
            f"{path} has {size / 1e6:.1f} MB, but its table would take {unpacked / 1e9:.1f} GB; give a "
            "table of fewer rows."
        )


def parse_excel(content: bytes, path: Path, *, as_text: bool = False) -> "pl.DataFrame":
    """The table in the first sheet of an Excel workbook; its first row names the columns.

    as_text: every cell as text, as a CSV file would have it.

    Raises BadInput if it is damaged or has no rows, NotPossible if the library for it is not installed.
    """
    try:
        import fastexcel
    except ImportError as error:
        raise NotPossible(
            f"Reading {path} needs fastexcel; install it with `pip install 'felicity[excel]'`, or save the "
            "sheet as .csv."
        ) from error
    try:
        workbook = fastexcel.read_excel(content)
        sheet = workbook.load_sheet(0, dtypes="string" if as_text else None, schema_sample_rows=None)
        frame = sheet.to_polars()
    except fastexcel.FastExcelError as error:
        raise BadInput(f"{path} is not a complete Excel workbook; save it again, or as .csv.") from error
    if frame.is_empty():
        raise BadInput(f"The first sheet of {path} has no rows below its header.")
    return frame


def _as_text(frame: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    return frame.select(pl.all().cast(pl.String))


def _parse_csv(content: bytes, path: Path, ending: str, *, as_text: bool) -> "pl.DataFrame":
    import polars as pl

    separator = "\t" if ending == ".tsv" else ","
    try:
        return pl.read_csv(
            io.BytesIO(content),
            separator=separator,
            null_values=None if as_text else ["NA"],
            infer_schema=not as_text,
            infer_schema_length=None,
        )
    except pl.exceptions.NoDataError as error:
        raise BadInput(f"{path} is empty; give a table with a line of column names.") from error
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(
            f"{path} cannot be read as a table ({reason}); save it as UTF-8 and try again."
        ) from error


def write_frame(frame: "pl.DataFrame", path: Path) -> None:
    """Write a table atomically, as Parquet, JSON lines, TSV or CSV by the ending of its name."""
    ending = path.suffix.lower()
    with replacing(path) as part:
        if ending == ".parquet":
            frame.write_parquet(part)
        elif ending == ".jsonl":
            frame.write_ndjson(part)
        else:
            frame.write_csv(part, separator="\t" if ending == ".tsv" else ",")


def escape_formulas(frame: "pl.DataFrame") -> "pl.DataFrame":
    """A table for CSV, with an apostrophe before texts that a spreadsheet would run as a formula."""
    import polars as pl

    texts = [pl.col(name) for name, dtype in frame.schema.items() if dtype == pl.String]
    return frame.with_columns(
        pl.when(text.str.contains(FORMULA) & ~text.str.contains(NUMBER))
        .then(pl.lit("'") + text)
        .otherwise(text)
        .alias(text.meta.output_name())
        for text in texts
    )


def _sync(path: Path) -> None:
    """Wait until a file's content is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
