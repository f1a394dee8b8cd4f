"""The files of a dataset: found on this machine, or downloaded from their public source and checked."""

import hashlib
import io
import shutil
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, data_folder, read_bytes, replacing_folder
from felicity.data.entry import Entry

TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Copy:
    """The files of a dataset, and whether they are the known published version.

    checksum: `published`, `another version`, or `unknown` if no published digest is known.
    """

    paths: list[Path]
    checksum: str

    @property
    def note(self) -> str:
        """A remark on the copy for the reader; empty if it is the published version."""
        if self.checksum != "another version":
            return ""
        return f"{self.paths[0].parent} is not the published version known to felicity; it is used as it is."


def find_copy(entry: Entry, folder: Path | None = None) -> Copy | None:
    """The files of a dataset, in `folder` if given, else in the first place that has them.

    Raises BadInput if a given folder lacks them, or a place has only some of them.
    """
    if folder is not None:
        for place in (folder / entry.folder, folder):
            paths = _find(entry, place) or _find(entry, place, flat=True)
            if paths:
                return Copy(paths, check_files(entry, paths))
        raise BadInput(
            f"{folder} lacks {Path(entry.files[0]).name}, which {entry.name} needs; give the right folder."
        )
    for place in [*search_places(), *([entry.beside] if entry.beside else [])]:
        paths = _find(entry, place / entry.folder)
        if paths:
            return Copy(paths, check_files(entry, paths))
    return None


def has_copy(entry: Entry, folder: Path | None = None) -> bool:
    """Whether the files of a dataset are in the folder, or without one in a place that is searched."""
    try:
        return find_copy(entry, folder) is not None
    except BadInput:
        return False


def search_places() -> list[Path]:
    """The folders searched for datasets, in order."""
    named = data_folder()
    return [*([named] if named else []), cache_folder() / "datasets"]


def check_files(entry: Entry, paths: list[Path]) -> str:
    """Whether these are the published files."""
    if not entry.sha256:
        return "unknown"
    return "published" if digest_files(entry, paths) == entry.sha256 else "another version"


def digest_files(entry: Entry, paths: list[Path]) -> str:
    """One sha256 over the names and contents of the files, decompressed if gzipped."""
    digest = hashlib.sha256()
    for name, path in zip(entry.files, paths, strict=True):
        content = hashlib.sha256(read_bytes(path)).hexdigest()
        digest.update(f"{Path(name).name} {content}\n".encode())
    return digest.hexdigest()


def _find(entry: Entry, place: Path, *, flat: bool = False) -> list[Path]:
    found: list[Path] = []
    missing: list[str] = []
    for file in entry.files:
        path = place / (Path(file).name if flat else file)
        options = [path, path.with_name(path.name + ".gz")]
        present = [option for option in options if option.is_file()]
        found += present[:1]
        missing += [] if present else [file]
    if found and missing:
        raise BadInput(
            f"{place} has {len(found)} of the {len(entry.files)} files of {entry.name} and lacks "
            f"{missing[0]}; download it again with `felicity data get {entry.name}`."
        )
    return found


def get_copy(entry: Entry, folder: Path | None = None) -> Copy:
    """The dataset's files, wherever they are found, else downloaded into the cache.

    Raises FelicityError if they are not found and the source cannot be reached.
    """
    return find_copy(entry, folder) or fetch_copy(entry)


def fetch_copy(entry: Entry) -> Copy:
    """Download the published files into the cache.

    Raises FelicityError if the source cannot be reached or has files other than the published ones.
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
                f"{entry.fetch or entry.archive} is not the published version of {entry.name} (its checksum "
                "differs); nothing was saved. To use your own copy, give it with --from."
            )
    return Copy([target / file for file in entry.files], "published" if entry.sha256 else "unknown")


def keep_copy(entry: Entry, folder: Path) -> Copy:
    """Copy the user's own files into the cache."""
    copy = find_copy(entry, folder)
    if copy is None:
        raise BadInput(f"{folder} lacks the files of {entry.name}.")
    target = cache_folder() / "datasets" / entry.folder
    with replacing_folder(target) as part:
        _keep_others(entry, target, part)
        for file, path in zip(entry.files, copy.paths, strict=True):
            (part / file).parent.mkdir(parents=True, exist_ok=True)
            (part / file).write_bytes(read_bytes(path))
    return Copy([target / file for file in entry.files], copy.checksum)


def _keep_others(entry: Entry, target: Path, part: Path) -> None:
    """Datasets of one study share a folder: keep the files of the others."""
    if target.is_dir():
        shutil.copytree(target, part, dirs_exist_ok=True)
    for file in entry.files:
        (part / (file + ".gz")).unlink(missing_ok=True)


def _download(entry: Entry) -> dict[str, bytes]:
    if entry.archive:
        return _unpack(entry, _read(entry.archive, entry))
    return {file: _read(_address(entry, file), entry) for file in entry.files}


def _address(entry: Entry, file: str) -> str:
    if "{file}" in entry.fetch:
        return entry.fetch.format(file=quote(file))
    return f"{entry.fetch.rstrip('/')}/{Path(file).name}"


def _unpack(entry: Entry, content: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {file: archive.read(f"{entry.inside}/{Path(file).name}") for file in entry.files}
    except (zipfile.BadZipFile, KeyError) as error:
        raise FelicityError(
            f"{entry.archive} is not the expected archive of {entry.name}; give your own copy with --from."
        ) from error


def _read(url: str, entry: Entry) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise FelicityError(
            f"{entry.name} is neither in $FELICITY_DATA/{entry.folder} nor in the cache, and {url} cannot be "
            "reached; set FELICITY_DATA to a folder that has it, give a copy with --from DIR, or try again "
            "with a network connection."
        ) from error
