import os
from pathlib import Path

import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, data_folder, read_text, replacing, replacing_folder


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(RuntimeError), replacing_folder(path) as part:
        (part / "weights").write_text("half")
        raise RuntimeError
    assert os.listdir(tmp_path) == []
    with replacing_folder(path) as part:
        (part / "weights").write_text("whole")
    assert (path / "weights").read_text() == "whole"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FelicityError, match=r"Cannot write .*table.csv: .*; choose another place"):
        with replacing(tmp_path / "file" / "table.csv"):
            pass


def test_bad_utf8_is_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"good,bad\nfine,\xff\n")
    with pytest.raises(BadInput, match=r"pairs.csv, line 2: not UTF-8"):
        read_text(path)


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"\xef\xbb\xbfgood")
    assert read_text(path) == "good"


def test_the_environment_names_the_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FELICITY_CACHE", str(tmp_path / "c"))
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path / "d"))
    assert cache_folder() == tmp_path / "c"
    assert data_folder() == tmp_path / "d"
    monkeypatch.delenv("FELICITY_CACHE")
    monkeypatch.delenv("FELICITY_DATA")
    assert cache_folder().name == "felicity"
    assert data_folder() is None
