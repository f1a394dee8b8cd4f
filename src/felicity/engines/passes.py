"""One forward pass of a causal model over nodes of a trie.

A tree attention mask lets each node see its own history and nothing else, explicit positions put it
where it stands in its sequence, and the output projection runs only where a next token is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicity.engines.logits import read_logits
from felicity.engines.lookback import find_windows
from felicity.engines.spans import Span
from felicity.engines.trie import Trie

# Under this name a mask is for all layers; else for the layers of one type.
ALL_LAYERS = "all"


@dataclass(frozen=True)
class TreeModel:
    """A causal model that reads tries.

    windows: how far back the layers of each type look; None is all the way.
    """

    model: Any
    windows: dict[str, int | None]

    @classmethod
    def wrap(cls, model: Any) -> "TreeModel":
        """Find out how the layers look back.

        Raises ValueError where they do so by a rule that a mask cannot give.
        """
        windows = find_windows(model.config.get_text_config())
        if model.get_output_embeddings() is None:
            raise ValueError("no output projection of its own")
        if len(windows) == 1 and None in windows.values():
            return cls(model, {ALL_LAYERS: None})
        return cls(model, {name or ALL_LAYERS: window for name, window in windows.items()})

    def read_rows(self, trie: Trie, spans: list[Span], asked: list[np.ndarray]) -> Any:
        """Logits after the asked nodes of several spans, one span a row; `asked` are indices into a span."""
        width = max(len(span) for span in spans)
        nodes = np.full((len(spans), width), -1)
        for row, span in enumerate(spans):
            nodes[row, : len(span)] = span.nodes
        select = np.concatenate([row * width + places for row, places in enumerate(asked)])
        return self._forward(trie, nodes, nodes, select, cache=None)

    def read_passes(
        self, trie: Trie, span: Span, asked: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Pass by pass: nodes read, which of `asked` are among them, and the logits after those.

        Keys and values of the way to the next pass's first node stay in the cache; the rest is dropped.
        """
        from transformers import DynamicCache

        cache = DynamicCache()
        kept = np.empty(0, dtype=np.int64)
        parts = np.array_split(span.nodes, span.passes)
        first = 0
        for number, nodes in enumerate(parts):
            here = asked[(asked >= first) & (asked < first + len(nodes))]
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
    ) -> Any:
        """Logits at the selected places of the flattened nodes; -1 among the nodes is padding."""
        import torch

        model = self.model
        real = nodes >= 0
        ids = torch.from_numpy(np.where(real, trie.token[nodes], 0)).to(model.device)
        positions = torch.from_numpy(np.where(real, trie.depth[nodes], 0)).to(model.device)
        return read_logits(
            model,
            ids,
            select,
            position_ids=positions,
            attention_mask=self._masks(trie, nodes, keys),
            past_key_values=cache,
            use_cache=cache is not None,
        )

    def _masks(self, trie: Trie, nodes: np.ndarray, keys: np.ndarray) -> Any:
        import torch

        seen = see_history(trie, nodes, keys)
        back = trie.depth[nodes][:, :, None] - trie.depth[keys][:, None, :]
        masks = {}
        for name, window in self.windows.items():
            allowed = torch.from_numpy(seen if window is None else seen & (back < window))
            mask = torch.zeros(allowed.shape, dtype=self.model.dtype)
            mask.masked_fill_(~allowed, torch.finfo(mask.dtype).min)
            masks[name] = mask[:, None].to(self.model.device)
        return masks.get(ALL_LAYERS, masks)


def see_history(trie: Trie, nodes: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Which keys (last axis) each node (middle axis) may look at: its ancestors and itself."""
    query, key = nodes[:, :, None], keys[:, None, :]
    seen = (key <= query) & (query < np.where(keys >= 0, trie.end[keys], -1)[:, None, :])
    # Padding sees itself alone, for a softmax over nothing is no number.
    row, column = np.nonzero(nodes < 0)
    seen[row, column, column] = True
    return np.asarray(seen)


def _keep(cache: Any, stay: np.ndarray) -> None:
    import torch

    for layer in cache.layers:
        places = torch.from_numpy(stay).to(layer.keys.device)
        layer.keys = layer.keys.index_select(-2, places)
        layer.values = layer.values.index_select(-2, places)
