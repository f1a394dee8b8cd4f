"""Files that are whole or absent, and failures of the disk said in a sentence."""

import codecs
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from felicity.core.errors import BadInput, FelicityError


def cache_folder() -> Path:
    """Where felicity keeps models, datasets and scores: `$FELICITY_CACHE`, else the user's cache."""
    named = os.environ.get("FELICITY_CACHE")
    return Path(named).expanduser() if named else user_cache_path("felicity")


def data_folder() -> Path | None:
    """The folder of published datasets that `$FELICITY_DATA` names, if any."""
    named = os.environ.get("FELICITY_DATA")
    return Path(named).expanduser() if named else None


@contextmanager
def disk_errors(path: Path, action: str = "write") -> Iterator[None]:
    """Turn what the disk refuses into one sentence about `path`.

    Raises FelicityError.
    """
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FelicityError(
            f"Cannot {action} {path}: {reason}; choose another place or free this one."
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its name when the block ends well.

    A reader sees the old file or the new one, never half of one; a failure leaves nothing behind.
    """
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    part = Path(name)
    try:
        with disk_errors(path):
            yield part
            part.chmod(0o666 & ~_umask())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its name when the block ends well."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        with disk_errors(path):
            yield part
            part.chmod(0o777 & ~_umask())
            if path.exists():
                shutil.rmtree(path)
            part.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises BadInput where the file is missing, a folder, or not UTF-8 (naming the line).
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    return decode(content, path)


def decode(content: bytes, path: Path) -> str:
    """Bytes as UTF-8, or as UTF-16 where a mark says so; the error names the file and the line."""
    try:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return content.decode("utf-16")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}, line {line}: not UTF-8; save the file as UTF-8 and try again.") from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
