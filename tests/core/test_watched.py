"""Files that are in use: a change of their content is found, other changes are not taken for one."""

import os
import shutil
from pathlib import Path

import pytest

from felicity.core import watched
from felicity.core.errors import BadInput
from felicity.core.watched import ChangedFile, WatchedFiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"first")
    return path


@pytest.fixture(params=[-1.0, 2.0], ids=["old", "young"])
def files(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WatchedFiles:
    """Files whose times prove something, and files so young that only their digest does."""
    monkeypatch.setattr(watched, "RESOLUTION_SECONDS", request.param)
    found = WatchedFiles(lambda: sorted(path.parent.iterdir()))
    found.confirm()
    return found


def replace(path: Path) -> None:
    path.with_name(".new").write_bytes(b"other")
    path.with_name(".new").replace(path)


def overwrite_and_put_the_time_back(path: Path) -> None:
    state = path.stat()
    path.write_bytes(b"other")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


CHANGES = {
    "replaced": replace,
    "overwritten": lambda path: path.write_bytes(b"other"),
    "overwritten, with its old time": overwrite_and_put_the_time_back,
    "cut short": lambda path: os.truncate(path, 2),
    "removed": lambda path: path.unlink(),
    "a further file": lambda path: path.with_name("a").write_bytes(b""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_before_storing_and_while_reading(
    files: WatchedFiles, path: Path, change: str
) -> None:
    files.refuse_changed()
    with pytest.raises(ChangedFile, match="was changed or removed while it was in use"), files.reading():
        CHANGES[change](path)
    with pytest.raises(ChangedFile):
        files.refuse_changed()


def test_a_file_that_is_only_touched_linked_or_copied_back_is_the_same(
    files: WatchedFiles, path: Path, tmp_path: Path
) -> None:
    os.utime(path)
    files.refuse_changed()
    os.link(path, path.parent.parent / f"{tmp_path.name}-link")
    files.refuse_changed()
    path.write_bytes(b"other")
    path.write_bytes(b"first")
    files.refuse_changed()


def test_a_file_that_changes_and_changes_back_while_it_is_read_is_refused(
    files: WatchedFiles, path: Path
) -> None:
    with pytest.raises(ChangedFile), files.reading():
        replace(path)
        path.write_bytes(b"first")


def test_what_fails_because_a_file_changed_is_explained_by_that(files: WatchedFiles, path: Path) -> None:
    with pytest.raises(ChangedFile), files.reading():
        path.write_bytes(b"half")
        raise ValueError("the header is damaged")
    shutil.copy(__file__, path)
    with pytest.raises(ChangedFile), files.reading():
        pass


def test_another_failure_stays_what_it_is(files: WatchedFiles) -> None:
    with pytest.raises(ValueError, match="no memory"), files.reading():
        raise ValueError("no memory")


def test_a_file_written_twice_within_the_clocks_resolution_is_found_by_its_digest(path: Path) -> None:
    files = WatchedFiles(lambda: [path])
    files.confirm()
    stamp = files._stamps[path]
    path.write_bytes(b"other")
    # As if the clock had not moved on.
    now = path.stat()
    files._stamps[path] = (*stamp[:3], now.st_mtime_ns, now.st_ctime_ns)
    with pytest.raises(ChangedFile):
        files.refuse_changed()


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Cannot read .*none: no such file"):
        WatchedFiles(lambda: [tmp_path / "none"])
