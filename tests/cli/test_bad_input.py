"""Whatever is wrong with what a command is given: one sentence, exit code 2, nothing damaged."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from felicity.core.files import cache_folder
from tests.conftest import Answer, make_tiny_model

Cli = Callable[..., Answer]
PAIRS = "good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nHe left.,Him left.\n"

FILES = {
    "missing": ("absent.csv", None, "no file .*absent.csv"),
    "empty": ("empty.csv", b"", "empty.csv is empty"),
    "folder": ("folder.csv", "folder", "folder.csv is a folder"),
    "bad UTF-8": ("bytes.csv", b"good,bad\nA.,\xff.\n", "bytes.csv, line 2: not UTF-8"),
    "other columns": ("other.csv", b"left,right\nA.,B.\n", "no column 'good' in .*other.csv"),
    "numbers": ("numbers.csv", b"good,bad\n1,2\n3,4\n", "contains numbers"),
    "cut Parquet": ("cut.parquet", b"PAR1\x00\x00", "cut.parquet is not a complete Parquet file"),
}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


@pytest.fixture
def run_folder(cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    assert cli("run", pairs, "-m", tiny_model, "-o", folder, "--no-report", "-q").code == 0
    return folder


def make_bad(folder: Path, name: str, content: bytes | str | None) -> Path:
    path = folder / name
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    return path


def refused(answer: Answer, pattern: str) -> None:
    """Exit code 2 and one sentence on standard error that fits, without a traceback."""
    assert answer.code == 2, answer
    lines = [
        line
        for line in answer.err.strip().splitlines()
        if not line.startswith(("Audit", "scoring", "counting"))
    ]
    assert len(lines) == 1, answer.err
    assert re.search(pattern, lines[0]), lines[0]
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", [("run",), ("data", "show"), ("stimuli", "check")], ids=" ".join)
def test_a_bad_table_is_refused(
    cli: Cli, tmp_path: Path, tiny_model: Path, command: tuple[str, ...], kind: str
) -> None:
    name, content, said = FILES[kind]
    path = make_bad(tmp_path, name, content)
    options = ("-m", tiny_model, "-o", tmp_path / "run") if command == ("run",) else ()
    refused(cli(*command, path, *options), said)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["missing", "empty", "folder", "bad UTF-8"])
def test_a_bad_corpus_is_refused(cli: Cli, tmp_path: Path, tiny_model: Path, kind: str) -> None:
    name, content, _ = FILES[kind]
    path = make_bad(tmp_path, name, content)
    refused(cli("measures", "count", path, "-m", tiny_model, "-o", tmp_path / "counts.tsv"), name)
    assert not (tmp_path / "counts.tsv").exists()


@pytest.mark.parametrize("kind", ["missing", "empty", "folder", "bad UTF-8"])
def test_a_bad_unigram_table_is_refused(
    cli: Cli, pairs: Path, tmp_path: Path, tiny_model: Path, kind: str
) -> None:
    name, content, _ = FILES[kind]
    path = make_bad(tmp_path, name, content)
    answer = cli(
        "run", pairs, "-m", tiny_model, "--measure", "slor", "--unigram", path, "-o", tmp_path / "run"
    )
    refused(answer, name)


COMMANDS_OF_A_RUN = [("report",), ("export",)]


@pytest.mark.parametrize("command", COMMANDS_OF_A_RUN, ids=" ".join)
@pytest.mark.parametrize("kind", ["missing", "file", "empty folder"])
def test_what_is_no_run_is_refused(cli: Cli, tmp_path: Path, command: tuple[str, ...], kind: str) -> None:
    path = tmp_path / "not-a-run"
    if kind == "file":
        path.write_text("x")
    elif kind == "empty folder":
        path.mkdir()
    refused(cli(*command, path), "not-a-run")


@pytest.mark.parametrize("command", COMMANDS_OF_A_RUN, ids=" ".join)
def test_a_cut_off_table_is_named_and_made_again_by_run(
    cli: Cli, run_folder: Path, pairs: Path, tiny_model: Path, command: tuple[str, ...]
) -> None:
    table = run_folder / "tokens.parquet"
    whole = pl.read_parquet(table)
    table.write_bytes(table.read_bytes()[:-20])
    refused(cli(*command, run_folder), "tokens.parquet was changed since the run finished; run it again")
    assert cli("run", pairs, "-m", tiny_model, "-o", run_folder, "--no-report", "-q").code == 0
    assert pl.read_parquet(table).equals(whole)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"a": 1}'])
def test_a_broken_manifest_is_named(
    cli: Cli, run_folder: Path, pairs: Path, tiny_model: Path, content: bytes
) -> None:
    (run_folder / "manifest.json").write_bytes(content)
    for command in (("report", run_folder), ("run", pairs, "-m", tiny_model, "-o", run_folder)):
        refused(cli(*command), "manifest.json")


def test_the_folder_of_another_model_is_refused_and_left_alone(
    cli: Cli, run_folder: Path, pairs: Path, tmp_path: Path
) -> None:
    other = make_tiny_model(tmp_path / "other-gpt2", seed=9)
    before = {path.name: path.read_bytes() for path in run_folder.iterdir()}
    refused(cli("run", pairs, "-m", other, "-o", run_folder), "the model 'tiny-gpt2', not 'other-gpt2'")
    assert {path.name: path.read_bytes() for path in run_folder.iterdir()} == before


def test_other_weights_under_the_same_name_are_refused(
    cli: Cli, run_folder: Path, pairs: Path, tmp_path: Path
) -> None:
    other = make_tiny_model(tmp_path / "again" / "tiny-gpt2", seed=9)
    refused(cli("run", pairs, "-m", other, "-o", run_folder), "'tiny-gpt2' with another weights")


def test_names_that_nothing_answers_to_get_the_near_one(cli: Cli, tiny_model: Path, pairs: Path) -> None:
    refused(cli("run", "startr", "-m", tiny_model), "did you mean 'starter'")
    refused(cli("data", "show", "blmp"), "did you mean 'blimp'")
    refused(cli("run", pairs, "-m", tiny_model, "--measure", "sloor"), "did you mean 'slor'")
    refused(cli("run", pairs, "-m", tiny_model, "--compat", "minicon"), "did you mean 'minicons'")
    refused(cli("run", pairs, "-m", tiny_model, "--bos", "<nope>"), "'<nope>' is not a token of 'tiny-gpt2'")
    refused(cli("run", pairs, "-m", tiny_model, "--bos", "The"), "ordinary token .* write 'token:The'")
    refused(cli("run", pairs, "-m", tiny_model, "--device", "gpu9"), "no device 'gpu9'")
    refused(cli("data", "show", "starter", "--suite", "nonesuch"), "no suite 'nonesuch'")


@pytest.mark.parametrize(
    "command",
    [
        ("judge", "A.", "B.", "-m"),
        ("run", "starter", "-m"),
        ("models", "info"),
        ("models", "get"),
        ("measures", "count", "c.txt", "-o", "o.tsv", "-m"),
    ],
    ids=lambda c: c[0],
)
def test_an_unknown_model_gets_the_near_one(cli: Cli, command: tuple[str, ...]) -> None:
    refused(cli(*command, "smolm2"), "did you mean 'smollm2'")


def test_a_text_longer_than_the_window_is_refused_by_name(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    long = "cat " * 80
    refused(cli("judge", long, "Cats.", "-m", tiny_model), "text 1.* reads at most 64; shorten it")
    refused(cli("judge", "Cats.", "Dogs.", "--context", long, "-m", tiny_model), "--overflow drop")
    path = tmp_path / "long.csv"
    path.write_text(f"good,bad\nHe left.,{long}.\n")
    refused(cli("run", path, "-m", tiny_model, "-o", tmp_path / "run"), "'long/1/bad' is .* reads at most 64")


def test_an_empty_sentence_is_refused(cli: Cli, tiny_model: Path) -> None:
    refused(cli("judge", "", "Cats.", "-m", tiny_model), "Text 1 is ''")


@pytest.mark.parametrize("command", ["run", "count", "export", "report"])
def test_a_place_that_cannot_be_written_is_named(
    cli: Cli, command: str, pairs: Path, run_folder: Path, tiny_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    blocked = tmp_path / "file" / "out"
    if command == "run":
        answer = cli("run", pairs, "-m", tiny_model, "-o", blocked)
    elif command == "count":
        answer = cli("measures", "count", pairs, "-m", tiny_model, "-o", blocked)
    elif command == "export":
        answer = cli("export", run_folder, "-o", blocked)
    else:
        (run_folder / "figures").write_text("in the way")
        answer = cli("report", run_folder)
    refused(answer, "Cannot write")
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_score_cache_on_a_full_device_is_said(
    cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path
) -> None:
    scores = cache_folder() / "scores"
    hidden = scores.with_name("scores-aside")
    scores.rename(hidden)
    try:
        scores.symlink_to("/dev/full")
        answer = cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run", "--no-report")
        refused(answer, "Cannot use the score cache")
    finally:
        scores.unlink()
        hidden.rename(scores)


def test_a_model_folder_that_is_none_is_refused(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty-model"
    empty.mkdir()
    refused(cli("judge", "A.", "B.", "-m", empty), "empty-model")
    cut = tmp_path / "cut-model"
    shutil.copytree(tiny_model, cut)
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refused(cli("judge", "A.", "B.", "-m", cut), "cut-model")


def test_a_full_disk_loses_nothing_that_was_scored(
    cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path, small_disk: Path
) -> None:
    answer = cli("run", pairs, "-m", tiny_model, "-o", small_disk / "run", "--no-report")
    refused(answer, "Cannot write .*: no space left on device")
    assert not list((small_disk / "run").glob(".*"))
    again = cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run", "--no-report", "--json")
    assert again.code == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB of our own, where this user may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    mounted = (
        shutil.which("mount") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    if not mounted:
        pytest.skip("this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_surprisal_refuses_an_ending_before_it_loads_the_model(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("He left.\n", encoding="utf-8")
    answer = cli("surprisal", tmp_path / "own.txt", "-m", tmp_path / "absent.arpa", "-o", tmp_path / "a.xyz")
    refused(answer, "no ending '.xyz'")


DEEP = "[" * 20_000 + "]" * 20_000
HOSTILE = {
    "a lone surrogate": ("x.jsonl", '{"good": "\\ud800", "bad": "b"}\n', "stimuli check {file}"),
    "an integer of 5,000 digits": (
        "x.jsonl",
        '{"good": "a", "bad": "b", "n": %s}\n' % ("9" * 5000),
        "run {file}",
    ),
    "deep JSON": ("x.json", DEEP, "stimuli check {file}"),
    "deep JSON lines": ("x.jsonl", DEEP, "run {file}"),
    "deep TOML": ("x.toml", f"a = {DEEP}", "stimuli check {file}"),
    "deep TOML of a template": ("x.toml", f"a = {DEEP}", "stimuli template {file}"),
    "deep TOML of a paradigm": ("x.toml", f"a = {DEEP}", "stimuli pairs {file}"),
    "deep TOML of claims": ("x.toml", f"a = {DEEP}", "reproduce {file}"),
    "deep TOML of a design": ("x.toml", f"a = {DEEP}", "causality {file} -o out"),
    "a key given twice": ("x.json", '{"meta": {"name": "a", "name": "b"}}', "stimuli check {file}"),
    "a row without a field": (
        "x.jsonl",
        '{"item": 1, "condition": "good", "value": 1}\n{"item": 1}\n',
        "replay {file}",
    ),
    "a random effect of nothing": (
        "x.csv",
        "y,x,g\n1,2,a\n2,3,a\n3,1,b\n4,5,b\n",
        "fit 'y ~ x + (0|g)' {file}",
    ),
    "a formula of 3,000 operators": (
        "x.csv",
        "y,x\n1,2\n2,3\n3,1\n",
        f"fit 'y ~ {'+'.join('x' * 3000)}' {{file}}",
    ),
    "a dropout that is no number": ("x.txt", "a b c\n" * 9, "train lstm {file} -o out --dropout nan"),
    "a path that is not Unicode": ("x.csv", "good,bad\na,b\n", "run {file} -o x\udcff"),
    "a name of 3,000 characters": ("x.csv", "good,bad\na,b\n", f"run {{file}} -o {'x' * 3000}"),
    "ratings of a lone surrogate": (
        "x.jsonl",
        '{"text": "\\ud800", "rating": 1}\n',
        "acceptability {file} -o out",
    ),
}


@pytest.mark.parametrize("what", list(HOSTILE))
def test_hostile_input_is_one_sentence(
    what: str, cli: Callable[..., Answer], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, content, line = HOSTILE[what]
    (tmp_path / name).write_text(content, encoding="utf-8")
    words = shlex.split(line.format(file=name))
    models = ["-m", str(tiny_model)] if words[0] in ("run", "acceptability") or words[1] == "run" else []
    told = cli(*words, *models)
    # `stimuli check` ends with 1 where it has read the file and found something.
    assert told.code in ((1, 2) if words[:2] == ["stimuli", "check"] else (2,)), (told.out, told.err)
    assert "Traceback" not in told.err
    assert len(told.err.strip().splitlines()) <= 8
