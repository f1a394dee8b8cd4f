"""Continuations are kept batch by batch, and asked for once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import felicity as fe
from felicity.core.engine import Sampling
from felicity.core.errors import BadInput
from felicity.run import scoring

PROMPTS = [f"The cat {number}" for number in range(10)]
SAMPLING = Sampling(tokens=4, temperature=1.0, samples=2, seed=3)


class Counting:
    """An engine that counts its prompts, and fails after some batches."""

    def __init__(self, engine: Any, *, batches: int | None = None) -> None:
        self._engine = engine
        self._left = batches
        self.prompts: list[str] = []

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left = None if self._left is None else self._left - 1
        self.prompts += prompts
        return self._engine.generate(prompts, sampling=sampling)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "BATCH_PROMPTS", 4)


@pytest.mark.usefixtures("small_batches")
def test_an_interrupted_generation_resumes_and_gives_the_same_texts(
    tiny_model: Path, empty_cache: Path
) -> None:
    whole = fe.model(str(tiny_model), cache=False).generate_all(PROMPTS, sampling=SAMPLING)
    lm = fe.model(str(tiny_model))
    with pytest.raises(KeyboardInterrupt):
        scoring.continue_missing(Counting(lm.engine, batches=2), lm.store, PROMPTS, sampling=SAMPLING)
    rest = Counting(lm.engine)
    found = scoring.continue_missing(rest, lm.store, PROMPTS, sampling=SAMPLING)
    assert rest.prompts == PROMPTS[8:]
    assert found.equals(whole)
    again = Counting(lm.engine)
    assert scoring.continue_missing(again, lm.store, PROMPTS, sampling=SAMPLING).equals(whole)
    assert again.prompts == []


@pytest.mark.usefixtures("small_batches")
def test_other_settings_are_other_continuations_and_equal_prompts_are_asked_once(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    lm.generate_all(PROMPTS, sampling=SAMPLING)
    other = Counting(lm.engine)
    twice = [*PROMPTS[:2], *PROMPTS[:2]]
    found = scoring.continue_missing(other, lm.store, twice, sampling=Sampling(tokens=4))
    assert other.prompts == PROMPTS[:2]
    assert found["prompt"].to_list() == twice


def test_a_limit_for_prompt_and_continuation_together_counts_the_prompt(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    tokenizer = lm.engine.encoder.tokenizer  # type: ignore[attr-defined]
    prompts = ["The cats", "No dog has ever barked here. The cats annoy"]
    found = lm.generate(prompts, tokens=99, whole=24)
    free = lm.generate(prompts, tokens=24)
    for prompt, row, longer in zip(
        prompts, found.iter_rows(named=True), free.iter_rows(named=True), strict=True
    ):
        size = len(tokenizer(prompt)["input_ids"]) + 1  # and the begin token
        assert row["ended"] == "end" or row["n_tokens"] == 24 - size
        assert longer["continuation"].startswith(row["continuation"])
    with pytest.raises(BadInput, match="allow more"):
        lm.generate(prompts, whole=4)


def test_prompts_of_different_lengths_may_each_fill_the_window(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    window = lm.info.window
    assert window is not None
    found = lm.generate(["The cats", "No dog has ever barked here. The cats annoy"], tokens=999, whole=window)
    assert len(found) == 2
    with pytest.raises(BadInput, match="exceed the window"):
        lm.generate(["The cats"], tokens=window)


def test_beams_are_those_of_transformers_and_cut_at_the_stop(tiny_model: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    lm = fe.model(str(tiny_model), cache=False)
    prompts = ["The cats", "She saw"]
    found = lm.generate(prompts, tokens=6, beams=4)
    peer = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    for prompt, row in zip(prompts, found.iter_rows(named=True), strict=True):
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(prompt)["input_ids"]]])
        output = peer.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=6,
            num_beams=4,
            do_sample=False,
            pad_token_id=0,
        )
        assert row["continuation"] == tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True)
    with pytest.raises(BadInput, match="without them"):
        lm.generate(prompts, beams=2, temperature=1.0)
    stop = found["continuation"][1][2]
    stopped = lm.generate(prompts, tokens=6, beams=4, stop=[stop])
    assert stopped["ended"][1] == "stop"
    assert stopped["continuation"][1] == found["continuation"][1].partition(stop)[0]
