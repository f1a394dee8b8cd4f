"""Models kept in the user's cache: each is whole or absent, whoever is killed in the middle.

A model is made in a temporary folder beside its place and takes its name when it is done. A lock that
dies with its process lets one maker in at a time, so what it finds half-made is from a dead one.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from felicity.core.errors import FelicityError
from felicity.core.files import cache_folder, disk_errors, replacing_folder
from felicity.engines.progress import Progress, no_progress

RECORD = "felicity.json"
MEGABYTE = 1_000_000


def model_store() -> Path:
    """Where converted models are kept."""
    return cache_folder() / "models"


def keep_model(
    name: str,
    make: Callable[[Path], dict[str, Any]],
    *,
    recipe: int,
    needs: int = 0,
    progress: Progress = no_progress,
) -> Path:
    """The folder of model `name`, made by `make(folder)` unless a whole one is there already.

    `make` gives what shall be remembered of the model. `recipe` numbers the way of making: a model
    made in another way is made again. `needs` is the room on the disk that making takes, in bytes.

    Raises FelicityError where the cache cannot be written or is full.
    """
    folder = model_store() / name
    if is_whole(folder, recipe=recipe):
        return folder
    with _only_maker(folder, progress):
        if is_whole(folder, recipe=recipe):
            return folder
        _require_room(folder, needs)
        with replacing_folder(folder) as part:
            record = make(part)
            _write_record(part, record | {"recipe": recipe})
    return folder


def read_record(folder: Path) -> dict[str, Any]:
    """What was remembered of a kept model when it was made; empty where nothing was."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def is_whole(folder: Path, *, recipe: int | None = None) -> bool:
    """Whether a kept model is there, with every file of the size it was made with."""
    record = read_record(folder)
    sizes = record.get("sizes")
    if not isinstance(sizes, dict) or (recipe is not None and record.get("recipe") != recipe):
        return False
    return all((folder / name).is_file() and (folder / name).stat().st_size == sizes[name] for name in sizes)


def kept_models() -> list[Path]:
    """The folders of all whole models in the store, by name."""
    try:
        folders = sorted(model_store().iterdir())
    except OSError:
        return []
    return [folder for folder in folders if not folder.name.startswith(".") and is_whole(folder)]


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    """Remember what was made, and let whoever may read the folder read its files."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    sizes = {file.name: file.stat().st_size for file in files}
    text = json.dumps(record | {"sizes": sizes}, indent=2, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")
    # The library that writes weights gives them to their owner alone.
    mode = (folder / RECORD).stat().st_mode
    for file in files:
        file.chmod(mode)


def _require_room(folder: Path, needs: int) -> None:
    free = shutil.disk_usage(folder.parent).free
    if free < needs:
        raise FelicityError(
            f"Cannot write {folder}: it needs {needs / MEGABYTE:,.0f} MB and {free / MEGABYTE:,.0f} MB are "
            "free; free some space or let FELICITY_CACHE name a folder on another disk."
        )


@contextmanager
def _only_maker(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the right to make `folder`; what dead makers left is removed first."""
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.parent / f".{folder.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(f"wait for the process that makes {folder.name}", 0, 0)
            lock.acquire()
    try:
        for stale in folder.parent.glob(f".{folder.name}.*"):
            if stale.is_dir():
                shutil.rmtree(stale, ignore_errors=True)
        yield
    finally:
        lock.release()
