"""Hostile command lines: each ends soon, with a documented exit code and without a traceback."""

import gzip
import io
import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.attack import size
from tests.attack.shapes import build_folders, find_command, find_commands, list_lines, list_options
from tests.conftest import Answer

LINES = 1000
PATIENCE = 60
COMMANDS = find_commands()
WRITTEN = ("-o", "--output", "--out", "--figure", "--page", "--static", "--payment", "--database")

VALUES = (
    *(
        "",
        " ",
        "\udcff",
        "x" * 3000,
        "-1",
        "0",
        "1",
        "2",
        "0.5",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "9" * 5000,
        "1.5",
        "-",
    ),
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


def draw_line(rng: random.Random, lines: list[list[str]], values: list[str]) -> list[str]:
    """One of the commands with one to three of its parts replaced, and now and then a part or option more."""
    line = list(rng.choice(lines))
    name = find_command(line, COMMANDS)
    begin = len(name.split())
    for _ in range(rng.randint(1, 3)):
        if len(line) > begin:
            place = rng.randrange(begin, len(line))
            # -m is left alone: without it the default model would be loaded a thousand times.
            if "-m" not in (line[place], line[place - 1]):
                line[place] = rng.choice(values)
    if rng.random() < 0.2:
        line.insert(rng.randint(begin, len(line)), rng.choice(values))
    options = list_options(COMMANDS[name])
    if options and rng.random() < 0.5:
        option, flag = rng.choice(options)
        line += [option] if flag else [option, rng.choice(values)]
    # Nothing is written to the root of the machine that the test runs on.
    return [part if part != "/" or before not in WRITTEN else "." for before, part in pairwise(["", *line])]


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


def stop_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers announce themselves and end, nobody types anything, and no browser opens."""
    from felicity.web import server

    run = server._Server.run

    def announce(self: server._Server, sockets: Any = None) -> None:
        if threading.current_thread() is not threading.main_thread():
            run(self, sockets)  # the site that simulated raters visit
        elif self._announce:
            self._announce()

    monkeypatch.setattr(server._Server, "run", announce)
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    monkeypatch.setattr("typer.launch", lambda _: 0)
    monkeypatch.setattr("sys.stdin", io.StringIO("r\n"))
    for name in ("OPENAI_API_KEY", "FELICITY_API_KEY", "OPENAI_BASE_URL", "FELICITY_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_attacked(name: str) -> None:
    assert name in {find_command(line, COMMANDS) for line in list_lines("model", "folder")}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_hostile_command_lines_end_in_a_sentence(
    cli: Callable[..., Answer],
    tmp_path: Path,
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "files"
    folder.mkdir()
    values = [*VALUES, *write_files(folder)]
    stop_at_once(monkeypatch)
    model = build_folders(cli, folder)
    rng = random.Random(12)
    lines = list_lines(model, str(folder))
    codes: Counter[int] = Counter()
    wrong: list[tuple[str, list[str]]] = []
    for _ in range(size(LINES)):
        line = draw_line(rng, lines, values)
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
