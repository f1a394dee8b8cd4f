"""Forward passes over a token trie: attention masks, the KV cache, and the scores of every sequence."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicity.engines.causal.llama import BEGINNING, Llama
from felicity.engines.causal.trie import Shape, Span, Trie, build_trie, plan_units
from felicity.engines.runtime import TokenScorer, compute_logits
from felicity.engines.tokenizing import Encoded

DESCRIBED = {"full_attention", "sliding_attention"}
# Configuration fields of transformers for attention that a tree mask cannot express, and what they mean.
UNSUPPORTED = {
    "attention_layers": "layers with their own position-dependent mask",  # GPT-Neo
    "attention_chunk_size": "attention in chunks",  # Llama 4
    "attention_window_size": "an attention window of its own",  # RecurrentGemma
    "sliding_window_size": "an attention window of its own",  # Inkling
    "keep_window_size": "sparse keys in long texts",  # Doge
    "index_topk": "sparse keys in long texts",  # DeepSeek 3.2, GLM
    "index_topk_blocks": "sparse keys in long texts",  # MiniMax M3
    "block_size": "attention in blocks",  # BigBird, MiniMax
    "local_attn_chunk_length": "attention in chunks",  # Reformer
}
# Rotary positions that depend on the longest text of a batch.
LENGTH_DEPENDENT_ROPE = ("longrope", "dynamic")
# First tokens of texts that are computed at once.
BLOCK = 256
# The key of a mask that applies to all layers; otherwise masks are by layer type.
ALL_LAYERS = "all"

# Sequences, and the records of their wanted tokens, flat, in their order.
Scored = tuple[np.ndarray, np.ndarray]


def find_attention_windows(config: Any) -> dict[str, int | None]:
    """The attention window of each layer type; None is unlimited. A single unnamed type has the name ''.

    Raises ValueError naming a rule that a tree mask cannot express.
    """
    types = set(getattr(config, "layer_types", None) or ())
    if types - DESCRIBED:
        raise ValueError(f"layers of type {', '.join(sorted(types - DESCRIBED))}")
    for name, meaning in UNSUPPORTED.items():
        if getattr(config, name, None):
            raise ValueError(f"{meaning} ({name})")
    for rotation in find_rope_types(config):
        if any(name in rotation for name in LENGTH_DEPENDENT_ROPE):
            raise ValueError(f"rotary positions that depend on the length of the text ({rotation})")
    window = getattr(config, "sliding_window", None)
    if not types:
        return {"": window}
    return {name: window if name == "sliding_attention" else None for name in sorted(types)}


def find_rope_types(config: Any) -> list[str]:
    """The types of rotary position, for all layers or by layer type."""
    rope = getattr(config, "rope_parameters", None) or {}
    parts = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    return [str(part["rope_type"]) for part in parts if part.get("rope_type")]


@dataclass(frozen=True)
class Prediction:
    """Logits, one row per node; `refine` makes log-probabilities that were computed from them more precise.

    Both are valid until the next forward pass.
    """

    logits: Any
    refine: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None

    def score(self, scorer: TokenScorer, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Records of the targets, each under its row; rows must be ascending.

        Only log-probabilities are refined; ranks, entropies and alternatives are those of the logits.
        """
        records = scorer.score(self.logits, rows, targets)
        if self.refine is not None:
            records["logprob"] = self.refine(records["logprob"], rows, targets)
        return records


