"""Lines of a large file with their numbers, so that a fault can be found."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from felicity.core.errors import BadInput


class NumberedLines:
    """Lines of a file without their ends, and the number of the one read last."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self.number = 0

    def __iter__(self) -> "NumberedLines":
        return self

    def __next__(self) -> bytes:
        line = next(self._lines)
        self.number += 1
        return line.rstrip(b"\r\n")

    def next_filled(self) -> bytes:
        """The next line that is not empty; empty at the end of the file."""
        return next((line for line in self if line.strip()), b"")


@contextmanager
def open_lines(path: Path) -> Iterator[NumberedLines]:
    """The lines of a file, plain or gzip.

    Raises BadInput where it cannot be read to its end.
    """
    try:
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as handle:
            yield NumberedLines(iter(handle))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not a whole gzip file; fetch or write it again.") from error
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
