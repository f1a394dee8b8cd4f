"""Rules by which layers look back that a tree mask cannot give, or that only long texts would show.

The check on loading reads a few sentences. A rule that begins to act far beyond them would pass it and
give other numbers later, so a model with one is never read as a trie, whatever the check would say.
"""

from typing import Any

DESCRIBED = {"full_attention", "sliding_attention"}
# What configurations of transformers call such rules, and what they mean.
UNREACHED = {
    "attention_layers": "layers with a mask of their own, by the place in a row",  # GPT-Neo
    "attention_chunk_size": "attention in chunks",  # Llama 4
    "attention_window_size": "a window of its own",  # RecurrentGemma
    "sliding_window_size": "a window of its own",  # Inkling
    "keep_window_size": "keys chosen in long texts",  # Doge
    "index_topk": "keys chosen in long texts",  # DeepSeek 3.2, GLM
    "index_topk_blocks": "keys chosen in long texts",  # MiniMax M3
    "block_size": "attention in blocks",  # BigBird, MiniMax
    "local_attn_chunk_length": "attention in chunks",  # Reformer
}
# Rotations that the longest text of a pass decides for all of them.
LENGTH_ROTATIONS = ("longrope", "dynamic")


def find_windows(config: Any) -> dict[str, int | None]:
    """How far back the layers of each type look, None being all the way; one nameless type has the name ''.

    Raises ValueError naming a rule that a tree mask cannot give.
    """
    types = set(getattr(config, "layer_types", None) or ())
    if types - DESCRIBED:
        raise ValueError(f"layers of type {', '.join(sorted(types - DESCRIBED))}")
    for name, meaning in UNREACHED.items():
        if getattr(config, name, None):
            raise ValueError(f"{meaning} ({name})")
    for rotation in find_rotations(config):
        if any(name in rotation for name in LENGTH_ROTATIONS):
            raise ValueError(f"positions turned by the length of the text ({rotation})")
    window = getattr(config, "sliding_window", None)
    if not types:
        return {"": window}
    return {name: window if name == "sliding_attention" else None for name in sorted(types)}


def find_rotations(config: Any) -> list[str]:
    """The kinds of rotary position, of all layers or by the type of layer."""
    rope = getattr(config, "rope_parameters", None) or {}
    parts = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    return [str(part["rope_type"]) for part in parts if part.get("rope_type")]
