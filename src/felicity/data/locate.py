"""Where a dataset's files are: a folder the user names, `$FELICITY_DATA`, the cache; and whether they
are the published ones."""

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, data_folder
from felicity.data.entry import Entry


@dataclass(frozen=True)
class Copy:
    """The files of a dataset, and whether they are the known published version.

    checksum: `published`, `another version`, or `unknown` where no published digest is known.
    """

    paths: list[Path]
    checksum: str

    @property
    def note(self) -> str:
        """What a reader should be told of the copy; empty where it is the published one."""
        if self.checksum != "another version":
            return ""
        return f"{self.paths[0].parent} is not the published version felicity knows; its files are used."


def find_copy(entry: Entry, folder: Path | None = None) -> Copy | None:
    """The files of a dataset, in `folder` if one is named, else wherever they are first found.

    Raises BadInput where a named folder lacks them, or a place holds only some.
    """
    if folder is not None:
        for place in (folder / entry.folder, folder):
            paths = _find(entry, place) or _find(entry, place, flat=True)
            if paths:
                return Copy(paths, check_files(entry, paths))
        raise BadInput(
            f"{folder} does not hold {Path(entry.files[0]).name}, which {entry.name} needs; name its folder."
        )
    for place in search_places():
        paths = _find(entry, place / entry.folder)
        if paths:
            return Copy(paths, check_files(entry, paths))
    return None


def search_places() -> list[Path]:
    """The folders that datasets are looked for in, in order."""
    named = data_folder()
    return [*([named] if named else []), cache_folder() / "datasets"]


def check_files(entry: Entry, paths: list[Path]) -> str:
    """Whether these are the published files."""
    if not entry.sha256:
        return "unknown"
    return "published" if digest_files(entry, paths) == entry.sha256 else "another version"


def digest_files(entry: Entry, paths: list[Path]) -> str:
    """One sha256 over the names and contents of the files, whether gzipped or not."""
    digest = hashlib.sha256()
    for name, path in zip(entry.files, paths, strict=True):
        content = hashlib.sha256(read_content(path)).hexdigest()
        digest.update(f"{Path(name).name} {content}\n".encode())
    return digest.hexdigest()


def read_content(path: Path) -> bytes:
    """The bytes of a file, unzipped where its name ends in .gz.

    Raises FelicityError where it cannot be read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not a whole gzip file; fetch or write it again.") from error
    except OSError as error:
        raise FelicityError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error


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
            f"{place} holds {len(found)} of the {len(entry.files)} files of {entry.name} and lacks "
            f"{missing[0]}; fetch it again with `felicity data get {entry.name}`."
        )
    return found
