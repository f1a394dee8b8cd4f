"""Small random causal models of many architectures, and sequences to try them with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from felicity.engines.tokenizing.encoding import Encoded

VOCABULARY = 97
WINDOW = 160
SLIDING = 16
LOCAL = 256  # as in GPT-Neo and TinyStories
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": WINDOW,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 8}
LONG_ROTATION = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "original_max_position_embeddings": SLIDING,
    "short_factor": [1.0] * 4,
    "long_factor": [1.0, 2.0, 4.0, 8.0],
}
ENDS = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0}


def _configurations() -> dict[str, Callable[[], Any]]:
    import transformers as tf

    alternating = ["sliding_attention", "full_attention", "sliding_attention"]
    return {
        "GPT-2": lambda: tf.GPT2Config(**ENDS, n_embd=32, n_layer=3, n_head=4, n_positions=WINDOW),
        "OPT": lambda: tf.OPTConfig(
            **{k: v for k, v in SIZES.items() if k != "intermediate_size"}, ffn_dim=64, word_embed_proj_dim=16
        ),
        "GPT-NeoX": lambda: tf.GPTNeoXConfig(**SIZES),
        "GPT-J": lambda: tf.GPTJConfig(
            **ENDS, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=WINDOW
        ),
        "Llama": lambda: tf.LlamaConfig(**SIZES),
        "Qwen2": lambda: tf.Qwen2Config(**SIZES, num_key_value_heads=2),
        "Qwen3": lambda: tf.Qwen3Config(**GROUPED),
        "Phi": lambda: tf.PhiConfig(**SIZES),
        "Mistral": lambda: tf.MistralConfig(**GROUPED, sliding_window=SLIDING),
        "Gemma-2": lambda: tf.Gemma2Config(**GROUPED, sliding_window=SLIDING, final_logit_softcapping=2.0),
        "Gemma-3": lambda: tf.Gemma3TextConfig(**GROUPED, sliding_window=SLIDING, layer_types=alternating),
        "GPT-Neo": lambda: tf.GPTNeoConfig(
            **ENDS,
            hidden_size=32,
            num_layers=2,
            num_heads=4,
            attention_types=[[["global", "local"], 1]],
            window_size=LOCAL,
            max_position_embeddings=2 * LOCAL,
        ),
        "Phi-3": lambda: tf.Phi3Config(
            **SIZES, original_max_position_embeddings=SLIDING, rope_parameters=LONG_ROTATION
        ),
        "Bloom": lambda: tf.BloomConfig(**ENDS, hidden_size=32, n_layer=2, n_head=4),
        "Mamba": lambda: tf.MambaConfig(
            **ENDS, hidden_size=32, num_hidden_layers=2, state_size=8, pad_token_id=0
        ),
    }


ARCHITECTURES = (
    *("GPT-2", "OPT", "GPT-NeoX", "GPT-J", "Llama", "Qwen2", "Qwen3", "Phi"),
    *("Mistral", "Gemma-2", "Gemma-3", "GPT-Neo", "Phi-3", "Bloom", "Mamba"),
)


def build_model(architecture: str, *, seed: int = 1) -> Any:
    """A random model with weights large enough for a wrong mask to show."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(_configurations()[architecture]()).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight.mul_(3)
    return model


def draw_sequences(*, seed: int = 0, window: int = WINDOW) -> list[list[int]]:
    """Common beginnings, duplicates, prefixes, single tokens, a growing context, a whole window."""
    rng = np.random.default_rng(seed)

    def draw(most: int) -> list[int]:
        return [int(token) for token in rng.integers(1, VOCABULARY, rng.integers(1, most + 1))]

    found: list[list[int]] = [[0], [0]]
    for _ in range(8):
        begin = [0, *draw(8)]
        found += [begin, begin, *(begin + draw(5) for _ in range(4))]
    trunk = [0, *(int(token) for token in rng.integers(1, VOCABULARY, 90))]
    for length in (30, 60, 90):
        found += [trunk[:length] + draw(9) for _ in range(3)]
    found += [draw(9) for _ in range(3)]
    found.append([0, *(int(token) for token in rng.integers(1, VOCABULARY, window - 1))])
    return found


def encode(sequences: list[list[int]]) -> Encoded:
    return Encoded.from_ids(sequences)
