"""Facts that take long to find out, kept in the cache folder: one small file each, a digest before its JSON.

A file that is missing or damaged is as if the fact had never been found, and a damaged one is removed; a
cache that cannot be written costs time, not correctness.
"""

import hashlib
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
    file = _file(kind, key)
    try:
        content = file.read_bytes()
    except OSError:
        return None
    fact = _read(content, key)
    if fact is None:
        with suppress(OSError):
            file.unlink()
    return fact


def remember(kind: str, key: object, fact: dict[str, Any]) -> None:
    """Keep a fact under this key; it is written whole or not at all."""
    body = json.dumps({"key": key, "fact": fact}).encode("ascii")
    with suppress(FelicityError), replacing(_file(kind, key)) as part:
        part.write_bytes(_digest(body) + b"\n" + body)


def _read(content: bytes, key: object) -> dict[str, Any] | None:
    """The fact in a file's content; None if it is damaged, of an old layout, or of another key."""
    digest, _, body = content.partition(b"\n")
    # A flipped bit may leave the JSON readable but change a number in it.
    if digest != _digest(body):
        return None
    kept = json.loads(body)
    # The key is kept too, so that a file renamed to another key is never believed.
    if not isinstance(kept, dict) or kept.get("key") != json.loads(json.dumps(key)):
        return None
    fact = kept.get("fact")
    return fact if isinstance(fact, dict) else None


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode("ascii")


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
