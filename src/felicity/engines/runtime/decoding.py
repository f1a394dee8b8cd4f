"""Continue texts token by token with a key-value cache; a text that has ended leaves the batch.

transformers' own loop computes every text of a batch until the last one has ended. Where most texts end early
(at a full stop, say) and few go on to the limit, that is most of the work. Here the rows of ended texts are
removed from the cache, so that what is left gets faster.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Rows are removed from the cache when this share of them has ended: removing copies the cache.
ENDED_SHARE = 0.2
NEEDED = ("position_ids", "past_key_values", "logits_to_keep")

# Places of the rows that are left, and their logits, into one token each.
Choose = Callable[[list[int], Any], list[int]]
# A row's place and its tokens so far; whether the text has ended.
HasEnded = Callable[[int, list[int]], bool]


def can_drop_rows(model: Any) -> bool:
    """Whether the model keeps a plain cache of keys and values, from which rows can be removed."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ["full_attention"]
    plain = all(kind == "full_attention" for kind in kinds) and not getattr(config, "sliding_window", None)
    parameters = inspect.signature(model.forward).parameters
    return plain and not getattr(model, "_is_stateful", False) and set(NEEDED) <= set(parameters)


def continue_rows(
    model: Any, rows: Sequence[Sequence[int]], limits: Sequence[int], *, choose: Choose, has_ended: HasEnded
) -> list[list[int]]:
    """The new tokens of each row, at most `limits` of them, the last one being that which ended it."""
    import torch
    from transformers import DynamicCache

    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), dtype=np.int64)
    seen = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, width - len(row) :], seen[place, width - len(row) :] = row, 1
    mask = torch.from_numpy(seen).to(model.device)
    step = torch.from_numpy(ids).to(model.device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    written: list[list[int]] = [[] for _ in rows]
    ended = [limit < 1 for limit in limits]
    left = list(range(len(rows)))
    cache = DynamicCache(config=model.config.get_text_config())
    with torch.inference_mode():
        while not all(ended):
            output = model(
                input_ids=step,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            chosen = choose(left, output.logits[:, -1])
            for place, token in zip(left, chosen, strict=True):
                if not ended[place]:
                    written[place].append(token)
                    full = len(written[place]) >= limits[place]
                    ended[place] = full or has_ended(place, written[place])
            step = torch.tensor(chosen, device=model.device)[:, None]
            positions = positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(left), 1)], dim=1)
            going = [number for number, place in enumerate(left) if not ended[place]]
            if going and len(left) - len(going) >= ENDED_SHARE * len(left):
                kept = torch.tensor(going, device=model.device)
                cache.batch_select_indices(kept)
                step, positions, mask = step[kept], positions[kept], mask[kept]
                left = [left[number] for number in going]
    return written
