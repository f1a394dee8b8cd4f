"""Models in the user's cache: each is complete or absent, even if a process is killed.

A model is built in a temporary folder and renamed when it is complete. A lock that ends with its process
admits one builder at a time, so any incomplete folder it finds is from a process that died.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from felicity.core.digests import DIGESTS, digest_files, find_changed
from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, disk_errors, replacing_folder
from felicity.core.progress import Progress, no_progress
from felicity.engines.sources.folders import cached_digest

RECORD = "felicity.json"
MEGABYTE = 1_000_000


def model_store() -> Path:
    """The folder of converted models."""
    return cache_folder() / "models"


def cache_model(
    name: str,
    make: Callable[[Path], dict[str, Any]],
    *,
    recipe: int,
    needs: int = 0,
    progress: Progress = no_progress,
) -> Path:
    """The folder of model `name`, built by `make(folder)` unless a complete one exists.

    `make` returns the record to keep with the model. `recipe` is the version of the procedure: a model built
    by another version is built again. `needs` is the disk space that building takes, in bytes.

    Raises FelicityError if the cache cannot be written or is full.
    """
    folder = model_store() / name
    if is_complete(folder, recipe=recipe):
        return folder
    with _lock(folder, progress):
        if is_complete(folder, recipe=recipe):
            return folder
        require_disk_space(folder, needs)
        with replacing_folder(folder) as part:
            record = make(part)
            _write_record(part, record | {"recipe": recipe})
    return folder


def read_cache_record(folder: Path) -> dict[str, Any]:
    """The record of a cached model; empty if there is none."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def is_complete(folder: Path, *, recipe: int | None = None) -> bool:
    """Whether a cached model is complete, with every file of its recorded size."""
    record = read_cache_record(folder)
    sizes = record.get("sizes")
    if not isinstance(sizes, dict) or not isinstance(record.get(DIGESTS), dict):
        return False
    if recipe is not None and record.get("recipe") != recipe:
        return False
    return all((folder / name).is_file() and (folder / name).stat().st_size == sizes[name] for name in sizes)


def refuse_damaged(folder: Path) -> None:
    """Refuse a cached model if one of its files has changed since it was written.

    A file is read once and its digest cached until it changes, so this costs nothing the second time.

    Raises BadInput naming the file.
    """
    for name, digest in read_cache_record(folder).get(DIGESTS, {}).items():
        if cached_digest(folder / name) != digest:
            raise BadInput(
                f"{folder / name} is damaged: its content is not what was stored; remove {folder} and fetch "
                "or convert the model again."
            )


def verify_cached(folder: Path) -> list[str]:
    """The files of a cached model whose content has changed since they were written; each file is read.

    Raises FelicityError if a file cannot be read.
    """
    record = read_cache_record(folder)
    return [name for name in record.get(DIGESTS, {}) if find_changed(record, folder, [name])]


def cached_models() -> list[Path]:
    """The folders of all complete models in the cache, by name."""
    try:
        folders = sorted(model_store().iterdir())
    except OSError:
        return []
    return [folder for folder in folders if not folder.name.startswith(".") and is_complete(folder)]


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the record, and make the files readable to everyone who may read the folder."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    sizes = {file.name: file.stat().st_size for file in files}
    whole = record | {"sizes": sizes, DIGESTS: digest_files(folder, sizes)}
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")
    # The library that writes weights makes them readable to their owner alone.
    mode = (folder / RECORD).stat().st_mode
    for file in files:
        file.chmod(mode)


def require_disk_space(folder: Path, needs: int) -> None:
    """Check that the disk of a folder has room for so many bytes.

    Raises FelicityError.
    """
    free = shutil.disk_usage(folder.parent).free
    if free < needs:
        raise FelicityError(
            f"Cannot write {folder}: it needs {needs / MEGABYTE:,.0f} MB and {free / MEGABYTE:,.0f} MB are "
            "free; free some space or set FELICITY_CACHE to a folder on another disk."
        )


@contextmanager
def _lock(folder: Path, progress: Progress) -> Iterator[None]:
    """Lock `folder` while it is built; remove what dead processes left behind."""
    from filelock import FileLock, Timeout

    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.parent / f".{folder.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(f"wait for the process that builds {folder.name}", 0, 0)
            lock.acquire()
    try:
        for stale in folder.parent.glob(f".{folder.name}.*"):
            if stale.is_dir():
                shutil.rmtree(stale, ignore_errors=True)
        yield
    finally:
        lock.release()
