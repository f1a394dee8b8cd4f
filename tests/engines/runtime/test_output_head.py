"""Logits are computed where they are asked for, never more than the limit at once, with equal numbers."""

from typing import Any

import numpy as np
import pytest

from felicity.engines.causal.self_check import build_sample, score_in_batches
from felicity.engines.runtime import output_head as logits
from felicity.engines.tokenizing.encoding import Encoded
from tests.engines.causal.test_self_check import Letters
from tests.engines.random_models import VOCABULARY, build_model, draw_sequences, encode

MOST = 40
TOLERANCE = 1e-4  # nats a token


def score_alone(model: Any, encoded: Encoded) -> np.ndarray:
    """Each sequence by itself through the bare model, its whole vocabulary at every place."""
    import torch

    found = np.full(len(encoded.ids), np.nan)
    for begin, end in zip(encoded.bounds[:-1], encoded.bounds[1:], strict=True):
        ids = torch.from_numpy(encoded.ids[begin:end])
        with torch.inference_mode():
            logprobs = model(input_ids=ids[None]).logits[0].log_softmax(dim=-1)
        found[begin + 1 : end] = logprobs[:-1].gather(1, ids[1:, None])[:, 0].numpy()
    return found


@pytest.mark.parametrize("architecture", ["Bloom", "Mamba", "Gemma-2"])
def test_plain_reading_keeps_few_logits_and_gives_the_numbers_of_the_bare_model(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logits, "LOGITS", MOST * VOCABULARY)
    model, encoded = build_model(architecture), encode(draw_sequences()[40:])
    alone = score_alone(model, encoded)
    rows: list[int] = []
    watch = model.get_output_embeddings().register_forward_hook(
        lambda _, __, output: rows.append(output.shape[:-1].numel())
    )
    found = score_in_batches(model, encoded)
    watch.remove()
    np.testing.assert_allclose(found[encoded.wanted], alone[encoded.wanted], rtol=0, atol=TOLERANCE)
    assert encoded.lengths.max() > MOST >= max(rows)
    assert sum(rows) == encoded.wanted.sum()


def test_memory_for_logits_is_used_again_and_let_go() -> None:
    model, encoded = build_model("GPT-2"), encode(draw_sequences()[:40])
    alone, head = score_alone(model, encoded), model.get_output_embeddings()
    for _ in range(2):
        found = score_in_batches(model, encoded)
        np.testing.assert_allclose(found[encoded.wanted], alone[encoded.wanted], rtol=0, atol=TOLERANCE)
    import torch

    # A pass may have nothing that is asked for.
    none = logits.compute_logits(model, torch.tensor([[1, 2]]), np.empty(0, dtype=np.int64))
    assert none.shape == (0, VOCABULARY)
    assert head in logits._BUFFERS
    assert "forward" not in vars(head)
    logits.free_logits_buffer(model)
    assert head not in logits._BUFFERS


def test_a_model_without_a_projection_of_its_own_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model, encoded = build_model("GPT-2"), encode(draw_sequences()[:9])
    narrow = score_in_batches(model, encoded)
    monkeypatch.setattr(model, "get_output_embeddings", lambda: None)
    logits.free_logits_buffer(model)
    np.testing.assert_allclose(score_in_batches(model, encoded), narrow, rtol=0, atol=TOLERANCE)


def test_the_check_compares_the_ends_of_long_texts_only() -> None:
    encoded = build_sample(Letters(), window=5000, attention_window=4096)
    assert (encoded.lengths > 4096).sum() == 2
    assert encoded.wanted.sum() < 1000
    assert encoded.wanted[encoded.bounds[1:] - 1].all()
