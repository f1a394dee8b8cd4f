"""Models that a padded batch gives other numbers are found, and read one text at a time."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

from felicity.engines.causal.batch_check import agrees_in_batches, batch_texts, find_rope_limit
from felicity.engines.causal.self_check import build_sample
from felicity.engines.runtime import TokenScorer, score_batch
from tests.engines.causal.test_self_check import Letters
from tests.engines.random_models import SLIDING, VOCABULARY, WINDOW, build_model, draw_sequences, encode

TOLERANCE = 3e-4  # nats a token, against float64


def build_prophetnet() -> Any:
    torch.manual_seed(1)
    config = tf.ProphetNetConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_decoder_layers=2,
        num_decoder_attention_heads=4,
        decoder_ffn_dim=64,
        max_position_embeddings=WINDOW,
        is_decoder=True,
        add_cross_attention=False,
    )
    model = tf.ProphetNetForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight.mul_(10)
    return model


def build_cpmant() -> Any:
    torch.manual_seed(1)
    config = tf.CpmAntConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_attention_heads=4,
        dim_head=8,
        dim_ff=64,
        num_hidden_layers=2,
        prompt_length=4,
        segment_types=4,
        prompt_types=4,
    )
    model = tf.CpmAntForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return model


def score_directly(model: Any, ids: list[int]) -> np.ndarray:
    """One forward pass of one text in float64, nothing of felicity's in it."""
    with torch.inference_mode():
        logits = model.double()(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=-1)
    model.float()
    return np.array([float(logits[place - 1, ids[place]]) for place in range(1, len(ids))])


@pytest.mark.parametrize("build", [build_prophetnet, build_cpmant])
def test_a_model_that_sees_its_padding_is_found(build: Any) -> None:
    assert not agrees_in_batches(build(), Letters(), window=WINDOW, dtype="float32")


def test_a_model_that_does_not_see_its_padding_is_read_in_batches() -> None:
    assert agrees_in_batches(build_model("GPT-2"), Letters(), window=WINDOW, dtype="float32")


def test_prophetnet_read_one_by_one_gives_its_direct_numbers() -> None:
    model = build_prophetnet()
    encoded = build_sample(Letters(), window=WINDOW, attention_window=0)
    for batch in batch_texts(encoded.lengths, budget=2048, limit=0):
        assert len(batch) == 1
        span = slice(encoded.bounds[batch[0]], encoded.bounds[batch[0] + 1])
        direct = score_directly(model, encoded.ids[span].tolist())
        found = score_batch(model, encoded, batch, TokenScorer())["logprob"]
        assert np.abs(found - direct[-len(found) :]).max() < TOLERANCE


def test_falcon_with_alibi_gives_its_direct_numbers() -> None:
    torch.manual_seed(1)
    config = tf.FalconConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True
    )
    model = tf.FalconForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.3)
    limit = None if agrees_in_batches(model, Letters(), window=WINDOW, dtype="float32") else 0
    encoded = encode([ids for ids in draw_sequences() if len(ids) > 1])
    for batch in batch_texts(encoded.lengths, budget=2048, limit=limit):
        found = score_batch(model, encoded, batch, TokenScorer())["logprob"]
        spans = [slice(encoded.bounds[place], encoded.bounds[place + 1]) for place in batch]
        direct = np.concatenate([score_directly(model, encoded.ids[span].tolist()) for span in spans])
        assert np.abs(found - direct).max() < TOLERANCE


def test_texts_on_both_sides_of_longropes_window_share_no_batch() -> None:
    model = build_model("Phi-3")
    limit = find_rope_limit(model.config)
    assert limit == SLIDING
    assert find_rope_limit(build_model("Llama").config) is None
    encoded = encode(draw_sequences())
    worst = 0.0
    for batch in batch_texts(encoded.lengths, budget=2048, limit=limit):
        found = score_batch(model, encoded, batch, TokenScorer())["logprob"]
        begin = 0
        for sequence in batch:
            span = slice(encoded.bounds[sequence], encoded.bounds[sequence + 1])
            size = int(encoded.wanted[span].sum())
            if size:
                direct = score_directly(model, encoded.ids[span].tolist())
                worst = max(worst, float(np.abs(found[begin : begin + size] - direct).max()))
            begin += size
    assert worst < TOLERANCE
