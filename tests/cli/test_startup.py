"""What is in the cache already is told without torch and transformers."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Answer
from tests.engines.causal.test_llama import make_llama

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
def judged(tiny_model: Path, empty_cache: Path, cli: Callable[..., Answer]) -> tuple[list[object], str]:
    """A command whose scores are in the cache, and what it said."""
    command = ["judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", tiny_model, "--json"]
    said = cli(*command)
    assert said.code == 0, said.err
    return command, said.out


def test_a_judgement_from_the_cache_imports_no_heavy_library(judged: tuple[list[object], str]) -> None:
    command, said = judged
    again, loaded = call(*command)
    assert again == said
    assert not loaded & set(HEAVY)


def test_other_sentences_of_a_known_model_do_load_it(judged: tuple[list[object], str]) -> None:
    command, _ = judged
    _, loaded = call(*command[:2], "The cat annoys Tim.", *command[3:])
    assert {"torch", "transformers"} <= loaded


def test_other_sentences_of_a_known_llama_are_scored_without_transformers(
    tmp_path: Path, empty_cache: Path, cli: Callable[..., Answer]
) -> None:
    model = make_llama(tmp_path / "tiny-llama")
    command = ["judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", model, "--json"]
    first = cli(*command)
    assert first.code == 0, first.err
    _, loaded = call(*command[:2], "The cats annoyed Tim.", *command[3:])
    assert "torch" in loaded
    assert not loaded & {"transformers", "scipy", "sympy", "pandas"}


def test_a_run_from_the_cache_imports_neither_torch_nor_transformers(
    tiny_model: Path, empty_cache: Path, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nShe saw.,She see.\n", encoding="utf-8"
    )
    first = cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "first", "--json")
    assert first.code == 0, first.err
    _, loaded = call("run", pairs, "-m", tiny_model, "-o", tmp_path / "second", "--json")
    said = [(tmp_path / name / "estimates.csv").read_bytes() for name in ("first", "second")]
    assert said[0] == said[1]
    assert (tmp_path / "second" / "report.html").is_file()
    assert not loaded & {"torch", "transformers"}
