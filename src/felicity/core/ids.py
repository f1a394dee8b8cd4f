"""Fingerprints: equal content has equal ids, on every machine."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

DIGEST_CHARACTERS = 32
CHUNK_BYTES = 1 << 20


def fingerprint(value: object) -> str:
    """Short digest of any JSON-like value, keys sorted.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


def hash_file(path: Path) -> str:
    """sha256 of a file's content, read in chunks."""
    with path.open("rb") as handle:
        return hash_chunks(iter(lambda: handle.read(CHUNK_BYTES), b""))


def hash_chunks(chunks: Iterable[bytes]) -> str:
    """sha256 of a stream of bytes."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
