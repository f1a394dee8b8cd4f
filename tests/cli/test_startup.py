"""What is in the cache already is told without torch and transformers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "pandas", "scipy", "altair")
PROGRAM = """
import json, sys
from felicity.cli.app import main
sys.argv = ["felicity", *json.loads(sys.argv[1])]
try:
    main()
finally:
    sys.stderr.write("\\n" + json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def call(*arguments: object) -> tuple[str, set[str]]:
    """What a command prints in a process of its own, and the packages that it has imported."""
    command = [sys.executable, "-c", PROGRAM, json.dumps([str(argument) for argument in arguments])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture
def judged(tiny_model: Path, empty_cache: Path) -> tuple[list[object], str]:
    """A command whose scores are in the cache, and what it said."""
    command = ["judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", tiny_model, "--json"]
    said, loaded = call(*command)
    assert {"torch", "transformers"} <= loaded
    return command, said


def test_a_judgement_from_the_cache_imports_no_heavy_library(judged: tuple[list[object], str]) -> None:
    command, said = judged
    again, loaded = call(*command)
    assert again == said
    assert not loaded & set(HEAVY)


def test_other_sentences_of_a_known_model_do_load_it(judged: tuple[list[object], str]) -> None:
    command, _ = judged
    _, loaded = call(*command[:2], "The cat annoys Tim.", *command[3:])
    assert "torch" in loaded


def test_a_run_from_the_cache_imports_neither_torch_nor_transformers(
    tiny_model: Path, empty_cache: Path, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nShe saw.,She see.\n", encoding="utf-8"
    )
    said = []
    for name in ("first", "second"):
        _, loaded = call("run", pairs, "-m", tiny_model, "-o", tmp_path / name, "--json")
        said.append((tmp_path / name / "estimates.csv").read_bytes())
        assert (tmp_path / name / "report.html").is_file()
    assert said[0] == said[1]
    assert not loaded & {"torch", "transformers"}
