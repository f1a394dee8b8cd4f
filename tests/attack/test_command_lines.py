"""Hostile command lines: each ends soon, with a documented exit code and without a traceback."""

import gzip
import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.attack import size
from tests.conftest import Answer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
LINES = 1000
PATIENCE = 60

VALUES = (
    *("", " ", "\udcff", "x" * 3000, "-1", "0", "nan", "inf", "-inf", "1e400", "9" * 5000, "1.5", "-"),
    *("../../etc/passwd", "/dev/null", "/", ".", "=1+1", "\x1b[31mred\x1b[0m", "\x9b31m", "\U0001f642"),
    *("a\nb", "%s%n", "{}", "[", "(0|g)", "y ~ x + (1|g)", "+".join("x" * 3000), "(1;%a%)", "___", "~"),
    *("http://[::1", "http://127.0.0.1:1/v1", "file:///etc/passwd", "openai:x", "[bold]", "None", "true"),
)


def write_files(folder: Path) -> list[str]:
    """Files that are not what they seem."""
    deep = "[" * 20_000 + "]" * 20_000
    files: dict[str, str | bytes] = {
        "empty.csv": "",
        "header.csv": "good,bad\n",
        "pairs.csv": "good,bad\nHe left.,Him left.\nShe saw him.,She saw he.\n",
        "scores.csv": "item,condition,value\n1,good,-1\n1,bad,nan\n",
        "escape.csv": "suite,good,bad\n\x1b[31ms,He left.,Him left.\n",
        "long.csv": f"good,bad\n{'He left. ' * 400},Him left.\n",
        "nul.csv": "good,bad\nHe\x00left.,Him left.\n",
        "binary.csv": bytes(range(256)) * 20,
        "table.csv": "y,x,g\n1,2,a\n2,3,a\n3,1,b\n4,4,b\n",
        "deep.json": deep,
        "deep.toml": f"a = {deep}",
        "deep.jsonl": deep,
        "twice.json": '{"meta": {"name": "a", "name": "b"}}',
        "digits.jsonl": '{"good": "a", "bad": "b", "n": ' + "9" * 5000 + "}\n",
        "surrogate.jsonl": '{"good": "\\ud800", "bad": "b"}\n',
        "field.jsonl": '{"item": "1", "condition": "good", "value": 1}\n{"item": "1"}\n',
        "cut.parquet": b"PAR1" + bytes(200) + b"PAR1",
        "cut.csv.gz": gzip.compress(b"good,bad\nx,y\n")[:-8],
        "corpus.txt": "the cat sat\nthe dog sat\n" * 20,
        "run/manifest.json": json.dumps({"model": [], "dataset": 3}),
        "other/manifest.json": json.dumps({"model": {}, "dataset": {}, "finished": "x"}),
        "model/config.json": "{}",
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return [str(folder / name) for name in files] + [str(folder / "run"), str(folder / "other"), str(folder)]


def templates(model: str, folder: str) -> list[list[str]]:
    """Commands as they should be; some of their parts are then replaced."""
    pairs, table = f"{folder}/pairs.csv", f"{folder}/table.csv"
    score = ["-m", model]
    return [
        ["judge", "He left.", "Him left.", *score, "--context", "It rained."],
        ["surprisal", f"{folder}/corpus.txt", *score],
        ["run", pairs, *score, "-o", f"{folder}/out", "--no-report", "--sample", "1", "--seed", "1"],
        ["run", pairs, *score, "-o", f"{folder}/out", "--no-report", "--measure", "lp", "--rule", "pair"],
        [
            "run",
            pairs,
            "-m",
            "openai:x",
            "--url",
            "http://127.0.0.1:1/v1",
            "--patience",
            "0.1",
            "--no-report",
        ],
        ["fill", "The cat is ___.", *score, "-k", "2"],
        ["generate", "The cat", *score, "--tokens", "2", "--temperature", "0"],
        [
            "context",
            pairs,
            *score,
            "--lengths",
            "0,10",
            "-o",
            f"{folder}/study",
            "--sample",
            "1",
            "--no-report",
        ],
        ["bias", pairs, *score, "-o", f"{folder}/bias"],
        ["replay", f"{folder}/scores.csv", "--good", "good", "-o", f"{folder}/replayed", "--no-report"],
        ["compare", f"{folder}/run", f"{folder}/other", "--measure", "lp"],
        ["fit", "y ~ x", table],
        ["fit", "y ~ x + (1 | g)", table, "--family", "gaussian"],
        ["power", "--shares", "0.1", "0.2"],
        ["report", f"{folder}/run"],
        ["export", f"{folder}/other", "--to", "csv", "-o", f"{folder}/export", "--safe"],
        ["count", f"{folder}/corpus.txt", *score, "-o", f"{folder}/counts.tsv"],
        ["data", "show", pairs],
        ["data", "check", pairs],
        ["data", "cite", "blimp"],
        ["syntaxgym", "convert", table, "--prediction", "(1;%a%) < (2;%a%)"],
        ["models", "info", model, "--bos", "none"],
        ["models", "topics", f"{folder}/model", "-k", "3"],
        ["models", "verify"],
        ["measures", "ls"],
        ["train", "ngram", f"{folder}/corpus.txt", "-o", f"{folder}/ngram.arpa", "--order", "2"],
        [
            "train",
            "lstm",
            f"{folder}/corpus.txt",
            "-o",
            f"{folder}/lstm",
            "--epochs",
            "1",
            "--dropout",
            "0.1",
        ],
    ]


def draw_line(rng: random.Random, shapes: list[list[str]], values: list[str]) -> list[str]:
    """One of the commands, with one to three of its parts replaced, and now and then one more or one less."""
    line = list(rng.choice(shapes))
    begin = 2 if line[0] in ("data", "syntaxgym", "models", "measures", "train") else 1
    for _ in range(rng.randint(1, 3)):
        if len(line) > begin:
            place = rng.randrange(begin, len(line))
            # -m is left alone: without it the default model would be loaded a thousand times.
            if "-m" not in (line[place], line[place - 1]):
                line[place] = rng.choice(values)
    if rng.random() < 0.2:
        line.insert(rng.randint(begin, len(line)), rng.choice(values))
    return line


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """A command that takes longer than this hangs."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_hostile_command_lines_end_in_a_sentence(
    cli: Callable[..., Answer],
    tiny_model: Path,
    tmp_path: Path,
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "files"
    folder.mkdir()
    values = [*VALUES, *write_files(folder)]
    rng = random.Random(12)
    shapes = templates(str(tiny_model), str(folder))
    codes: Counter[int] = Counter()
    wrong: list[tuple[str, list[str]]] = []
    for _ in range(size(LINES)):
        line = draw_line(rng, shapes, values)
        shown = [part[:60] for part in line]
        try:
            with limited(PATIENCE):
                answer = cli(*line)
        except Exception as error:  # noqa: BLE001 - whatever a command raises is what is looked for
            wrong.append((f"{type(error).__name__}: {str(error)[:200]}", shown))
            continue
        codes[answer.code] += 1
        if answer.code not in (0, 1, 2) or "Traceback" in answer.err:
            wrong.append((f"exit code {answer.code}", shown))
        if "\x1b" in answer.err + answer.out or "\x9b" in answer.err + answer.out:
            wrong.append(("an escape sequence reached the terminal", shown))
    assert not wrong, "\n".join(f"{what}: {line}" for what, line in wrong)
    assert codes[2] > codes[0]
