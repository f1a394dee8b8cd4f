"""Digests of files, kept in a record beside them, so that a change is noticed when they are read again.

A record is a JSON object: the manifest of a run, the record of a study or of a cached model. Most are kept
with a digest of themselves, too.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from felicity.core.files import disk_errors
from felicity.core.ids import fingerprint, hash_file

DIGESTS = "digests"
# The digest of a manifest itself; in the record of a study it has another name, since some have a `digest`
# already.
OWN, OF_RECORD = "digest", "record_digest"


def digest_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The digests of those of these files that exist; names are paths within the folder."""
    with disk_errors(folder, "read"):
        return {name: hash_file(folder / name) for name in names if (folder / name).exists()}


def add_digests(
    content: Mapping[str, Any], folder: Path, names: Iterable[str], *, key: str = OWN
) -> dict[str, Any]:
    """A record with the digests of the files of a folder that exist, and its own under `key`."""
    digests = digest_files(folder, names)
    whole = {name: value for name, value in content.items() if name != key} | {DIGESTS: digests}
    return whole | {key: fingerprint(whole)}


def is_intact(content: Mapping[str, Any], *, key: str = OWN) -> bool:
    """Whether a record has digests, and that of itself which it was written with."""
    whole = {name: value for name, value in content.items() if name != key}
    return content.get(key) == fingerprint(whole) and isinstance(content.get(DIGESTS), dict)


def find_changed(content: Mapping[str, Any], folder: Path, names: Iterable[str]) -> tuple[str, str] | None:
    """The first of these files that has another digest than the one recorded, and what happened to it."""
    for name in names:
        present = digest_files(folder, [name])
        if content[DIGESTS].get(name) != present.get(name):
            return name, "was changed" if present else "is missing"
    return None
