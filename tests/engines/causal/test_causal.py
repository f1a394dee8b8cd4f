"""The causal engine on a tiny model: numbers, refusals, and what else it tells of a token."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from felicity.core.engine import TokenExtras
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.policy import Policy
from felicity.core.schemas import PROMPTS, TOKENS
from felicity.data.catalogue import read_dataset, sample_items
from felicity.engines.causal.engine import CausalEngine
from felicity.engines.families import open_engine
from felicity.engines.runtime.devices import Compute, prepare_dtype
from felicity.engines.sources.describe import describe_model
from felicity.engines.sources.resolve import resolve_source
from tests.conftest import TINY_WINDOW, make_tiny_model

TEXTS = ["The cats annoy Tim.", "The cats annoys Tim.", "She saw herself.", "The", "The cats annoy Tim."]


def open_tiny(
    folder: Path, *, scheduler: str = "auto", dtype: str = "float32", **policy: str
) -> CausalEngine:
    source = resolve_source(str(folder))
    return CausalEngine(
        source,
        describe_model(folder),
        policy=Policy(**policy),  # type: ignore[arg-type]
        compute=Compute(dtype=dtype),
        scheduler=scheduler,
    )


def prompts(texts: list[str], contexts: list[str | None] | None = None) -> pl.DataFrame:
    names = [f"r{place}" for place in range(len(texts))]
    columns = {"request": names, "context_text": contexts or [None] * len(texts), "text": texts}
    return pl.DataFrame(columns, schema=PROMPTS)


def score(engine: CausalEngine, asked: pl.DataFrame, **options: Any) -> pl.DataFrame:
    scored = pl.concat(list(engine.score(asked, **options)))
    return asked.select("request").join(scored, on="request", maintain_order="left")


@pytest.fixture(scope="module")
def tiny(tiny_model: Path) -> CausalEngine:
    return open_tiny(tiny_model)


def by_hand(engine: CausalEngine, text: str) -> tuple[Any, list[int]]:
    """log-softmax of the model's logits before each token of a text, and the tokens."""
    import torch

    tokenizer = engine.encoder.tokenizer
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = engine.model(torch.tensor([[tokenizer.bos_token_id, *ids]])).logits[0]
    return logits.log_softmax(-1)[:-1], ids


def test_a_token_s_score_is_its_log_softmax_over_the_whole_vocabulary(tiny: CausalEngine) -> None:
    scored = score(tiny, prompts(TEXTS))
    assert list(scored.schema.items()) == list(TOKENS.items())
    for text, logprob in zip(TEXTS, scored["logprob"], strict=True):
        predicted, ids = by_hand(tiny, text)
        expected = predicted[range(len(ids)), ids].numpy()
        np.testing.assert_allclose(logprob, expected, rtol=0, atol=1e-5)


def test_rank_entropy_and_top_tokens_are_those_of_the_sorted_prediction(tiny: CausalEngine) -> None:
    scored = score(tiny, prompts(TEXTS[:1]), extras=TokenExtras(rank=True, entropy=True, top=3))
    predicted, ids = by_hand(tiny, TEXTS[0])
    order = predicted.argsort(-1, descending=True)
    for place, token in enumerate(ids):
        assert scored["rank"][0][place] == order[place].tolist().index(token) + 1
        entropy = -(predicted[place].exp() * predicted[place]).sum().item()
        assert scored["entropy"][0][place] == pytest.approx(entropy, abs=1e-4)
        best = tiny.encoder.tokenizer.convert_ids_to_tokens(order[place][:3].tolist())
        assert scored["top_tokens"][0][place].to_list() == best
        values = predicted[place].topk(3).values.tolist()
        assert scored["top_logprob"][0][place].to_list() == pytest.approx(values, abs=1e-5)


def test_more_likeliest_tokens_than_there_are_is_refused(tiny: CausalEngine) -> None:
    known = tiny.info.vocabulary
    everything = score(tiny, prompts(TEXTS[:1]), extras=TokenExtras(top=known))
    assert {len(found) for found in everything["top_tokens"][0]} == {known}
    with pytest.raises(BadInput, match=f"top is {known + 1}, but the model has {known} tokens"):
        score(tiny, prompts(TEXTS[:1]), extras=TokenExtras(top=known + 1))


def test_a_negative_number_of_likeliest_tokens_is_refused() -> None:
    with pytest.raises(BadInput, match="top is -1; it must be 0 or more"):
        TokenExtras(top=-1)


def test_what_cannot_be_scored_has_no_number_and_no_rank(tiny_model: Path) -> None:
    engine = open_tiny(tiny_model, bos="none")
    scored = score(engine, prompts(["The cats", "The"]), extras=TokenExtras(rank=True, top=2))
    for column in ("logprob", "rank", "top_tokens", "top_logprob"):
        assert scored[column][0][0] is None
        assert scored[column][0][1] is not None
        assert scored[column][1].to_list() == [None]


