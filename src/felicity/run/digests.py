"""Digests of the files that a run or a study was finished with, kept in its manifest or record.

The digests are kept beside a digest of the manifest itself, so that a change of either is noticed when the
folder is read.
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


def add_digests(
    content: Mapping[str, Any], folder: Path, names: Iterable[str], *, own: str = OWN
) -> dict[str, Any]:
    """A record with the digests of the files of a folder that exist, and its own under `own`.

    names: paths within the folder.
    """
    with disk_errors(folder, "read"):
        digests = {name: hash_file(folder / name) for name in names if (folder / name).exists()}
    whole = {name: value for name, value in content.items() if name != own} | {DIGESTS: digests}
    return whole | {own: fingerprint(whole)}


def is_intact(content: Mapping[str, Any], *, own: str = OWN) -> bool:
    """Whether a record has the digest it was written with; one of an earlier version has none and passes."""
    if DIGESTS not in content and own not in content:
        return True
    whole = {name: value for name, value in content.items() if name != own}
    return content.get(own) == fingerprint(whole) and isinstance(content.get(DIGESTS), dict)


def find_changed(content: Mapping[str, Any], folder: Path, names: Iterable[str]) -> tuple[str, str] | None:
    """The first of these files that has another digest than the one recorded, and what happened to it."""
    digests = content.get(DIGESTS)
    if digests is None:
        return None
    for name in names:
        path = folder / name
        with disk_errors(path, "read"):
            found = hash_file(path) if path.exists() else None
        if digests.get(name) != found:
            return name, "is missing" if found is None else "was changed"
    return None
