"""Weights exchanged at random moments: no score of the new ones is ever stored as one of the old."""

import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.attack import size
from tests.attack.processes import Attacked
from tests.attack.test_kills import few_pairs
from tests.conftest import make_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
# With FELICITY_ATTACK=3.4, ten each.
MOMENTS = 3
WEIGHTS = "model.safetensors"
CLOSE = 1e-3  # nats a token; the two models are tenths apart
Rows = dict[bytes, tuple[bytes, np.ndarray]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two random models of one size, as two checkpoints of a training are."""
    folder = tmp_path_factory.mktemp("exchanged")
    one, two = (make_tiny_model(folder / str(seed), seed=seed, width=64, window=512) for seed in (1, 2))
    return one, two


def copy_over(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


def write_slowly(source: Path, target: Path) -> None:
    """The file is empty, then half written, for a while."""
    content = source.read_bytes()
    with target.open("wb", buffering=0) as file:
        for begin in range(0, len(content), len(content) // 8):
            time.sleep(0.02)
            file.write(content[begin : begin + len(content) // 8])


def move_over(source: Path, target: Path) -> None:
    shutil.copy(source, target.with_name("new"))
    target.with_name("new").replace(target)


def read_scores(cache: Path) -> dict[str, Rows]:
    """What each file of a score cache holds, by its name and the key of the text."""
    found = {}
    for path in (cache / "scores").glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as database:
            rows = database.execute("SELECT key, tokens, logprob FROM score").fetchall()
        found[path.name] = {key: (tokens, np.frombuffer(blob, "<f4")) for key, tokens, blob in rows}
    return found


def count_wrong(found: dict[str, Rows], truth: dict[str, Rows]) -> tuple[int, int]:
    """How many rows there are, and how many are not those of the model whose name they have."""
    right = total = 0
    for name, rows in found.items():
        for key, (tokens, logprobs) in rows.items():
            total += 1
            known = truth.get(name, {}).get(key)
            right += (
                known is not None
                and known[0] == tokens
                and np.allclose(known[1], logprobs, atol=CLOSE, rtol=0, equal_nan=True)
            )
    return total, total - right


def attack(
    arguments: list[str], place: Path, kind: str, begin: Callable[[], None], changes: list[Callable[[], None]]
) -> None:
    """Exchange the model at random moments of a command; compare with what both models give undisturbed."""
    said, rng = place / "said", random.Random(kind)
    Attacked(["--version"], cache=place / "truth", said=said).finish()
    begin()
    seconds = Attacked([*arguments, *out(kind, place / "o1")], cache=place / "truth", said=said).finish()
    changes[0]()
    Attacked([*arguments, *out(kind, place / "o2")], cache=place / "truth", said=said).finish()
    truth = read_scores(place / "truth")
    ended = stored = 0
    for number in range(size(MOMENTS)):
        begin()
        cache = place / f"c{number}"
        attacked = Attacked([*arguments, *out(kind, place / f"f{number}")], cache=cache, said=said)
        code = attacked.disturb_after(rng.uniform(0, 1.1) * seconds, changes[number % len(changes)])
        total, wrong = count_wrong(read_scores(cache), truth)
        assert wrong == 0, (number, total, wrong, said.read_text())
        ended += code == 2
        stored += total
        shutil.rmtree(cache, ignore_errors=True)
    (place / "exchanges.txt").write_text(f"{size(MOMENTS)} exchanges, {ended} refused, {stored} scores\n")
    assert ended + stored


def out(kind: str, folder: Path) -> list[str]:
    return [] if kind == "judge" else ["-o", str(folder), "--no-report", "--quiet"]


@pytest.mark.parametrize("kind", ["judge", "run", "context"])
def test_weights_exchanged_at_random_moments_spoil_no_score(
    kind: str, models: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = models
    model = Path(shutil.copytree(one, tmp_path / "model"))
    arguments = {
        "judge": ["judge", "The cats annoy Tim.", "The cats annoys Tim."],
        "run": ["run", str(few_pairs(tmp_path))],
        "context": [
            *("context", "starter", "--lengths", "0,40,80", "--sample", "4"),
            *("--phenomenon", "binding"),
        ],
    }[kind]
    changes = [
        lambda how=how: how(two / WEIGHTS, model / WEIGHTS) for how in (copy_over, move_over, write_slowly)
    ]
    attack(
        [*arguments, "-m", str(model)],
        tmp_path,
        kind,
        lambda: copy_over(one / WEIGHTS, model / WEIGHTS),
        changes,
    )


def test_another_model_behind_a_server_at_random_moments_spoils_no_score(
    models: tuple[Path, Path], tmp_path: Path
) -> None:
    pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")
    from tests.engines.served.served_server import NAME, Served, load

    one, two = models
    pairs = tmp_path / "short.csv"
    rows = [f"s,The cats annoy Tim {i} times.,The cats annoys Tim {i} times." for i in range(100)]
    pairs.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    with Served(one) as served:

        def serve(folder: Path) -> None:
            served.model, _ = load(folder)

        where = ("-m", f"openai:{NAME}", "--url", served.url, "--tokenizer", str(one))
        attack(
            ["run", str(pairs), *where],
            tmp_path,
            "served",
            lambda: serve(one),
            [lambda: serve(two)],
        )
