"""Trust, but verify: whether a model's trie numbers are its plain numbers, found out on loading it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicity.engines.activations import fuse_activations
from felicity.engines.batches import bound_tokens, plan_batches, score_batch
from felicity.engines.encoding import Encoded
from felicity.engines.passes import TreeModel
from felicity.engines.reading import Reader
from felicity.engines.spans import Shape
from felicity.engines.treescoring import score_trie

# Nats per token by which the two ways may differ: rounding, not another computation.
TOLERANCE = {"float32": 1e-4, "float16": 0.1, "bfloat16": 0.6}
# Small enough for the few tokens of the check to take several rows, passes and trunks.
SHAPE = Shape(row=16, window=24, batch=48, chain=3)
TRUNK = 48
PAST_WINDOW = 16
# Tokens at the end of a text that are compared: what a sliding window hides from is there.
COMPARED = 96
# What transformers' models raise at a mask, positions or a cache that they do not take.
REFUSALS = (ValueError, TypeError, RuntimeError, KeyError, IndexError, AttributeError, NotImplementedError)

SENTENCES = (
    "The keys to the cabinet are on the table.",
    "The keys to the cabinet is on the table.",
    "The keys to the cabinet are",
    "The keys to the cabinet are",
    "Nobody who saw the parade has ever forgotten it.",
    "Nobody who saw the parade have ever forgotten it.",
)


@dataclass(frozen=True)
class Check:
    """How a model will be read: `tree` where it can be read so, and what decided that."""

    tree: TreeModel | None
    note: str

    @property
    def scheduler(self) -> str:
        """`trie`, or `plain` where the model is read in padded batches."""
        return "trie" if self.tree else "plain"


def check_tree(model: Any, tokenizer: Any, *, window: int, dtype: str) -> Check:
    """Score a few sentences both ways, one of them longer than what the model's layers look back."""
    take_back: Callable[[], None] = no_change
    try:
        tree = TreeModel.wrap(model)
        encoded = build_sample(tokenizer, window=window, reach=_reach(tree))
        plain = score_plainly(model, encoded)
        take_back = fuse_activations(model)
        found = np.full_like(plain, np.nan)
        nothing = np.zeros(len(encoded), dtype=bool)
        for sequences, records in score_trie(tree, encoded, nothing, SHAPE, Reader()):
            found[encoded.places(sequences, encoded.wanted)] = records["logprob"]
    except REFUSALS as error:
        take_back()
        reason = " ".join(str(error).split())[:120]
        return Check(None, f"the model takes no tree mask ({type(error).__name__}: {reason})")
    difference = float(np.max(np.abs(found - plain)[encoded.wanted], initial=0.0))
    if not difference <= TOLERANCE[dtype]:
        take_back()
        return Check(None, f"trie and plain numbers differ by {difference:.2g} nats")
    return Check(tree, f"trie and plain numbers agree within {difference:.1g} nats")


def no_change() -> None:
    """Nothing to take back."""


def score_plainly(model: Any, encoded: Encoded) -> np.ndarray:
    """The log-probability of every wanted token in padded batches, NaN at the others."""
    values = np.full(len(encoded.ids), np.nan, dtype=np.float32)
    for batch in plan_batches(encoded.lengths, budget=bound_tokens(model)):
        values[encoded.places(batch, encoded.wanted)] = score_batch(model, encoded, batch, Reader())[
            "logprob"
        ]
    return values


def build_sample(tokenizer: Any, *, window: int, reach: int) -> Encoded:
    """Sequences with common beginnings, duplicates, prefixes of each other, and a long trunk."""
    short = [list(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in SENTENCES]
    running = [token for sentence in short for token in sentence]
    length = min(max(TRUNK, reach + PAST_WINDOW), window - 1)
    trunk = (running * (length // max(1, len(running)) + 1))[:length]
    room = window - length
    long = [trunk[: length // 2] + short[0], trunk + short[4][:room], trunk + short[5][:room]]
    encoded = Encoded.from_ids([ids[:window] for ids in (*short, *long) if ids])
    to_end = np.repeat(encoded.bounds[1:], encoded.lengths) - np.arange(len(encoded.ids))
    return replace(encoded, wanted=encoded.wanted & (to_end <= COMPARED))


def _reach(tree: TreeModel) -> int:
    return max((window for window in tree.windows.values() if window is not None), default=0)