def test_plain_batches_give_the_same_and_say_so(tiny_model: Path, tiny: CausalEngine) -> None:
    plain = open_tiny(tiny_model, scheduler="plain")
    contexts = [None, "No dog.", "No dog. She saw.", None, "No dog."]
    asked = prompts(TEXTS, contexts)
    extras = TokenExtras(rank=True, entropy=True, boundary=True)
    ours, theirs = (
        score(engine, asked, extras=extras).explode(pl.exclude("request")) for engine in (tiny, plain)
    )
    for column in ("logprob", "entropy", "boundary"):
        np.testing.assert_allclose(ours[column], theirs[column], rtol=0, atol=1e-4)
    assert ours["rank"].to_list() == theirs["rank"].to_list()
    assert tiny.info.notes["scheduler"] == "trie"
    assert plain.info.notes["scheduler"] == "plain"


@pytest.mark.slow
def test_the_trie_gives_plain_numbers_on_blimp_with_a_real_model(published: Callable[[str], Path]) -> None:
    published("blimp")
    asked = prompts(sample_items(read_dataset("blimp").items, 1, seed=12)["text"].to_list())
    folder = resolve_source("smollm2").folder
    ours, theirs = (
        score(open_tiny(folder, scheduler=scheduler), asked).explode(pl.exclude("request"))
        for scheduler in ("auto", "plain")
    )
    apart = np.abs(ours["logprob"].to_numpy() - theirs["logprob"].to_numpy())
    # Measured with oneDNN's products: first words differ most (2.4e-4, in the median 1.3e-4), others by up to
    # 2.2e-4 and in the median by 5e-6.
    assert apart.max() < 1e-3
    assert np.median(apart) < 2e-5


def test_an_end_token_that_is_also_the_unknown_one_is_not_counted_as_unknown(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "tiny", seed=1)
    settings = folder / "tokenizer_config.json"
    told = json.loads(settings.read_text()) | {"unk_token": "<|endoftext|>"}
    settings.write_text(json.dumps(told))
    counted = open_tiny(folder, eos="auto").encode(prompts(TEXTS))
    assert counted["n_unknown"].to_list() == [0] * len(TEXTS)


def test_the_boundary_is_the_mass_of_tokens_with_a_space_and_of_the_end(tiny: CausalEngine) -> None:
    scored = score(tiny, prompts(TEXTS[:1]), extras=TokenExtras(boundary=True))
    predicted, _ = by_hand(tiny, TEXTS[0])
    vocabulary = tiny.encoder.tokenizer.get_vocab()
    begins = [number for piece, number in vocabulary.items() if piece[0] in "ĠĊĉč"] + [0]
    expected = predicted[:, begins].logsumexp(-1).numpy()
    np.testing.assert_allclose(scored["boundary"][0], expected, rtol=0, atol=1e-5)


def test_a_text_longer_than_the_window_is_refused(tiny: CausalEngine) -> None:
    with pytest.raises(
        BadInput, match=rf"'r0' is \d+ tokens too long for 'tiny-gpt2', which reads at most {TINY_WINDOW}"
    ):
        score(tiny, prompts(["The cats annoy Tim. " * 20]))


def test_a_text_that_fills_the_window_exactly_is_scored(tiny: CausalEngine) -> None:
    text = "." * (TINY_WINDOW - 1)
    scored = score(tiny, prompts([text, text[:-1]]))
    assert len(scored["logprob"][0]) == TINY_WINDOW - 1
    assert None not in scored["logprob"][0].to_list()


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = make_tiny_model(tmp_path / "broken", seed=2)
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["transformer.ln_f.weight"] = torch.full_like(weights["transformer.ln_f.weight"], float("nan"))
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(NotPossible, match="contain a value that is not a number"):
        score(open_tiny(folder), prompts(TEXTS))


def test_a_device_map_is_handed_to_transformers(tiny_model: Path, tiny: CausalEngine) -> None:
    mapped = open_engine(str(tiny_model), policy=Policy(), compute=Compute(device_map="cpu"))
    ours = pl.concat(list(mapped.score(prompts(TEXTS)))).sort("request")
    theirs = score(tiny, prompts(TEXTS)).sort("request")
    np.testing.assert_allclose(
        ours.explode("logprob")["logprob"], theirs.explode("logprob")["logprob"], atol=1e-5
    )


def test_a_device_that_is_not_there_is_refused(tiny_model: Path) -> None:
    with pytest.raises(NotPossible, match="no device 'cuda:7'"):
        open_engine(str(tiny_model), policy=Policy(), compute=Compute(device="cuda:7"))


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'bfloat16'"):
        prepare_dtype("bfloat", "cpu")


def test_scores_of_another_dtype_are_another_model_s(tiny_model: Path) -> None:
    assert open_tiny(tiny_model).info.key != open_tiny(tiny_model, dtype="bfloat16").info.key


def test_nothing_is_loaded_to_say_what_a_model_is(tiny_model: Path) -> None:
    engine = open_tiny(tiny_model)
    json.dumps(engine.info.as_dict())
    list(engine.score(prompts(TEXTS), done={f"r{place}" for place in range(len(TEXTS))}))
    assert "model" not in engine.__dict__
