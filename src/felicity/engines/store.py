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

from filelock import FileLock

from felicity.core.files import cache_folder, disk_errors, replacing_folder

RECORD = "felicity.json"


def model_store() -> Path:
    """Where converted models are kept."""
    return cache_folder() / "models"


def keep_model(name: str, make: Callable[[Path], dict[str, Any]], *, recipe: int) -> Path:
    """The folder of model `name`, made by `make(folder)` unless a whole one is there already.

    `make` gives what shall be remembered of the model. `recipe` numbers the way of making: a model
    made in another way is made again.

    Raises FelicityError where the cache cannot be written.
    """
    folder = model_store() / name
    if is_whole(folder, recipe=recipe):
        return folder
    with _only_maker(folder):
        if is_whole(folder, recipe=recipe):
            return folder
        with replacing_folder(folder) as part:
            record = make(part)
            sizes = {file.name: file.stat().st_size for file in sorted(part.iterdir()) if file.is_file()}
            text = json.dumps(record | {"recipe": recipe, "sizes": sizes}, indent=2, ensure_ascii=False)
            (part / RECORD).write_text(text + "\n", encoding="utf-8")
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


@contextmanager
def _only_maker(folder: Path) -> Iterator[None]:
    """Hold the right to make `folder`; what dead makers left is removed first."""
    with disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.parent / f".{folder.name}.lock")
        lock.acquire()
    try:
        for stale in folder.parent.glob(f".{folder.name}.*"):
            if stale.is_dir():
                shutil.rmtree(stale, ignore_errors=True)
        yield
    finally:
        lock.release()
