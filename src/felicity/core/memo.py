"""Facts that take long to find out, kept in the cache folder: one small JSON file each.

A file that is missing or damaged is as if the fact had never been found; a cache that cannot be written
costs time, not correctness.
"""

import json
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from felicity.core.errors import FelicityError
from felicity.core.files import cache_folder, replacing
from felicity.core.ids import fingerprint


def recall(kind: str, key: object) -> dict[str, Any] | None:
    """What was remembered under this key, or None."""
    try:
        kept = json.loads(_file(kind, key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # The key is kept too, so that a file of another name or an old layout is never believed.
    if not isinstance(kept, dict) or kept.get("key") != json.loads(json.dumps(key)):
        return None
    fact = kept.get("fact")
    return fact if isinstance(fact, dict) else None


def remember(kind: str, key: object, fact: dict[str, Any]) -> None:
    """Keep a fact under this key; it is written whole or not at all."""
    with suppress(FelicityError), replacing(_file(kind, key)) as part:
        part.write_text(json.dumps({"key": key, "fact": fact}, ensure_ascii=False), encoding="utf-8")


def versions(*packages: str) -> dict[str, str]:
    """Installed versions, read from their metadata: no package is imported."""
    return {name: _version(name) for name in packages}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _file(kind: str, key: object) -> Path:
    return cache_folder() / kind / f"{fingerprint(key)}.json"
