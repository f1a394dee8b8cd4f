"""Continuations: greedy ones equal transformers' own one by one, drawn ones follow the seed alone."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.engines.runtime.generation import draw
from tests.conftest import TINY_WINDOW
from tests.engines.shapes import make_masked, make_seq2seq

PROMPTS = ["The cats", "No dog has ever barked", "She", "The cat annoys Tim. The cats annoy"]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Callable[[str], Path]:
    made: dict[str, Path] = {"gpt2": tiny_model}

    def find(shape: str) -> Path:
        if shape not in made:
            folder = tmp_path_factory.mktemp("generate") / f"tiny-{shape}"
            made[shape] = (make_masked if shape == "bert" else make_seq2seq)(shape, folder)
        return made[shape]

    return find


@pytest.mark.parametrize("shape", ["gpt2", "t5", "bart"])
def test_greedy_continuations_in_a_batch_equal_transformers_one_by_one(
    make: Callable[[str], Path], shape: str
) -> None:
    import torch
    import transformers

    auto = "AutoModelForCausalLM" if shape == "gpt2" else "AutoModelForSeq2SeqLM"
    model = getattr(transformers, auto).from_pretrained(make(shape), dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(make(shape))
    found = fe.model(str(make(shape)), cache=False).generate(PROMPTS, tokens=12)
    assert found["prompt"].to_list() == PROMPTS
    for prompt, row in zip(PROMPTS, found.iter_rows(named=True), strict=True):
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        if shape == "gpt2":
            ids = torch.cat([torch.tensor([[tokenizer.bos_token_id]]), ids], dim=1)
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id or 0,
        )[0]
        new = output[ids.shape[1] :] if shape == "gpt2" else output[1:]
        assert row["continuation"] == tokenizer.decode(new, skip_special_tokens=True)


def test_drawn_continuations_do_not_depend_on_the_batch_and_follow_the_seed(
    make: Callable[[str], Path],
) -> None:
    lm = fe.model(str(make("gpt2")), cache=False)
    options: dict[str, Any] = {"tokens": 8, "temperature": 1.0, "samples": 2}
    together = lm.generate(PROMPTS, seed=3, **options)
    assert together["sample"].to_list() == [0, 1] * len(PROMPTS)
    for prompt in PROMPTS:
        alone = lm.generate(prompt, seed=3, **options)
        assert alone.equals(together.filter(prompt=prompt))
        assert alone["continuation"][0] != alone["continuation"][1]
    assert not lm.generate(PROMPTS, seed=4, **options).equals(together)


def test_a_very_low_temperature_takes_the_likeliest(make: Callable[[str], Path]) -> None:
    lm = fe.model(str(make("gpt2")), cache=False)
    greedy = lm.generate(PROMPTS, tokens=6)
    cold = lm.generate(PROMPTS, tokens=6, temperature=1e-3)
    assert cold["continuation"].to_list() == greedy["continuation"].to_list()


def test_first_tokens_are_drawn_with_the_models_probabilities(make: Callable[[str], Path]) -> None:
    lm = fe.model(str(make("gpt2")), cache=False)
    size = 400
    drawn = lm.generate("The cat", tokens=1, temperature=0.5, samples=size)["continuation"]
    logprobs = lm.fill("The cat ___", k=400)
    weight = np.exp(logprobs["logprob"].to_numpy() / 0.5)
    expected = dict(zip(logprobs["filler"], weight / weight.sum(), strict=True))
    top = max(expected, key=lambda word: expected[word])
    found = sum(text.strip() == top for text in drawn) / size
    # Five standard errors of a proportion.
    assert abs(found - expected[top]) < 5 * np.sqrt(expected[top] * (1 - expected[top]) / size)


def test_draws_are_from_the_likeliest_that_hold_top_p() -> None:
    stream = np.random.default_rng(1)
    probabilities = np.array([0.1, 0.5, 0.05, 0.35])
    drawn = np.bincount([draw(probabilities, 0.8, stream) for _ in range(2000)], minlength=4) / 2000
    # .5 and .35 hold .85, and divide it as 10 to 7; five standard errors of a proportion.
    assert drawn[0] == drawn[2] == 0
    assert abs(drawn[1] - 10 / 17) < 5 * np.sqrt(10 / 17 * 7 / 17 / 2000)


def test_a_stop_string_ends_a_text_and_is_not_part_of_it(make: Callable[[str], Path]) -> None:
    lm = fe.model(str(make("gpt2")), cache=False)
    free = lm.generate(PROMPTS, tokens=12)
    assert set(free["ended"]) == {"limit"}
    assert set(free["n_tokens"]) == {12}
    stop = free["continuation"][0][4:7]
    stopped = lm.generate(PROMPTS, tokens=12, stop=[stop])
    row = stopped.row(0, named=True)
    assert row["continuation"] == free["continuation"][0].split(stop)[0]
    assert row["ended"] == "stop"
    assert row["n_tokens"] < 12
    for before, after in zip(free["continuation"], stopped["continuation"], strict=True):
        assert after == before.split(stop)[0]


def test_the_models_end_token_ends_a_text(make: Callable[[str], Path], tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    lm = fe.model(str(make("gpt2")), cache=False)
    written = lm.generate("The cats", tokens=5)["continuation"][0]
    model, tokenizer = (auto.from_pretrained(make("gpt2")) for auto in (AutoModelForCausalLM, AutoTokenizer))
    ids = tokenizer("The cats" + written)["input_ids"]
    last = ids[len(tokenizer("The cats")["input_ids"]) + 2]
    model.generation_config.eos_token_id = last
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    row = fe.model(str(tmp_path), cache=False).generate("The cats", tokens=5).row(0, named=True)
    assert row["ended"] == "end"
    assert row["n_tokens"] <= 2
    assert written.startswith(row["continuation"])


@pytest.mark.parametrize("shape", ["gpt2", "bart"])
def test_what_a_models_files_ask_for_beyond_its_probabilities_is_not_done(
    make: Callable[[str], Path], tmp_path: Path, shape: str
) -> None:
    plain = fe.model(str(make(shape)), cache=False).generate(PROMPTS, tokens=6)
    shutil.copytree(make(shape), tmp_path / "asking")
    path = tmp_path / "asking" / "generation_config.json"
    marks = json.loads(path.read_text())
    end = marks["eos_token_id"]
    heuristics = {
        "forced_bos_token_id": 9,
        "forced_eos_token_id": end,
        "suppress_tokens": list(range(10, 200)),
    }
    heuristics |= {"bad_words_ids": [[7]], "min_new_tokens": 5, "repetition_penalty": 9.0}
    path.write_text(json.dumps(marks | heuristics))
    lm = fe.model(str(tmp_path / "asking"), cache=False)
    assert lm.generate(PROMPTS, tokens=6).equals(plain)
    # The model is left as it was.
    assert lm.engine.model.generation_config.forced_eos_token_id == end  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "options",
    [
        {"tokens": 0},
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"samples": 2},
        {"stop": [""]},
        {"tokens": TINY_WINDOW},
    ],
)
def test_what_cannot_be_asked_is_refused(make: Callable[[str], Path], options: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        fe.model(str(make("gpt2")), cache=False).generate("The cats", **options)


def test_a_masked_model_writes_nothing_on(make: Callable[[str], Path]) -> None:
    with pytest.raises(NotPossible, match="of the family masked, cannot continue texts"):
        fe.model(str(make("bert")), cache=False).generate("The cats")
