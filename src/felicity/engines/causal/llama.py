"""Llama's forward pass without transformers, whose import takes longer than scoring a few sentences.

In float32 and float64 log-probabilities are those of transformers up to rounding; the check on loading
compares them. In half precision only matrix products and attention use it. The residual stream, normalization
and positions stay in float32, which makes errors smaller, and projections of the same input are computed as
one product, which is faster. Two things are computed in float32 there because they cost little and cause the
largest errors: the first two tokens of a text, where hidden states are ill-conditioned, and the logit of the
token that is scored.
"""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from felicity.core.errors import BadInput
from felicity.engines.runtime import choose_linear, prepare_processor, refuse_broken_weights
from felicity.engines.sources import load_private_tensors, read_config

ARCHITECTURE, MODEL_TYPE = "LlamaForCausalLM", "llama"
# Parameters up to which a model is computed here: the check on loading has two copies of it in memory, and
# with a larger model the import of transformers is a small part of the start.
MOST_PARAMETERS = 1_000_000_000
FILE = "model.safetensors"
HALF = ("bfloat16", "float16")
# Fields of the configuration that must have this value, if they have one at all.
EXPECTED = {
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "pretraining_tp": 1,
    "quantization_config": None,
    "rope_scaling": None,
}
NEEDED = ("hidden_size", "num_attention_heads", "num_hidden_layers", "rms_norm_eps", "vocab_size")
# transformers' defaults.
THETA = 10_000.0
IN_A_LAYER = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
EMBEDDING, OUTPUT, LAST_NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


# Tokens of a text that half precision computes in float32.
BEGINNING = 2
# Queries whose attention is computed at once.
QUERIES = 64


class Config(SimpleNamespace):
    """The configuration, by the names of transformers."""

    def get_text_config(self) -> "Config":
        """Itself: the model reads nothing but text."""
        return self


