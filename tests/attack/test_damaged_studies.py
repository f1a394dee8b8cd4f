"""A flipped bit or a missing end in the folder of a study: refused, healed, or without effect; never used."""

import random
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack import size
from tests.attack.shapes import build_folders
from tests.attack.test_bit_flips import flip
from tests.attack.test_command_lines import stop_at_once
from tests.attack.test_kills import content
from tests.conftest import Answer

Cli = Callable[..., Answer]
# What reads the folder of each study, and where it writes; {o} is a new folder.
READERS = {
    "one": ["export {f}/one -o {o}", "report {f}/one", "compare {f}/one {f}/two --json"],
    "context": [
        "report {f}/context",
        "export {f}/context -o {o}",
        "explore {f}/context --static {o}/page.html",
        "context {f}/pairs.csv --contexts {f}/context/contexts.parquet -o {o} -m {f}/tiny -q --no-report",
        "context {f}/pairs.csv -m {f}/tiny -q --lengths 0,30 --kind matched_acceptable -o {f}/context",
    ],
    "cloze": [
        "report {f}/cloze",
        "export {f}/cloze -o {o}",
        "cloze {f}/blanks.csv -m {f}/tiny -q -o {f}/cloze",
    ],
    "bias": ["report {f}/bias", "export {f}/bias -o {o}"],
    "acceptability": [
        "report {f}/acceptability",
        "acceptability {f}/rated.csv -m {f}/tiny -q -o {f}/acceptability --corpus {f}/corpus.txt "
        "--unseen 0.9",
    ],
    "causality": [
        "report {f}/causality --json",
        "rate new {o} --from {f}/causality --verbs 1 --bins 2 --pairs 1 --parts 1",
    ],
    "extended": ["stimuli review {f}/extended --summary", "stimuli check {f}/extended"],
    "rating": [
        "rate export {f}/rating --database sqlite:///{f}/rating/simulation/answers.sqlite -o {o}",
        "rate status {f}/rating --database sqlite:///{f}/rating/simulation/answers.sqlite --json",
    ],
}
# Pages, figures and the list of rejections are written, never read; a key or a lock tells nothing. The
# wording in a study file may change at any time, and the codebook with it.
NOT_READ = (".html", ".svg", ".png", ".pdf", ".lock", ".md", ".key", "rejections.csv", "study.toml")

# The folder of all studies, once it is built; each kind of study is damaged in its own part of it.
BUILT: list[Path] = []


def damage(path: Path, rng: random.Random) -> str:
    """Flip one bit of a file, or cut its end off."""
    whole = path.read_bytes()
    # A log whose last lines are gone is a shorter log: what a chain cannot show.
    if rng.random() < 0.7 or path.suffix == ".jsonl":
        return f"bit {flip(path, rng)}"
    left = rng.randrange(len(whole))
    path.write_bytes(whole[:left])
    return f"{left} of {len(whole)} bytes"


Told = tuple[int, str, object, dict[str, bytes]]


def leave_out(told: Told, name: str | None) -> Told:
    """What a reader told, without one of the study's tables."""
    return (*told[:3], {table: content for table, content in told[3].items() if table != name})


def tell(cli: Cli, line: str, folder: Path, study: Path, out: Path) -> tuple[Answer, Told]:
    """What a reader answers, all that it writes into a folder of its own, and the tables of the study."""
    shutil.rmtree(out, ignore_errors=True)
    answer = cli(*shlex.split(line.format(f=folder, o=out)))
    tables = {path.name: path.read_bytes() for path in study.glob("*.csv")}
    return answer, (answer.code, answer.out, content(out) if out.exists() else None, tables)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", list(READERS))
def test_a_damaged_study_is_refused_or_gives_the_same_result(
    kind: str,
    cli: Cli,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    stop_at_once(monkeypatch)
    out, pristine = tmp_path / "out", tmp_path / "pristine"
    if not BUILT:
        BUILT.append(tmp_path_factory.mktemp("studies"))
        build_folders(cli, BUILT[0])
    folder = BUILT[0]
    shutil.copytree(folder / kind, pristine)
    expected = {}
    for line in READERS[kind]:
        answer, expected[line] = tell(cli, line, folder, folder / kind, out)
        assert answer.code == 0, answer
    rng = random.Random(kind)
    refused, silent = 0, []
    for _ in range(size(40)):
        shutil.rmtree(folder / kind)
        shutil.copytree(pristine, folder / kind)
        files = [path for path in sorted((folder / kind).rglob("*")) if is_read(path)]
        path = rng.choice(files)
        how, line = damage(path, rng), rng.choice(READERS[kind])
        damaged = path.read_bytes()
        answer, found = tell(cli, line, folder, folder / kind, out)
        # A table that this command neither reads nor writes stays as it is.
        idle = path.name if path.exists() and path.read_bytes() == damaged else None
        assert answer.code in (0, 1, 2), (path, how, line, answer)
        assert "Traceback" not in answer.err, (path, how, line, answer)
        refused += answer.code != 0
        if answer.code == 0 and leave_out(found, idle) != leave_out(expected[line], idle):
            silent.append((path.relative_to(folder), how, line))
    assert not silent, "\n".join(map(str, silent))
    assert refused


def is_read(path: Path) -> bool:
    return path.is_file() and not path.name.endswith(NOT_READ) and path.stat().st_size > 0
