"""Platform ids become keyed hashes on arrival; what payment needs is in one file that can be deleted."""

import csv
import hashlib
import hmac
import io
import json
import os
import re
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors, replacing

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
    """The keys of a study, made at the first call and readable by its owner only.

    Raises FelicityError if the folder cannot be written.
    """
    path = folder / KEY_FILE
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return Keys(bytes.fromhex(stored["identity"]), bytes.fromhex(stored["signing"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path} is damaged; restore it from a back-up.") from error
    keys = Keys(secrets.token_bytes(32), secrets.token_bytes(32))
    _write_keys(path, keys)
    return keys


def _write_keys(path: Path, keys: Keys) -> None:
    with replacing(path) as part:
        text = json.dumps({"identity": keys.identity.hex(), "signing": keys.signing.hex()})
        part.write_text(text, encoding="utf-8")
    path.chmod(0o600)


def hash_platform_id(keys: Keys, platform_id: str) -> str:
    """The keyed hash that stands for a platform id in the database."""
    return hmac.new(keys.identity, platform_id.encode(), hashlib.sha256).hexdigest()


class PlatformIds:
    """The one file that links platform ids to their hashes, appended to as raters arrive."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PLATFORM_FILE
        self._lock = threading.Lock()
        self._known = set(self.read())

    def read(self) -> dict[str, str]:
        """Platform ids by their hash."""
        if not self.path.exists():
            return {}
        rows = csv.reader(io.StringIO(self.path.read_text(encoding="utf-8")))
        # A line cut short by a crash is not one of ours: hash, id.
        return {row[0]: row[1] for row in rows if len(row) == 2 and len(row[0]) == 64}

    def add(self, key_hash: str, platform_id: str) -> None:
        """Keep an id for payment; on the disk when this returns.

        Raises FelicityError if it cannot be written.
        """
        with self._lock:
            if key_hash in self._known:
                return
            with disk_errors(self.path):
                handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                try:
                    os.write(handle, f"\n{key_hash},{platform_id}".encode())
                    os.fsync(handle)
                finally:
                    os.close(handle)
            self._known.add(key_hash)


def forget_platform_ids(folder: Path) -> bool:
    """Overwrite and delete the file of platform ids and replace the key that hashed them.

    Gives whether there was such a file. Hashes already stored can no longer be linked to an id.
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
    _write_keys(folder / KEY_FILE, Keys(secrets.token_bytes(32), keys.signing))
    return existed
