"""Datasets fetched from a real web server, whole and checked, or from a copy the user has."""

import gzip
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.data.entry import Entry, load_entries
from felicity.data.locate import digest_files, fetch_copy, find_copy, get_copy, keep_copy

TABLE = b"item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"
TABLE += b"0\tA robin is (a|an)\tA robin is not (a|an)\tbird\ttool\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address it is served at."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """An entry whose published version is TABLE."""
    (tmp_path / "known").mkdir()
    path = tmp_path / "known" / "NEG-136-SIMP.tsv"
    path.write_bytes(TABLE)
    known = load_entries()["neg_136_simp"]
    return replace(known, sha256=digest_files(known, [path]))


@pytest.fixture(autouse=True)
def nowhere(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FELICITY_DATA", raising=False)


def test_a_fetched_dataset_is_in_the_cache_from_then_on(
    site: tuple[Path, str], entry: Entry, empty_cache: Path
) -> None:
    folder, address = site
    (folder / "NEG-136-SIMP.tsv").write_bytes(TABLE)
    copy = get_copy(replace(entry, fetch=address))
    assert copy.paths == [empty_cache / "datasets" / "ettinger2020" / "NEG-136" / "NEG-136-SIMP.tsv"]
    assert copy.checksum == "published"
    assert find_copy(replace(entry, fetch="http://127.0.0.1:9")) == copy


def test_what_is_not_the_published_version_is_not_kept(
    site: tuple[Path, str], entry: Entry, empty_cache: Path
) -> None:
    folder, address = site
    (folder / "NEG-136-SIMP.tsv").write_bytes(TABLE + b"\n")
    with pytest.raises(FelicityError, match="checksum differs"):
        fetch_copy(replace(entry, fetch=address))
    assert not (empty_cache / "datasets" / "ettinger2020").exists()


def test_a_missing_file_at_the_source_leaves_nothing(
    site: tuple[Path, str], entry: Entry, empty_cache: Path
) -> None:
    with pytest.raises(FelicityError, match="cannot be reached"):
        fetch_copy(replace(entry, fetch=site[1]))
    assert not (empty_cache / "datasets" / "ettinger2020").exists()


def test_datasets_of_one_study_share_a_folder_and_do_not_remove_each_other(
    site: tuple[Path, str], entry: Entry, empty_cache: Path
) -> None:
    other = empty_cache / "datasets" / "ettinger2020" / "ROLE-88" / "ROLE-88.tsv"
    other.parent.mkdir(parents=True)
    other.write_text("kept")
    folder, address = site
    (folder / "NEG-136-SIMP.tsv").write_bytes(TABLE)
    fetch_copy(replace(entry, fetch=address))
    assert other.read_text() == "kept"


def test_an_archive_is_unpacked(site: tuple[Path, str], entry: Entry) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("public/raw/NEG-136-SIMP.tsv", TABLE)
    (site[0] / "all.zip").write_bytes(content.getvalue())
    zipped = replace(entry, fetch="", archive=f"{site[1]}/all.zip", inside="public/raw")
    assert fetch_copy(zipped).paths[0].read_bytes() == TABLE
    with pytest.raises(FelicityError, match="not the expected archive"):
        fetch_copy(replace(zipped, inside="elsewhere"))


@pytest.mark.parametrize("place", ["NEG-136-SIMP.tsv", "NEG-136/NEG-136-SIMP.tsv.gz"])
def test_a_copy_of_the_user_is_found_however_it_lies(tmp_path: Path, entry: Entry, place: str) -> None:
    path = tmp_path / "mine" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(TABLE) if place.endswith(".gz") else TABLE)
    copy = find_copy(entry, tmp_path / "mine")
    assert copy is not None
    assert (copy.paths, copy.checksum) == ([path], "published")


def test_a_differing_copy_is_used_and_that_is_said(tmp_path: Path, entry: Entry, empty_cache: Path) -> None:
    (tmp_path / "NEG-136-SIMP.tsv").write_bytes(TABLE + b"1\tA rock is\tA rock is not\tstone\tfish\n")
    copy = keep_copy(entry, tmp_path)
    assert copy.checksum == "another version"
    assert "not the published version" in copy.note
    assert copy.paths[0].is_relative_to(empty_cache)


def test_a_folder_without_the_files_is_refused(tmp_path: Path, entry: Entry) -> None:
    with pytest.raises(BadInput, match="lacks NEG-136-SIMP.tsv"):
        find_copy(entry, tmp_path)
