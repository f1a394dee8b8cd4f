"""Faulty servers: the numbers of a faultless one, or one sentence; never other numbers."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from felicity.core.errors import FelicityError
from felicity.engines.served.settings import Serving
from felicity.run.model import Model, open_model
from tests.attack import size
from tests.engines.served.served_server import NAME, Served

pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
TEXTS = [f"The cats annoy Tim {number} times." for number in range(12)]
CLOSE = 1e-4
PASSING = ("429", "500", "json", "closed", "length")
ODD = (
    None,
    "",
    "-1.0",
    True,
    float("inf"),
    float("-inf"),
    float("nan"),
    1e400,
    [],
    {},
    3.5,
    10**400,
    "\x1b[31m",
)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    for name in ("OPENAI_API_KEY", "FELICITY_API_KEY", "OPENAI_BASE_URL", "FELICITY_URL"):
        monkeypatch.delenv(name, raising=False)


def reach(served: Served, folder: Path, *, patience: float) -> Model:
    serving = Serving(url=served.url, backoff=0.01, patience=patience, tokenizer=str(folder))
    return open_model(f"openai:{NAME}", serving=serving, cache=False)


@pytest.mark.parametrize("style", ["vllm", "echo"])
def test_passing_faults_cost_time_and_change_nothing(style: str, tiny_model: Path) -> None:
    with Served(tiny_model, style=style) as served:
        before = reach(served, tiny_model, patience=20).score(TEXTS)["lp"].to_list()
    rng = random.Random(style)
    for _ in range(size(10)):
        kinds = rng.sample(PASSING, 2)
        seed = rng.random()

        def fault(number: int, kinds: list[str] = kinds, seed: float = seed) -> str | None:
            draw = random.Random(f"{seed} {number}").random()
            return kinds[0] if draw < 0.15 else kinds[1] if draw < 0.3 else None

        with Served(tiny_model, style=style) as served:
            lm = reach(served, tiny_model, patience=20)
            served.fault = fault
            assert lm.score(TEXTS)["lp"].to_list() == pytest.approx(before, abs=CLOSE)


def spoil(rng: random.Random) -> Callable[[Any], Any]:
    """What puts an odd value somewhere into every answer, or leaves a part out."""
    odd = rng.choice(ODD)
    depth = rng.randint(0, 5)
    drop = rng.random() < 0.3

    def change(payload: Any) -> Any:
        at = payload
        for _ in range(depth):
            keys = _keys(at)
            if not keys or not _keys(at[keys[-1]]):
                break
            at = at[keys[-1]]
        keys = _keys(at)
        if keys and drop:
            del at[keys[-1]]
        elif keys:
            at[keys[-1]] = odd
        return payload

    return change


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [key for key in value if key != "usage"]
    return list(range(len(value))) if isinstance(value, list) else []


@pytest.mark.parametrize("style", ["vllm", "echo"])
def test_an_answer_with_something_odd_in_it_never_becomes_another_number(
    style: str, tiny_model: Path
) -> None:
    with Served(tiny_model, style=style) as served:
        before = reach(served, tiny_model, patience=20).score(TEXTS)["lp"].to_list()
        rng = random.Random(style)
        refused = 0
        for _ in range(size(25)):
            served.change = None
            lm = reach(served, tiny_model, patience=0.05)
            served.change = spoil(rng)
            try:
                found = lm.score(TEXTS)["lp"].to_list()
            except FelicityError:
                refused += 1
                continue
            assert found == pytest.approx(before, abs=CLOSE)
        assert refused
