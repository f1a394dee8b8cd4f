"""Engines of other packages, which are reached as `-m NAME:ARGUMENT`."""

from pathlib import Path

import polars as pl
import pytest

from felicity.core.engine import Engine, EngineInfo
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.families import NAMED, open_engine, open_tokenizer
from felicity.engines.runtime import Compute
from felicity.run.model import Model


class Plain:
    """An engine that reports its argument as its name and gives log-probabilities only."""

    def __init__(self, rest: str, *, policy: Policy, compute: Compute) -> None:
        self.info = EngineInfo(
            name=rest,
            family="plain",
            kind="left-to-right",
            weights="none",
            tokenizer="none",
            policy=policy.as_dict(),
            dtype=compute.dtype,
            parameters=0,
            vocabulary=1,
            window=None,
            noise=0.0,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame(schema=ENCODINGS)

    def score(self, prompts: pl.DataFrame, **_: object) -> list[pl.DataFrame]:
        return []


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NAMED, "_things", {"plain": Plain})


def open_plain(spec: str) -> Engine:
    return open_engine(spec, policy=Policy())


def test_an_engine_is_given_what_follows_its_name() -> None:
    assert open_plain("plain:a:b").info.name == "a:b"


@pytest.mark.parametrize("spec", ["plian:1000", "plain"])
def test_a_misspelt_engine_or_one_without_an_argument_is_pointed_out(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for use in (open_plain, open_tokenizer):
        with pytest.raises(BadInput, match=f"'{spec}'.*For the engine 'plain', write -m plain:ARGUMENT"):
            use(spec)


def test_a_name_unlike_any_engine_is_refused_without_that_hint() -> None:
    with pytest.raises(BadInput, match=r"no model folder or file 'a:b'; see `felicity models ls`\.$"):
        open_plain("a:b")


def test_a_broken_folder_of_the_name_of_an_engine_is_refused_as_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain").mkdir()
    with pytest.raises(BadInput, match="plain") as refused:
        open_plain("plain")
    assert "For the engine" not in str(refused.value)


def test_extras_that_an_engine_cannot_give_are_refused_with_what_it_can() -> None:
    with pytest.raises(NotPossible, match="'x' gives log-probabilities only; omit rank, entropy and top"):
        Model(open_plain("plain:x"), spec="plain:x", cache=False).tokens("It rains.", rank=True)
