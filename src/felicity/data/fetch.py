"""A dataset from its public source into the cache: whole, checked, or not at all."""

import io
import shutil
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, replacing_folder
from felicity.data.entry import Entry
from felicity.data.locate import Copy, check_files, find_copy, read_content

TIMEOUT_SECONDS = 60


def get_copy(entry: Entry, folder: Path | None = None) -> Copy:
    """The dataset's files, wherever they are found, else fetched into the cache.

    Raises FelicityError where they are nowhere and the source cannot be reached.
    """
    return find_copy(entry, folder) or fetch_copy(entry)


def fetch_copy(entry: Entry) -> Copy:
    """Fetch the published files into the cache.

    Raises FelicityError where the source cannot be reached or gives other files than the published.
    """
    target = cache_folder() / "datasets" / entry.folder
    with replacing_folder(target) as part:
        _keep_others(entry, target, part)
        for file, content in _download(entry).items():
            path = part / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        paths = [part / file for file in entry.files]
        if check_files(entry, paths) == "another version":
            raise FelicityError(
                f"What {entry.fetch or entry.archive} gives is not the published {entry.name} (its checksum "
                "differs); nothing was kept. A copy of your own can be used with --from."
            )
    return Copy([target / file for file in entry.files], "published" if entry.sha256 else "unknown")


def keep_copy(entry: Entry, folder: Path) -> Copy:
    """A copy the user has, into the cache."""
    copy = find_copy(entry, folder)
    if copy is None:
        raise BadInput(f"{folder} does not hold the files of {entry.name}.")
    target = cache_folder() / "datasets" / entry.folder
    with replacing_folder(target) as part:
        _keep_others(entry, target, part)
        for file, path in zip(entry.files, copy.paths, strict=True):
            (part / file).parent.mkdir(parents=True, exist_ok=True)
            (part / file).write_bytes(read_content(path))
    return Copy([target / file for file in entry.files], copy.checksum)


def _keep_others(entry: Entry, target: Path, part: Path) -> None:
    """Datasets of one study share a folder: what is there of others stays."""
    if target.is_dir():
        shutil.copytree(target, part, dirs_exist_ok=True)
    for file in entry.files:
        (part / (file + ".gz")).unlink(missing_ok=True)


def _download(entry: Entry) -> dict[str, bytes]:
    if entry.archive:
        return _unpack(entry, _read(entry.archive, entry))
    return {file: _read(f"{entry.fetch.rstrip('/')}/{Path(file).name}", entry) for file in entry.files}


def _unpack(entry: Entry, content: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {file: archive.read(f"{entry.inside}/{Path(file).name}") for file in entry.files}
    except (zipfile.BadZipFile, KeyError) as error:
        raise FelicityError(
            f"{entry.archive} is not the archive {entry.name} is known by; use a copy with --from."
        ) from error


def _read(url: str, entry: Entry) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise FelicityError(
            f"{entry.name} is neither in $FELICITY_DATA/{entry.folder} nor in the cache, and {url} cannot be "
            "reached; set FELICITY_DATA to a folder that holds it, name a copy with --from DIR, or try again "
            "with a network."
        ) from error
