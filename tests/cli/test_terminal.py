"""What reaches the terminal: no escape sequences, no half characters, and a full device said."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.cli.terminal import PlainConsole, plain_text, print_json
from tests.conftest import Answer

NASTY = "\x1b]0;owned\x07red \x1b[31m \x9b31m \udcff"


def test_control_characters_are_written_out_and_line_breaks_stay() -> None:
    assert plain_text("a\x1b[31m\x9b\udcff\n\tb") == "a\\x1b[31m\\x9b\\udcff\n\tb"


def test_nothing_printed_moves_the_cursor() -> None:
    from rich.table import Table

    file = io.StringIO()
    console = PlainConsole(file=file, width=200, force_terminal=False)
    table = Table()
    table.add_column(NASTY)
    table.add_row(NASTY)
    console.print(NASTY, table)
    assert not {"\x1b", "\x07", "\x9b", "\udcff"} & set(file.getvalue())
    assert "red" in file.getvalue()


def test_json_has_no_control_characters_and_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": NASTY})
    said = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x9b", "\udcff"} & set(said)
    assert json.loads(said) == {"name": NASTY}


def test_an_error_does_not_repeat_an_escape_sequence(cli: Callable[..., Answer], tmp_path: Path) -> None:
    answer = cli("run", tmp_path / "no\x1b[31mfile.csv", "-m", tmp_path / "none")
    assert answer.code == 2
    assert "\x1b" not in answer.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_device_is_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "felicity", "measures"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"Cannot write the output: no space left on device.\n"


def test_what_a_model_writes_does_not_reach_the_terminal_as_an_escape_sequence(
    cli: Callable[..., Answer], tiny_model: Path
) -> None:
    answer = cli("generate", "The \x1b[31mcat", "-m", tiny_model, "--tokens", 1)
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out
    assert "\\x1b[31mcat" in answer.out