@dataclass(frozen=True)
class TreeModel:
    """A causal model that computes tries.

    windows: the attention window of each layer type; None is unlimited. beginnings: what is known of the trie
    that is computed.
    """

    model: Any
    windows: dict[str, int | None]
    beginnings: "Beginnings | None" = None

    @classmethod
    def wrap(cls, model: Any) -> "TreeModel":
        """Find the attention windows of the model's layers.

        Raises ValueError if a mask cannot express them.
        """
        windows = find_attention_windows(model.config.get_text_config())
        if model.get_output_embeddings() is None:
            raise ValueError("no separate output projection")
        if len(windows) == 1 and None in windows.values():
            return cls(model, {ALL_LAYERS: None})
        return cls(model, {name or ALL_LAYERS: window for name, window in windows.items()})

    def forward_rows(self, trie: Trie, spans: list[Span], targets: list[np.ndarray]) -> Prediction:
        """Predictions at the target nodes of several spans, one span per row; `targets` index into a span."""
        width = max(len(span) for span in spans)
        nodes = np.full((len(spans), width), -1)
        for row, span in enumerate(spans):
            nodes[row, : len(span)] = span.nodes
        select = np.concatenate([row * width + places for row, places in enumerate(targets)])
        return self._forward(trie, nodes, nodes, select, cache=None)

    def forward_passes(
        self, trie: Trie, span: Span, targets: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Prediction]]:
        """Pass by pass: the nodes, which of `targets` are among them, and the predictions there.

        The KV cache keeps only the ancestors of the next pass's first node.
        """
        cache = _new_cache(self.model)
        kept = np.empty(0, dtype=np.int64)
        parts = np.array_split(span.nodes, span.passes)
        first = 0
        for number, nodes in enumerate(parts):
            here = targets[(targets >= first) & (targets < first + len(nodes))]
            keys = np.concatenate([kept, nodes])
            yield nodes, here, self._forward(trie, nodes[None], keys[None], here - first, cache=cache)
            first += len(nodes)
            if number + 1 < len(parts):
                following = parts[number + 1][0]
                stay = np.flatnonzero((keys < following) & (following < trie.end[keys]))
                _keep(cache, stay)
                kept = keys[stay]

    def _forward(
        self, trie: Trie, nodes: np.ndarray, keys: np.ndarray, select: np.ndarray, *, cache: Any
    ) -> Prediction:
        """Predictions at the selected positions of the flattened nodes; -1 among the nodes is padding."""
        import torch

        model = self.model
        half = isinstance(model, Llama) and model.half
        real = nodes >= 0
        ids = torch.from_numpy(np.where(real, trie.token[nodes], 0)).to(model.device)
        positions = torch.from_numpy(np.where(real, trie.depth[nodes], 0)).to(model.device)
        logits = compute_logits(
            model,
            ids,
            select,
            position_ids=positions,
            attention_mask=self._masks(trie, nodes, keys),
            past_key_values=cache,
            use_cache=cache is not None,
            **({"beginnings": self.beginnings.find(nodes)} if half and self.beginnings else {}),
        )
        if not half:
            return Prediction(logits)
        states = model.take_states()

        def refine(logprob: np.ndarray, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
            return np.asarray(model.refine(logprob, logits, states, rows, targets))

        return Prediction(logits, refine)

    def _masks(self, trie: Trie, nodes: np.ndarray, keys: np.ndarray) -> Any:
        import torch

        seen = build_attention_pattern(trie, nodes, keys)
        back = trie.depth[nodes][:, :, None] - trie.depth[keys][:, None, :]
        masks = {}
        for name, window in self.windows.items():
            allowed = torch.from_numpy(seen if window is None else seen & (back < window))
            mask = torch.zeros(allowed.shape, dtype=self.model.dtype)
            mask.masked_fill_(~allowed, torch.finfo(mask.dtype).min)
            masks[name] = mask[:, None].to(self.model.device)
        return masks.get(ALL_LAYERS, masks)


@dataclass(frozen=True)
class Beginnings:
    """Hidden states in float32 of the first tokens of all texts.

    nodes: ascending. states: layers x nodes x width.
    """

    nodes: np.ndarray
    states: Any

    @classmethod
    def compute(cls, model: Llama, trie: Trie) -> "Beginnings":
        """Those of a trie, block by block, since attention grows quadratically."""
        import torch

        first = np.flatnonzero(trie.depth < BEGINNING)
        states = []
        for block in np.array_split(first, -(-len(first) // BLOCK)):
            nodes = np.unique(np.concatenate([block, *(trie.path(int(node)) for node in block)]))
            seen = torch.from_numpy(build_attention_pattern(trie, nodes[None], nodes[None]))
            mask = torch.zeros(seen.shape).masked_fill_(~seen, torch.finfo(torch.float32).min)[:, None]
            ids, positions = (torch.from_numpy(part[nodes]) for part in (trie.token, trie.depth))
            outputs = model.compute_exactly(ids, positions, mask)
            states.append(outputs[:, torch.from_numpy(np.searchsorted(nodes, block))])
        return cls(first, torch.cat(states, dim=1))

    def find(self, nodes: np.ndarray) -> tuple[Any, Any]:
        """Where in the flattened nodes there are known ones, and their states."""
        import torch

        flat = nodes.ravel()
        places = np.flatnonzero(np.isin(flat, self.nodes))
        columns = np.searchsorted(self.nodes, flat[places])
        return torch.from_numpy(places), self.states[:, torch.from_numpy(columns)]


def build_attention_pattern(trie: Trie, nodes: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Which keys (last axis) each node (middle axis) attends to: its ancestors and itself."""
    query, key = nodes[:, :, None], keys[:, None, :]
    seen = (key <= query) & (query < np.where(keys >= 0, trie.end[keys], -1)[:, None, :])
    # Padding attends to itself, since a softmax over nothing is undefined.
    row, column = np.nonzero(nodes < 0)
    seen[row, column, column] = True
    return np.asarray(seen)


def _new_cache(model: Any) -> Any:
    """An empty KV cache of the kind that the model takes."""
    if isinstance(model, Llama):
        return model.new_cache()
    from transformers import DynamicCache

    return DynamicCache()


def _keep(cache: Any, stay: np.ndarray) -> None:
    import torch

    for layer in cache.layers:
        places = torch.from_numpy(stay).to(layer.keys.device)
        layer.keys = layer.keys.index_select(-2, places)
        layer.values = layer.values.index_select(-2, places)


def score_trie(
    model: TreeModel, encoded: Encoded, finished: np.ndarray, shape: Shape, scorer: TokenScorer
) -> Iterator[Scored]:
    """Score all sequences, yielding after each pass; units that are wholly `finished` are skipped."""
    trie = build_trie(encoded)
    bare = np.flatnonzero(trie.ready < 0)
    if len(bare) and not finished[bare].all():
        yield bare, np.empty(0, dtype=scorer.record)
    if isinstance(model.model, Llama) and model.model.half and len(trie):
        model = replace(model, beginnings=Beginnings.compute(model.model, trie))
    by_ready = np.argsort(trie.ready, kind="stable")
    ready = trie.ready[by_ready]
    value = np.zeros(len(trie.place_token), dtype=scorer.record)
    for unit in plan_units(trie, shape):
        inside = [
            by_ready[np.searchsorted(ready, span.begin) : np.searchsorted(ready, span.end)] for span in unit
        ]
        if all(finished[sequences].all() for sequences in inside):
            continue
        for sequences in filter(len, _score_unit(model, trie, encoded, unit, inside, value, scorer)):
            yield sequences, value[trie.node_of[encoded.places(sequences, encoded.wanted)]]


def _score_unit(
    model: TreeModel,
    trie: Trie,
    encoded: Encoded,
    unit: list[Span],
    inside: list[np.ndarray],
    value: np.ndarray,
    scorer: TokenScorer,
) -> Iterator[np.ndarray]:
    """Fill in the values of the sequences that end in this unit; yield the finished sequences."""
    targets = [np.unique(trie.node_of[encoded.places(sequences, encoded.wanted)]) for sequences in inside]
    if len(unit) == 1 and unit[0].passes > 1:
        yield from _score_long_span(model, trie, unit[0], targets[0], inside[0], value, scorer)
        return
    at = [_index(span, trie.predicted_at[places]) for span, places in zip(unit, targets, strict=True)]
    distinct = [np.unique(indices) for indices in at]
    before = np.cumsum([0, *map(len, distinct)])
    row = [np.searchsorted(d, i) + b for d, i, b in zip(distinct, at, before[:-1], strict=True)]
    predicted = model.forward_rows(trie, unit, distinct)
    rows, places = np.concatenate(row), np.concatenate(targets)
    order = np.argsort(rows, kind="stable")
    value[places[order]] = predicted.score(scorer, rows[order], trie.place_token[places[order]])
    yield np.concatenate(inside)


def _score_long_span(
    model: TreeModel,
    trie: Trie,
    span: Span,
    places: np.ndarray,
    sequences: np.ndarray,
    value: np.ndarray,
    scorer: TokenScorer,
) -> Iterator[np.ndarray]:
    """A span of several passes; a sequence is finished after the pass with its last target node."""
    at = _index(span, trie.predicted_at[places])
    for nodes, here, predicted in model.forward_passes(trie, span, np.unique(at)):
        now = np.isin(at, here)
        row, chosen = np.searchsorted(here, at[now]), places[now]
        order = np.argsort(row, kind="stable")
        value[chosen[order]] = predicted.score(scorer, row[order], trie.place_token[chosen[order]])
        yield sequences[np.isin(trie.ready[sequences], nodes)]


def _index(span: Span, nodes: np.ndarray) -> np.ndarray:
    """The index of each node in a span, trunk first."""
    inside = nodes >= span.begin
    return np.where(
        inside, nodes - span.begin + len(span.trunk), np.searchsorted(span.trunk, np.where(inside, 0, nodes))
    )
