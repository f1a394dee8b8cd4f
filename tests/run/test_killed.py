"""A run killed at any moment goes on where it stopped and ends with the very same tables."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from tests.conftest import make_tiny_model

N_PAIRS = 2500
TABLES = ("items", "requests", "tokens", "scores", "judgements")


def write_pairs(path: Path) -> Path:
    rng = random.Random(0)
    words = [
        "the",
        "cat",
        "dog",
        "saw",
        "barked",
        "here",
        "Tim",
        "annoys",
        "annoy",
        "herself",
        "ever",
        "no",
        "She",
        "has",
    ]
    rows = [
        f"s{i % 3},{' '.join(rng.choices(words, k=14))} {i}.,{' '.join(rng.choices(words, k=14))} {i}."
        for i in range(N_PAIRS)
    ]
    path.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    return path


def start(pairs: Path, model: Path, folder: Path, cache: Path) -> subprocess.Popen[bytes]:
    """A run in a process of its own; what it says is in `said.txt` beside the pairs."""
    command = [sys.executable, "-m", "felicity", "run", str(pairs), "-m", str(model), "-o", str(folder)]
    environment = os.environ | {"FELICITY_CACHE": str(cache)}
    with (pairs.parent / "said.txt").open("wb") as said:
        return subprocess.Popen(
            [*command, "--no-report", "--quiet"], env=environment, stdout=said, stderr=said
        )


def kept(cache: Path) -> int:
    """Texts in the score cache, opened for writing: a killed writer's journal is rolled back by the next."""
    for path in cache.glob("scores/*.sqlite"):
        try:
            with closing(sqlite3.connect(path, timeout=5)) as database:
                return int(database.execute("SELECT count(*) FROM score").fetchone()[0])
        except sqlite3.OperationalError as error:
            # A run that has just begun has made the file and not yet the table.
            assert "no such table" in str(error) or "locked" in str(error), error
            return 0
    return 0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model slow enough to be stopped in the middle: its passes take some five seconds of one core."""
    return make_tiny_model(tmp_path_factory.mktemp("killed") / "model", seed=2, width=192, layers=3)


@pytest.mark.slow
def test_an_interrupted_run_says_that_it_goes_on(model: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    process = start(pairs, model, tmp_path / "run", tmp_path / "cache")
    while process.poll() is None and not kept(tmp_path / "cache"):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    said = (tmp_path / "said.txt").read_text()
    assert said.strip().splitlines()[-1].startswith("Interrupted; finished scores are saved")
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_equal_tables(model: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    unbroken = start(pairs, model, tmp_path / "unbroken", tmp_path / "cache-1")
    assert unbroken.wait(timeout=300) == 0

    rng = random.Random(5)
    cache, folder = tmp_path / "cache-2", tmp_path / "broken"
    counts = [0]
    # The run has some fifty batches: three kills, each soon after the next batch, leave most of it to do.
    for _ in range(3):
        process = start(pairs, model, folder, cache)
        while process.poll() is None and kept(cache) <= counts[-1]:
            time.sleep(0.01)
        time.sleep(rng.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        counts.append(kept(cache))
        assert not (folder / "estimates.csv").exists()
    assert counts == sorted(counts)
    assert 0 < counts[-1] < 2 * N_PAIRS

    last = start(pairs, model, folder, cache)
    assert last.wait(timeout=300) == 0
    for name in TABLES:
        broken = pl.read_parquet(folder / f"{name}.parquet")
        assert broken.equals(pl.read_parquet(tmp_path / "unbroken" / f"{name}.parquet")), name
    assert (folder / "estimates.csv").read_bytes() == (tmp_path / "unbroken" / "estimates.csv").read_bytes()
    # What was kept before the last start was not scored again.
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["scored"] == {"texts": 2 * N_PAIRS, "now": 2 * N_PAIRS - counts[-1]}
    assert not [
        path for path in folder.iterdir() if path.name.startswith(".") or path.name == "pending.parquet"
    ]


def test_a_damaged_list_of_what_is_to_be_scored_is_done_without(tmp_path: Path, model: Path) -> None:
    """A killed run leaves the list; whatever has become of it, the run finishes with the same tables."""
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nHe left.,Him left.\n")
    lm = fe.model(str(model), cache=False)
    wanted = fe.evaluate(pairs, lm, out=tmp_path / "whole")["scores"]
    other = tmp_path / "whole" / "requests.parquet"
    for number, content in enumerate((b"", b"PAR1" + bytes(60) + b"PAR1", other.read_bytes())):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "pending.parquet").write_bytes(content)
        found = fe.evaluate(pairs, fe.model(str(model), cache=False), out=folder)["scores"]
        assert found["value"].to_list() == pytest.approx(wanted["value"].to_list(), abs=1e-4)


def test_a_list_that_another_process_has_removed_is_no_failure(tmp_path: Path) -> None:
    """Processes that work in one folder each remove the lists when all is scored."""
    from felicity.run.folder import RunFolder
    from felicity.run.steps import forget_pending

    class Slow(type(tmp_path)):  # type: ignore[misc]
        """A folder whose files are gone by the time that they are removed."""

        def glob(self, pattern: str) -> list[Path]:  # type: ignore[override]
            return [Path(self) / "pending-0.parquet", Path(self) / "pending.parquet"]

    (tmp_path / "pending.parquet").touch()
    forget_pending(RunFolder(Slow(tmp_path)))
    assert not list(tmp_path.iterdir())