class LayerCache:
    """The keys and values of one layer."""

    keys: Any = None
    values: Any = None

    def update(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Append those of new positions; returns those of all positions."""
        import torch

        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=-2)
            values = torch.cat([self.values, values], dim=-2)
        self.keys, self.values = keys, values
        return keys, values


class LayerCaches:
    """The KV cache, one entry per layer."""

    def __init__(self, layers: int) -> None:
        self.layers = [LayerCache() for _ in range(layers)]


def read_llama_config(folder: Path) -> Config | None:
    """The configuration of a model that this module can compute, else None."""
    try:
        return _read_fields(read_config(folder), folder)
    except (TypeError, ValueError, ZeroDivisionError):
        return None


def _read_fields(given: Mapping[str, Any], folder: Path) -> Config | None:
    rope = given.get("rope_parameters") or {"rope_theta": given.get("rope_theta")}
    supported = (
        given.get("architectures") == [ARCHITECTURE]
        and given.get("model_type") == MODEL_TYPE
        and all(given.get(name) in (None, value) for name, value in EXPECTED.items())
        and all(given.get(name) is not None for name in NEEDED)
        and isinstance(rope, dict)
        and rope.get("rope_type", "default") == "default"
        and (folder / FILE).is_file()
    )
    if not supported:
        return None
    heads = int(given["num_attention_heads"])
    return Config(
        num_attention_heads=heads,
        num_key_value_heads=int(given.get("num_key_value_heads") or heads),
        head_dim=int(given.get("head_dim") or given["hidden_size"] // heads),
        num_hidden_layers=int(given["num_hidden_layers"]),
        rms_norm_eps=float(given["rms_norm_eps"]),
        rope_theta=float(rope.get("rope_theta") or THETA),
        tie_word_embeddings=bool(given.get("tie_word_embeddings", False)),
        vocab_size=int(given["vocab_size"]),
    )


def load_llama(folder: Path, config: Config, *, name: str, dtype: str) -> "Llama":
    """The model in a folder.

    Raises BadInput if the file is damaged or lacks a weight, NotPossible if a weight is not a number.
    """
    prepare_processor()
    try:
        weights = load_private_tensors(folder / FILE)
        refuse_broken_weights(weights.items(), name)
        return Llama(config, weights, dtype=dtype)
    except (OSError, KeyError, RuntimeError) as error:
        raise BadInput(f"Cannot load the weights of '{name}': {error}") from error


class Llama:
    """A model in evaluation mode on the processor, called as transformers' class is called for a trie."""

    selects = True

    def __init__(self, config: Config, weights: Mapping[str, Any], *, dtype: str) -> None:
        import torch

        self.config = config
        self.dtype = getattr(torch, dtype)
        self.device = torch.device("cpu")
        self.half = dtype in HALF
        self._embedding = weights[EMBEDDING].to(torch.float32 if self.half else self.dtype)
        self._last_norm = weights[LAST_NORM].to(self._embedding.dtype)
        layer = HalfLayer if self.half else Layer
        stored = [_take_layer(weights, number) for number in range(config.num_hidden_layers)]
        self._layers: list[Any] = [layer(config, part, self.dtype) for part in stored]
        output = weights[EMBEDDING if config.tie_word_embeddings else OUTPUT]
        rows, width = output.shape
        self._head = torch.nn.Linear(width, rows, bias=False, device="meta")
        self._head.weight = torch.nn.Parameter(output.to(self.dtype), requires_grad=False)
        # As they are in the file: a weight that is used in its own type takes no further memory.
        self._stored_layers = stored if self.half else []
        self._stored_output: Any = output if self.half else None
        self._states: Any = None
        steps = torch.arange(0, config.head_dim, 2, dtype=torch.float)
        self._frequencies = 1.0 / (config.rope_theta ** (steps / config.head_dim))

    def get_output_embeddings(self) -> Any:
        """The output projection."""
        return self._head

    def new_cache(self) -> LayerCaches:
        """An empty KV cache."""
        return LayerCaches(self.config.num_hidden_layers)

    def __call__(
        self,
        *,
        input_ids: Any,
        position_ids: Any,
        attention_mask: Any,
        select: Any,
        past_key_values: LayerCaches | None = None,
        use_cache: bool = False,
        beginnings: tuple[Any, Any] | None = None,
    ) -> SimpleNamespace:
        """Logits at the selected positions of the flattened batch, one row each.

        beginnings: indices into the flattened batch, and the hidden states there after each layer.
        """
        caches = past_key_values.layers if use_cache and past_key_values else [None] * len(self._layers)
        hidden, turn = self._embed(input_ids, position_ids)
        chosen: dict[str, Any] = {}
        for number, (layer, cache) in enumerate(zip(self._layers, caches, strict=True)):
            if not self.half and number == len(self._layers) - 1:
                chosen = {"select": select}
            hidden = layer(hidden, turn, attention_mask, cache, **chosen)
            if beginnings is not None:
                hidden.view(-1, hidden.shape[-1])[beginnings[0]] = beginnings[1][number]
        if not chosen:
            hidden = hidden.flatten(0, 1)[select]
        states = normalize_rms(hidden, self._last_norm, self.config.rms_norm_eps)
        if self.half:
            self._states = states
        return SimpleNamespace(logits=self._head(states.to(self.dtype)))

    def _embed(self, ids: Any, positions: Any) -> tuple[Any, tuple[Any, ...]]:
        """Hidden states before the first layer, and the rotation of each position."""
        import torch

        hidden = torch.nn.functional.embedding(ids, self._embedding)
        angles = positions[..., None].float() * self._frequencies
        angles = torch.cat((angles, angles), dim=-1)
        return hidden, tuple(part.to(hidden.dtype).unsqueeze(1) for part in (angles.cos(), angles.sin()))

    def compute_exactly(self, ids: Any, positions: Any, mask: Any) -> Any:
        """The hidden states of one row of tokens after each layer, in float32; only in half precision."""
        import torch

        with torch.inference_mode():
            hidden, turn = self._embed(ids[None], positions[None])
            states = []
            for weights in self._stored_layers:
                hidden = Layer(self.config, weights, torch.float32)(hidden, turn, mask, None)
                states.append(hidden[0].clone())
            return torch.stack(states)

    def take_states(self) -> Any:
        """What the output projection was given in the last call, in float32; only in half precision."""
        return self._states

    def refine(
        self, logprob: np.ndarray, logits: Any, states: Any, rows: np.ndarray, targets: np.ndarray
    ) -> np.ndarray:
        """Log-probabilities of targets with their own logit in float32 instead of half precision.

        bfloat16 rounds a logit between 16 and 32 to a multiple of 1/8. Over the whole vocabulary such errors
        cancel, but the target's own enters its log-probability undiminished.
        """
        import torch

        with torch.inference_mode():
            at, words = torch.from_numpy(rows), torch.from_numpy(targets)
            exact = (states[at] * self._stored_output[words].float()).sum(dim=-1)
            shift: np.ndarray = (exact - logits[at, words].float()).numpy()
        # What the target's new logit adds to the sum over the vocabulary.
        return np.asarray(logprob + shift - np.log1p(np.exp(logprob) * np.expm1(shift)))


class Layer:
    """A layer in float32 or float64."""

    def __init__(self, config: Config, weights: Mapping[str, Any], dtype: Any) -> None:
        self._config = config
        self._weights = {name: weight.to(dtype) for name, weight in weights.items()}
        self._linear = choose_linear(dtype)

    def __call__(
        self, hidden: Any, turn: tuple[Any, ...], mask: Any, cache: LayerCache | None, select: Any = None
    ) -> Any:
        """The hidden states after this layer, which are written over those before it.

        select: positions of the flattened batch; with it, the states of these alone.
        """
        from torch.nn.functional import silu

        config, weights, linear = self._config, self._weights, self._linear
        split = (*hidden.shape[:-1], -1, config.head_dim)
        given = normalize_rms(hidden, weights["input_layernorm"], config.rms_norm_eps)
        query, key, value = (
            linear(given, weights[f"self_attn.{name}_proj"]).view(split).transpose(1, 2) for name in "qkv"
        )
        query, key = rotate(query, turn), rotate(key, turn)
        if cache is not None:
            key, value = cache.update(key, value)
        seen = attend(query, key, value, mask)
        if select is not None:
            hidden, seen = (states.flatten(0, 1)[select] for states in (hidden, seen))
        hidden += linear(seen, weights["self_attn.o_proj"])
        given = normalize_rms(hidden, weights["post_attention_layernorm"], config.rms_norm_eps)
        gate = silu(linear(given, weights["mlp.gate_proj"]), inplace=True)
        hidden += linear(gate.mul_(linear(given, weights["mlp.up_proj"])), weights["mlp.down_proj"])
        return hidden


class HalfLayer:
    """A layer with products in half precision and everything between them in float32."""

    def __init__(self, config: Config, weights: Mapping[str, Any], dtype: Any) -> None:
        import torch

        self._config = config
        self._norms = [weights[f"{name}_layernorm"].float() for name in ("input", "post_attention")]
        self._into_attention = torch.cat([weights[f"self_attn.{name}_proj"] for name in "qkv"]).to(dtype)
        self._out_of_attention = weights["self_attn.o_proj"].to(dtype)
        self._into_mlp = torch.cat([weights[f"mlp.{name}_proj"] for name in ("gate", "up")]).to(dtype)
        self._out_of_mlp = weights["mlp.down_proj"].to(dtype)
        self._dtype = dtype

    def __call__(self, hidden: Any, turn: tuple[Any, ...], mask: Any, cache: LayerCache | None) -> Any:
        """The hidden states after this layer, which are written over those before it."""
        from torch.nn.functional import linear, silu

        config = self._config
        heads, groups = config.num_attention_heads, config.num_key_value_heads
        given = normalize_rms(hidden, self._norms[0], config.rms_norm_eps).to(self._dtype)
        mixed = linear(given, self._into_attention).view(*hidden.shape[:-1], -1, config.head_dim)
        mixed = mixed.transpose(1, 2)
        turned, value = mixed[:, : heads + groups], mixed[:, heads + groups :]
        turned = rotate(turned.float(), turn).to(self._dtype)
        query, key = turned[:, :heads], turned[:, heads:]
        if cache is not None:
            key, value = cache.update(key, value)
        hidden += linear(attend(query, key, value, mask), self._out_of_attention)
        given = normalize_rms(hidden, self._norms[1], config.rms_norm_eps).to(self._dtype)
        gate, up = linear(given, self._into_mlp).chunk(2, dim=-1)
        hidden += linear(silu(gate).mul_(up), self._out_of_mlp)
        return hidden


def _take_layer(weights: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The weights of one layer by their names inside it.

    Raises KeyError for a weight that is missing.
    """
    return {name: weights[f"model.layers.{number}.{name}.weight"] for name in IN_A_LAYER}


def normalize_rms(hidden: Any, weight: Any, epsilon: float) -> Any:
    """RMS normalization, computed in float32 as in transformers, in float64 models too."""
    from torch.nn.functional import rms_norm

    return rms_norm(hidden.float(), hidden.shape[-1:], weight.float(), epsilon).to(hidden.dtype)


def rotate(states: Any, turn: tuple[Any, ...]) -> Any:
    """States with the halves of each head turned against each other by the angles of their positions."""
    middle = states.shape[-1] // 2
    sine = turn[1][..., :middle]
    turned = states * turn[0]
    turned[..., :middle].addcmul_(states[..., middle:], sine, value=-1)
    turned[..., middle:].addcmul_(states[..., :middle], sine)
    return turned


def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """Attention of the query heads to the keys that the mask allows, heads side by side again.

    A position attends to none behind it, so a block of queries needs only the keys up to its end.
    """
    from torch.nn.functional import scaled_dot_product_attention

    batch, heads, length, width = query.shape
    cached = key.shape[-2] - length
    seen = query.new_empty(batch, length, heads, width)
    for first in range(0, length, QUERIES):
        last = min(length, first + QUERIES)
        reach = slice(cached + last)
        part = scaled_dot_product_attention(
            query[:, :, first:last],
            key[:, :, reach],
            value[:, :, reach],
            attn_mask=mask[..., first:last, reach],
            scale=width**-0.5,
            enable_gqa=True,
        )
        seen[:, first:last] = part.transpose(1, 2)
    return seen.flatten(2)
