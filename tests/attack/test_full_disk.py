"""A disk that is really full: one sentence, nothing half written, and the same command finishes later."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attack.test_kills import content
from tests.conftest import Answer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
Cli = Callable[..., Answer]
DISK_MEGABYTES = 8
# Room that is left, in kB: none, less than the first file needs, and what ends in the middle of the work.
ROOM = (0, 4, 16, 48, 128)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An ext4 file system of 8 MB in a file, where this user may mount one."""
    image = tmp_path_factory.mktemp("disk") / "image"
    folder = image.with_name("mounted")
    folder.mkdir()
    with image.open("wb") as handle:
        handle.truncate(DISK_MEGABYTES << 20)
    make = ["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", str(image)]
    mount = ["mount", "-o", "loop", str(image), str(folder)]
    if not all(
        shutil.which(command[0]) and subprocess.run(command, capture_output=True, check=False).returncode == 0
        for command in (make, mount)
    ):
        pytest.skip("this user may not mount a small file system")
    yield folder
    # Lazily, for a score cache on it may still be open in this process.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, room: int) -> None:
    """Write a file that leaves so many kB; with 0 it writes until the device itself refuses."""
    found = os.statvfs(disk)
    size = found.f_bavail * found.f_frsize - 1024 * room
    with (disk / "filler").open("wb", buffering=0) as handle:
        try:
            handle.write(b"\0" * size)
            while not room:
                handle.write(b"\0" * 512)
        except OSError as error:
            assert error.errno == 28  # No space left on device: what is to be there.
        os.fsync(handle.fileno())


def clear(disk: Path) -> None:
    for path in disk.iterdir():
        if path.name != "lost+found":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of sentences and, beside them, a corpus."""
    folder = tmp_path_factory.mktemp("texts")
    rows = [f"The cat{n} annoys dog{n % 7} twice." for n in range(300)]
    (folder / "corpus.txt").write_text("\n".join(rows) + "\n")
    pairs = "".join(f"s,{row},{row.replace('annoys', 'annoy')}\n" for row in rows)
    (folder / "pairs.csv").write_text("suite,good,bad\n" + pairs)
    return folder


LSTM = ("--min-count", 1, "--embedding", 16, "--hidden", 24, "--batch", 16, "--epochs", 2, "--device", "cpu")


def command(kind: str, texts: Path, model: Path, done: Path, out: Path) -> list[object]:
    """The arguments of a command that writes to `out`; `done` is a finished run."""
    return {
        "run": ["run", texts / "pairs.csv", "-m", model, "-o", out, "-q"],
        "lstm": ["train", "lstm", texts / "corpus.txt", *LSTM, "-q", "-o", out],
        "ngram": ["train", "ngram", texts / "corpus.txt", "-n", 4, "-q", "-o", out / "model.arpa"],
        "csv": ["export", done, "-o", out],
        "jsonl": ["export", done, "--to", "jsonl", "-o", out],
    }[kind]


def compared(folder: Path) -> dict[str, str]:
    """What must be the same: all but a training's checkpoint and history, which hold times."""
    timed = ("checkpoint.pt", "history.json")
    return {name: digest for name, digest in content(folder).items() if name not in timed}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, texts: Path, tiny_model: Path) -> Path:
    """A finished run on a disk with room."""
    import felicity as fe

    folder = tmp_path_factory.mktemp("done") / "run"
    fe.evaluate(str(texts / "pairs.csv"), fe.model(str(tiny_model)), out=folder)
    return folder


@pytest.mark.parametrize("kind", ["run", "lstm", "ngram", "csv", "jsonl"])
def test_a_full_disk_is_one_sentence_and_the_command_finishes_once_there_is_room(
    kind: str, cli: Cli, texts: Path, tiny_model: Path, done: Path, disk: Path, tmp_path: Path
) -> None:
    whole = cli(*command(kind, texts, tiny_model, done, tmp_path / "out"))
    assert whole.code == 0, whole
    wanted = compared(tmp_path / "out")
    refused = 0
    for room in ROOM:
        clear(disk)
        fill(disk, room)
        answer = cli(*command(kind, texts, tiny_model, done, disk / "out"))
        if answer.code != 0:
            assert answer.code == 2, (room, answer)
            assert "no space left on device" in answer.err or "the disk is full" in answer.err, (room, answer)
            assert "Traceback" not in answer.err, (room, answer)
            assert len([line for line in answer.err.splitlines() if "annot" in line]) == 1, (room, answer)
            refused += 1
        assert not [path for path in disk.rglob(".*") if path.stat().st_size], room
        (disk / "filler").unlink()
        again = cli(*command(kind, texts, tiny_model, done, disk / "out"))
        assert again.code == 0, (room, again)
        assert compared(disk / "out") == wanted, room
    assert refused >= 2
    clear(disk)


def test_a_full_disk_under_the_cache_loses_no_run(
    cli: Cli,
    texts: Path,
    tiny_model: Path,
    done: Path,
    disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = content(done)
    for room in ROOM:
        clear(disk)
        fill(disk, room)
        monkeypatch.setenv("FELICITY_CACHE", str(disk / "cache"))
        out = tmp_path / f"run-{room}"
        answer = cli(*command("run", texts, tiny_model, done, out), "--no-report")
        assert answer.code in (0, 2), (room, answer)
        assert answer.code == 0 or "score cache" in answer.err or "Cannot write" in answer.err, (room, answer)
        (disk / "filler").unlink()
        again = cli(*command("run", texts, tiny_model, done, out), "--no-report")
        assert again.code == 0, (room, again)
        assert content(out) == wanted, room
    clear(disk)
