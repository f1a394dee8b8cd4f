"""What would fill the memory or end in a traceback is refused in one sentence, with exit code 2."""

import gzip
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.files import read_frame
from tests.conftest import Answer

Cli = Callable[..., Answer]
PAIRS = "good,bad\nHe left.,Him left.\n"


@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
def test_a_number_of_threads_that_polars_cannot_have_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", value)
    answer = cli("run", "nothing.csv")
    assert (answer.code, answer.err) == (
        2,
        f"POLARS_MAX_THREADS is '{value}'; set it to a whole number of at least 1, or unset it.\n",
    )


@pytest.mark.parametrize("command", [("run",), ("data", "show"), ("stimuli", "check")])
def test_a_file_name_that_is_not_unicode_is_refused(
    cli: Cli, tmp_path: Path, tiny_model: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / os.fsdecode(b"pairs\xff.csv")
    path.write_text(PAIRS)
    answer = cli(*command, path, *(("-m", tiny_model) if command == ("run",) else ()))
    assert answer.code == 2
    assert "is not valid Unicode; rename it" in answer.err


def test_a_run_without_judgements_is_not_explored(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "pairs.csv").write_text(PAIRS)
    run = tmp_path / "run"
    assert cli("run", tmp_path / "pairs.csv", "-m", tiny_model, "-o", run, "-q", "--no-report").code == 0
    pl.read_parquet(run / "judgements.parquet").clear().write_parquet(run / "judgements.parquet")
    answer = cli("explore", run, "--static", tmp_path / "page.html", "--force")
    assert answer.code == 2, answer
    assert "has no judgements" in answer.err


def test_a_parquet_file_whose_table_is_far_larger_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr("felicity.core.files.MOST_UNPACKED", 10_000_000)
    same = pa.DictionaryArray.from_arrays(np.zeros(2_000_000, dtype=np.int8), ["He left."])
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"good": same}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    for command in (("data", "show", path), ("fit", "good ~ 1", path), ("run", path)):
        answer = cli(*command)
        assert answer.code == 2
        assert "but its table would take" in answer.err, answer.err


def test_an_ordinary_parquet_file_is_read(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": range(1000), "y": ["the same"] * 1000})
    table.write_parquet(tmp_path / "table.parquet")
    assert read_frame(tmp_path / "table.parquet").equals(table)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A small answer that unpacks into a thousand times as much."""
    return gzip.compress(bytes(20_000_000), 6)


@pytest.fixture(params=["gzip", "gzip, gzip", "br", "deflate"])
def server(request: pytest.FixtureRequest, bomb: bytes) -> Iterator[str]:
    """A server whose every answer is the bomb."""

    class Bomb(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-encoding", request.param)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(bomb)))
            self.end_headers()
            self.wfile.write(bomb)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Bomb)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}/v1"
    made.shutdown()
    made.server_close()


def test_an_answer_that_unpacks_into_far_more_is_refused(
    server: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felicity.engines.served.client.LARGEST_ANSWER", 2_000_000)
    (tmp_path / "pairs.csv").write_text(PAIRS)
    answer = cli("run", tmp_path / "pairs.csv", "-m", "openai:x", "--url", server, "--patience", "0.1")
    assert answer.code == 2, answer
    assert "(an answer of more than 2 MB)" in answer.err or "(an answer packed as" in answer.err
