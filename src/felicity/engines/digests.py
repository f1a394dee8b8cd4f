"""What a model is, by the content of its files: no score is ever taken for another model's.

Hashing gigabytes takes a while, so the digest of a file is remembered in the cache under its place,
size and times; a file that was touched is read again.
"""

import time
from contextlib import suppress
from pathlib import Path

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, replacing
from felicity.core.ids import fingerprint, hash_file
from felicity.engines.folders import read_config, tokenizer_files, weight_files

# A file changed again within the clock's grain would look unchanged: too young to be remembered.
SETTLED_SECONDS = 2.0
# Parts of a configuration that tell where it came from and decide nothing.
PROVENANCE = ("_name_or_path", "_commit_hash", "transformers_version")


def fingerprint_weights(folder: Path) -> str:
    """Digest of the weights and the configuration they are run with.

    Raises BadInput where the folder has no weights.
    """
    config = {name: value for name, value in read_config(folder).items() if name not in PROVENANCE}
    return fingerprint([config, *_digests(weight_files(folder))])


def fingerprint_tokenizer(folder: Path) -> str:
    """Digest of everything that decides how a text is cut.

    Raises BadInput where the folder has no tokenizer.
    """
    return fingerprint(_digests(tokenizer_files(folder)))


def remember_digest(path: Path) -> str:
    """sha256 of a file, read once and then remembered while the file stays as it is.

    Raises BadInput where the file cannot be read.
    """
    try:
        found = path.stat()
        stamp = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        memory = cache_folder() / "digests" / fingerprint([str(path.resolve()), *stamp])
        if memory.is_file():
            return memory.read_text(encoding="ascii")
        digest = hash_file(path)
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    if time.time() - max(found.st_mtime, found.st_ctime) > SETTLED_SECONDS:
        _remember(memory, digest)
    return digest


def _digests(files: list[Path]) -> list[list[str]]:
    return [[file.name, remember_digest(file)] for file in files]


def _remember(memory: Path, digest: str) -> None:
    # A cache that cannot be written costs time, not rightness.
    with suppress(FelicityError), replacing(memory) as part:
        part.write_text(digest, encoding="ascii")
