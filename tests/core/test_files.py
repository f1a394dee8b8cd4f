import gzip
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, data_folder, read_frame, read_text, replacing, replacing_folder


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_the_content_is_on_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.exists())))
    with replacing(path) as part:
        part.write_text("whole")
    assert seen == [(5, False)]
    with replacing_folder(tmp_path / "model") as part:
        (part / "weights").write_text("wider")
    assert len(seen) == 2


def test_a_pipe_or_device_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(pipe.read_text)
        with replacing(pipe) as part:
            part.write_text("a,b\n")
        assert received.result() == "a,b\n"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(RuntimeError), replacing_folder(path) as part:
        (part / "weights").write_text("half")
        raise RuntimeError
    assert os.listdir(tmp_path) == []
    with replacing_folder(path) as part:
        (part / "weights").write_text("whole")
    assert (path / "weights").read_text() == "whole"


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        RuntimeError("[enforce fail] PytorchStreamWriter failed writing file data/3"),
        ValueError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_said_whatever_library_finds_it(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(FelicityError, match=r"Cannot write .*weights: (no space left|the disk is full)"):
        with replacing(tmp_path / "weights"):
            raise error
    assert os.listdir(tmp_path) == []


def test_another_librarys_other_errors_are_not_the_disks(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shape"), replacing(tmp_path / "weights"):
        raise ValueError("wrong shape")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FelicityError, match=r"Cannot write .*table.csv: .*; choose another path"):
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


def test_tables_are_read_by_their_ending(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_csv(tmp_path / "t.tsv", separator="\t")
    frame.write_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.tsv", "t.parquet"):
        assert read_frame(tmp_path / name).equals(frame)
    (tmp_path / "na.csv").write_text("a,b\n1,NA\n2,3\n")
    assert read_frame(tmp_path / "na.csv")["b"].to_list() == [None, 3]


def test_cells_are_kept_as_they_are_written_if_they_are_to_be_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n007,NA\n1.50,\n")
    assert read_frame(tmp_path / "t.csv", as_text=True).rows() == [("007", "NA"), ("1.50", None)]
    pl.DataFrame({"a": [7], "b": [None]}).write_parquet(tmp_path / "t.parquet")
    assert read_frame(tmp_path / "t.parquet", as_text=True).rows() == [("7", None)]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("gone.csv", None, "There is no file"),
        ("t.pdf", None, "is not a table"),
        ("cut.xlsx", b"PK", "not a complete Excel workbook"),
        ("empty.csv", b"", "is empty"),
        ("latin.csv", "naïve,x\n1,é\n".encode("latin-1"), "cannot be read as a table"),
        ("cut.parquet", b"PAR1", "not a complete Parquet file"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=complaint):
        read_frame(tmp_path / name)


def test_gzip_is_recognized_by_name_and_by_content(tmp_path: Path) -> None:
    for name in ("t.csv.gz", "t.csv"):
        (tmp_path / name).write_bytes(gzip.compress(b"a,b\n1,x\n"))
        assert read_frame(tmp_path / name).rows() == [(1, "x")]
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n")[:-6])
    with pytest.raises(BadInput, match="cut.csv.gz is not a complete gzip file"):
        read_frame(tmp_path / "cut.csv.gz")
