"""Everyday jobs: several models in one command, an edited stimulus file, the score cache."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.run.evaluate import read_run
from tests.conftest import Answer

Cli = Callable[..., Answer]
PAIRS = """suite,good,bad
s0,The cats sleep.,The cats sleeps.
s0,The dogs bark.,The dogs barks.
s1,The boy runs.,The boy run.
s1,The girl sings.,The girl sing.
"""


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def test_two_models_get_a_run_each_and_one_report(cli: Cli, pairs: Path, tiny_model: Path) -> None:
    other = pairs.parent / "tiny-copy"
    shutil.copytree(tiny_model, other)
    out = pairs.parent / "both"
    answer = cli("run", pairs, "-m", tiny_model, "-m", other, "-o", out, "--no-report", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert [Path(run["folder"]).name for run in told["runs"]] == [tiny_model.name, "tiny-copy"]
    assert told["report"] is None
    assert not (out / "report.html").exists()
    assert cli("report", out).code == 0
    assert "By phenomenon" in (out / "report.html").read_text(encoding="utf-8")
    twice = cli("run", pairs, "-m", tiny_model, "-m", tiny_model, "-o", out, "--no-report")
    assert twice.code == 2
    assert "Two models are called" in twice.err


def test_an_edited_file_says_what_changed_and_overwrites_on_request(
    cli: Cli, pairs: Path, tiny_model: Path
) -> None:
    options = ("-m", tiny_model, "-o", pairs.parent / "run", "--no-report", "-q")
    assert cli("run", pairs, *options).code == 0
    pairs.write_text(PAIRS.replace("The boy runs.", "The man runs."))
    refused = cli("run", pairs, *options)
    assert refused.code == 2
    assert "1 stimulus changed" in refused.err
    assert "'The boy runs.' is now 'The man runs.'" in refused.err
    assert "--overwrite" in refused.err
    assert cli("run", pairs, *options, "--overwrite").code == 0
    run = read_run(pairs.parent / "run")
    assert "The man runs." in run["items"]["text"].to_list()
    # Seven of the eight sentences had been scored before.
    assert run.manifest["scored"] == {"texts": 8, "now": 1}


def test_the_cache_is_listed_and_cleared_by_model(cli: Cli, pairs: Path, tiny_model: Path) -> None:
    cli("run", pairs, "-m", tiny_model, "-o", pairs.parent / "run", "--no-report", "-q")
    rows = json.loads(cli("cache", "ls", "--json").out)
    assert max(row["texts"] for row in rows if row["model"] == tiny_model.name) >= 8
    assert cli("cache", "clear").code == 2
    assert "no-such-model" in cli("cache", "clear", "-m", "no-such-model").err
    assert cli("cache", "clear", "-m", tiny_model.name).code == 0
    assert not [
        row for row in json.loads(cli("cache", "ls", "--json").out) if row["model"] == tiny_model.name
    ]
