"""Whether files are still those that a digest was taken of.

The digest of a model's files is taken when the model is opened; the weights are read later. Meanwhile another
program may replace or overwrite them, as a training does with its checkpoints, and what is computed from the
new content would be attributed to the old. So the identity of each file (device, inode, size and times) is
noted before its digest is taken, and compared after every reading and before anything computed from it is
stored.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import disk_errors
from felicity.core.ids import hash_file

# A file changed twice within the resolution of its times would look unchanged.
RESOLUTION_SECONDS = 2.0

Stamp = tuple[int, int, int, int, int]


class ChangedFile(BadInput):
    """A file that was changed while it was in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} was changed or removed while it was in use, and nothing computed since is stored; run "
            "the command again when no program writes to it."
        )


class WatchedFiles:
    """Files whose content must not change while it is in use.

    find: lists them; a file that is added or removed is a change as well. digest: of the content of a file.
    """

    def __init__(
        self, find: Callable[[], Iterable[Path]], *, digest: Callable[[Path], str] = hash_file
    ) -> None:
        self._find = find
        self._take = digest
        try:
            self._stamps = self._look()
        except ChangedFile as missing:
            reason = getattr(missing.__cause__, "strerror", None) or "it is not there"
            raise BadInput(f"Cannot read {missing.path}: {reason.lower()}.") from missing
        self._digests: dict[Path, str] = {}
        # Files that were young when their digest was taken, so that their times prove nothing yet.
        self._young: set[Path] = set()

    def digest(self, path: Path) -> str:
        """The digest of one of the files, noted for later comparisons.

        Raises FelicityError if it cannot be read.
        """
        if path in self._stamps and is_young(self._stamps[path]):
            self._young.add(path)
        with disk_errors(path, "read"):
            self._digests[path] = self._take(path)
        return self._digests[path]

    def confirm(self) -> None:
        """Take the digests that were not taken yet, and check that no file has changed since it was listed.

        Raises ChangedFile naming a file that has changed.
        """
        for path in self._stamps:
            if path not in self._digests:
                self.digest(path)
        self._refuse_difference(self._stamps)

    def refuse_changed(self) -> None:
        """Check that every file has the content of its digest; it is read again only if its times changed.

        Raises ChangedFile naming a file that has changed.
        """
        now = self._look()
        if now.keys() != self._stamps.keys():
            raise ChangedFile(next(iter(now.keys() ^ self._stamps.keys())))
        for path, stamp in now.items():
            if stamp == self._stamps[path] and path not in self._young:
                continue
            # Another time may mean that the file was touched, linked or moved, not written.
            young = is_young(stamp)
            if path in self._digests:
                try:
                    same = self._take(path) == self._digests[path]
                except (FelicityError, OSError) as error:
                    raise ChangedFile(path) from error
            else:
                same = stamp == self._stamps[path]
            if not same:
                raise ChangedFile(path)
            self._stamps[path] = stamp
            if not young:
                self._young.discard(path)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While the files are read: what is read is what the digests were taken of.

        Raises ChangedFile naming a file that changed before or meanwhile, even if it has changed back.
        """
        if self._digests.keys() != self._stamps.keys():
            self.confirm()
        self.refuse_changed()
        before = dict(self._stamps)
        try:
            yield
        except Exception as error:
            try:
                self._refuse_difference(before)
            except ChangedFile as change:
                raise change from error
            raise
        self._refuse_difference(before)
        self.refuse_changed()

    def _refuse_difference(self, before: dict[Path, Stamp]) -> None:
        now = self._look()
        for path in now.keys() | before.keys():
            if now.get(path) != before.get(path):
                raise ChangedFile(path)

    def _look(self) -> dict[Path, Stamp]:
        """The identity of every file."""
        stamps = {}
        for path in self._find():
            try:
                state = path.stat()
            except OSError as error:
                raise ChangedFile(path) from error
            stamps[path] = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        return stamps


def is_young(stamp: Stamp) -> bool:
    """Whether a file was written so recently that a further change might leave its times as they are."""
    now = time.time()
    return any(abs(now - nanoseconds / 1e9) <= RESOLUTION_SECONDS for nanoseconds in stamp[-2:])
