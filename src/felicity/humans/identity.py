"""Platform ids become keyed hashes on arrival; what payment needs is in one file that can be deleted."""

import csv
import errno
import hashlib
import hmac
import io
import json
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors, read_text, replacing

KEY_FILE = "keys.json"
PLATFORM_FILE = "platform-ids.csv"
# Prolific's ids are 24 hex digits; SONA's and others' are short words or numbers.
PLATFORM_ID = re.compile(r"[A-Za-z0-9._@-]{1,64}")


@dataclass(frozen=True)
class Keys:
    """Secrets of a study: one for hashing platform ids (gone after `forget`), one for signing cookies."""

    identity: bytes
    signing: bytes


def load_keys(folder: Path) -> Keys:
    """The keys of a study, made at the first call and never readable by anyone but its owner.

    Raises FelicityError if the folder cannot be written.
    """
    path = folder / KEY_FILE
    if not path.exists():
        _create_keys(path)
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Keys(bytes.fromhex(stored["identity"]), bytes.fromhex(stored["signing"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is damaged; restore it from a back-up.") from error


def _create_keys(path: Path) -> None:
    """Write new keys, unless another process does so at the same moment; whoever comes second reads those."""
    keys = Keys(secrets.token_bytes(32), secrets.token_bytes(32))
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as part:
                part.write(_format_keys(keys))
                part.flush()
                os.fsync(part.fileno())
            # The file appears whole or not at all, and never replaces another.
            try:
                os.link(name, path)
            except FileExistsError:
                pass
            except OSError:
                # A file system without hard links.
                if not path.exists():
                    Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)


def _format_keys(keys: Keys) -> str:
    return json.dumps({"identity": keys.identity.hex(), "signing": keys.signing.hex()})


def hash_platform_id(keys: Keys, platform_id: str) -> str:
    """The keyed hash that stands for a platform id in the database."""
    return hmac.new(keys.identity, platform_id.encode(), hashlib.sha256).hexdigest()


def sign_platform_id(keys: Keys, platform_id: str) -> str:
    """The signature in a link that lets this platform id in."""
    return hmac.new(keys.signing, f"link {platform_id}".encode(), hashlib.sha256).hexdigest()[:32]


class ExpectedIds:
    """The ids that are let in, one per line of a file, which may be edited while the server runs.

    Raises BadInput if the file cannot be read, or naming a line that is no id.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._find_stamp()
        self._ids = frozenset(read_ids(path))

    def _find_stamp(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def __contains__(self, platform_id: str) -> bool:
        stamp = self._find_stamp()
        if stamp != self._stamp:
            # While it is being edited, the ids of before are let in.
            with suppress(BadInput):
                self._ids = frozenset(read_ids(self.path))
                self._stamp = stamp
        return platform_id in self._ids


def read_ids(path: Path) -> list[str]:
    """Platform ids from a file with one per line; lines that begin with # are comments.

    Raises BadInput naming a line that is no id.
    """
    ids = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        platform_id = line.strip()
        if not platform_id or platform_id.startswith("#"):
            continue
        if not PLATFORM_ID.fullmatch(platform_id):
            raise BadInput(
                f"{path}, line {number}: '{platform_id[:80]}' is no platform id; write one id per line, of "
                "letters, digits and . _ @ - only."
            )
        ids.append(platform_id)
    return ids


class PlatformIds:
    """The one file that links platform ids to their hashes, appended to as raters consent."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        self.path = folder / PLATFORM_FILE
        self.keys = keys
        self.damaged = 0
        self._lock = threading.Lock()
        self._known = set(self.read())

    def read(self) -> dict[str, str]:
        """Platform ids by their hash; `damaged` then counts the lines whose hash is not that of their id."""
        rows = list(self._rows())
        ids = {row[0]: row[1] for row in rows if self._is_intact(row)}
        self.damaged = sum(not self._is_intact(row) for row in rows)
        return ids

    def _rows(self) -> Iterator[list[str]]:
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
            yield from filter(None, csv.reader(io.StringIO(text)))

    def _is_intact(self, row: list[str]) -> bool:
        return len(row) == 2 and hash_platform_id(self.keys, row[1]) == row[0]

    def add(self, platform_id: str) -> None:
        """Keep an id for payment; on the disk when this returns, whole or not at all.

        Raises FelicityError if it cannot be written.
        """
        key_hash = hash_platform_id(self.keys, platform_id)
        line = f"\n{key_hash},{platform_id}".encode()
        with self._lock:
            if key_hash in self._known:
                return
            with disk_errors(self.path):
                handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                try:
                    size = os.fstat(handle).st_size
                    if os.write(handle, line) < len(line):
                        os.ftruncate(handle, size)
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(handle)
                finally:
                    os.close(handle)
            self._known.add(key_hash)


def forget_platform_ids(folder: Path) -> bool:
    """Overwrite and delete the file of platform ids and replace the key that hashed them.

    Gives whether there was such a file. Hashes already stored can no longer be linked to an id. The study
    must be closed before (`Store.forget`), so that nobody's id is written meanwhile.
    """
    path = folder / PLATFORM_FILE
    existed = path.exists()
    with disk_errors(path, "delete"):
        if existed:
            with path.open("r+b") as handle:
                handle.write(b"\0" * path.stat().st_size)
                handle.flush()
                os.fsync(handle.fileno())
            path.unlink()
    keys = load_keys(folder)
    with replacing(folder / KEY_FILE, private=True) as part:
        part.write_text(_format_keys(Keys(secrets.token_bytes(32), keys.signing)), encoding="utf-8")
    return existed
