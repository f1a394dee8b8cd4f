"""Killed at random moments, whatever is done goes on where it stopped and ends with the very same files."""

import json
import random
from pathlib import Path

import polars as pl
import pytest

from felicity.core.ids import hash_file
from tests.attack import size
from tests.attack.processes import Attacked
from tests.conftest import make_tiny_model
from tests.run.test_killed import write_pairs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
KILLS = 20
# Files that tell the time or the command, and pages, which show them.
TELLING = ("manifest.json", "study.json", "report.html")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model with room for contexts."""
    return make_tiny_model(tmp_path_factory.mktemp("attacked") / "model", seed=2, width=64, window=512)


def few_pairs(folder: Path) -> Path:
    path = write_pairs(folder / "pairs.csv")
    path.write_text("\n".join(path.read_text().splitlines()[:401]) + "\n")
    return path


def commands(kind: str, model: Path, folder: Path) -> list[str]:
    """The arguments of a command, without its -o."""
    if kind == "context":
        return [
            *("context", "starter", "-m", str(model), "--lengths", "0,40,80", "--sample", "4"),
            *("--phenomenon", "binding", "--no-report", "--quiet"),
        ]
    if kind == "train":
        corpus = folder / "corpus.txt"
        lines = few_pairs(folder).read_text().splitlines()
        corpus.write_text("\n".join(line.split(",")[1] for line in lines[1:]) + "\n")
        options = ("--min-count", "1", "--embedding", "16", "--hidden", "32", "--batch", "8", "--epochs", "3")
        return ["train", "lstm", str(corpus), *options, "--minutes", "0.005", "--device", "cpu", "--quiet"]
    dtype = ["--dtype", "bfloat16"] if kind == "bfloat16" else []
    return ["run", str(few_pairs(folder)), "-m", str(model), "--no-report", "--quiet", *dtype]


def content(folder: Path) -> dict[str, str]:
    """What each file of a folder holds: frames as such, for Parquet has several ways of writing one.

    Not PDF files: the library that draws them lists their fonts in any order.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name in TELLING or path.suffix == ".pdf":
            continue
        if path.suffix == ".parquet":
            found[name] = str(pl.read_parquet(path).hash_rows(seed=1).to_list())
        else:
            found[name] = hash_file(path)
    return found


@pytest.mark.parametrize("kind", ["run", "bfloat16", "context", "train"])
def test_a_command_killed_at_random_moments_ends_with_the_same_files(
    kind: str, model: Path, tmp_path: Path
) -> None:
    attack(commands(kind, model, tmp_path), tmp_path, kind)


def test_a_run_behind_a_server_killed_at_random_moments_ends_with_the_same_files(
    tiny_model: Path, tmp_path: Path
) -> None:
    pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")
    from tests.engines.served.served_server import NAME, Served

    pairs = tmp_path / "short.csv"
    rows = [f"s,The cats annoy Tim {i} times.,The cats annoys Tim {i} times." for i in range(60)]
    pairs.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    with Served(tiny_model) as served:
        where = ("-m", f"openai:{NAME}", "--url", served.url, "--tokenizer", str(tiny_model))
        attack(["run", str(pairs), *where, "--no-report", "--quiet"], tmp_path, "served")


def attack(arguments: list[str], place: Path, kind: str) -> None:
    """Kill a command again and again, let it finish, and compare with one that was never broken off."""
    whole, said = place / "whole", place / "said"
    # The first process pays for loading everything; the others are forked from it.
    Attacked(["--version"], cache=place / "c0", said=said).finish()
    seconds = Attacked([*arguments, "-o", str(whole)], cache=place / "c0", said=said).finish()
    rng = random.Random(kind)
    kills = rounds = 0
    while kills < size(KILLS):
        # Each round begins anew; what one kill left is what the next one meets.
        rounds += 1
        folder = place / "broken" / str(rounds)
        attacked = Attacked([*arguments, "-o", str(folder)], cache=place / f"c{rounds}", said=said)
        for _ in range(min(8, size(KILLS) - kills)):
            kills += attacked.kill_after(rng.uniform(0, 1.2) * seconds)
        attacked.finish()
        if kind == "train":
            assert compare_training(folder, whole)
        else:
            assert content(folder) == content(whole)
        left = [path.name for path in folder.rglob(".*") if path.name != ".lock"]
        assert not left, "temporary files were left"
        for manifest in folder.rglob("manifest.json"):
            notes = json.loads(manifest.read_text())["model"]["notes"]
            assert kind == "served" or notes["scheduler"] == "trie"


def compare_training(one: Path, other: Path) -> bool:
    """Whether two trainings ended with the very same weights."""
    files = {path.name for path in other.iterdir() if path.suffix == ".safetensors"}
    assert files
    return all(hash_file(one / name) == hash_file(other / name) for name in files)
