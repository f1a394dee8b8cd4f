"""A small random Llama written as a GGUF file, and settings of pip and uv that are this test's own."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CONTROL, NORMAL = 3, 1
CORPUS = ["The cats annoy Tim  12 times.", "In 1999 it's 7  8 cats.", "“Naïve” café 中文 😀 don't"]


@dataclass(frozen=True)
class TinyGguf:
    """The file, and the model and tokenizer it was written from."""

    path: Path
    model: Any
    tokenizer: Any


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> TinyGguf:
    """A GGUF file as llama.cpp's converter writes it, with SmolLM2's way of splitting."""
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "Tiny-Llama.gguf")


def write_tiny_gguf(
    path: Path,
    *,
    splitting: str = "smollm",
    architecture: str = "llama",
    extra: dict[str, np.ndarray] | None = None,
    leave_out: str = "",
) -> TinyGguf:
    """A random Llama of two layers in a GGUF file."""
    from gguf import GGUFWriter

    tokenizer = _train_tokenizer()
    model = _random_llama(tokenizer.get_vocab_size())
    config = model.config
    writer = GGUFWriter(path, architecture)
    writer.add_name("tiny llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, tokenizer, splitting)
    for name, values in (_gguf_tensors(model) | (extra or {})).items():
        if name != leave_out:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return TinyGguf(path, model, tokenizer)


def _train_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    return tokenizer


def _random_llama(vocabulary: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config).eval()


def _add_tokenizer(writer: Any, tokenizer: Any, splitting: str) -> None:
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda entry: int(entry[1]))
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitting)
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([CONTROL if token in SPECIAL else NORMAL for token, _ in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)


def _gguf_tensors(model: Any) -> dict[str, np.ndarray]:
    """The weights under their names in a GGUF file; rotary heads are interleaved there."""
    parts = {
        "input_layernorm": "attn_norm",
        "mlp.down_proj": "ffn_down",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.k_proj": "attn_k",
        "self_attn.o_proj": "attn_output",
        "self_attn.q_proj": "attn_q",
        "self_attn.v_proj": "attn_v",
    }
    heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    tensors = {
        "token_embd.weight": weights["model.embed_tokens.weight"],
        "output_norm.weight": weights["model.norm.weight"],
    }
    for layer in range(model.config.num_hidden_layers):
        for ours, theirs in parts.items():
            values = weights[f"model.layers.{layer}.{ours}.weight"]
            if theirs in heads:
                halves = values.reshape(heads[theirs], 2, -1, values.shape[1])
                values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
            tensors[f"blk.{layer}.{theirs}.weight"] = values
    return tensors


@pytest.fixture
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and project, with no settings of pip or uv but those that the test makes."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "XDG_")) or name in ("NETRC", "APPDATA"):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    project = tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(home / "none"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.chdir(project)
    return home
