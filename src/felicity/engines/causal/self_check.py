"""The check on loading a model: whether the trie gives the same numbers as plain padded batches."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicity.core.errors import FelicityError
from felicity.core.memo import recall, remember
from felicity.core.watched import ChangedFile
from felicity.core.wording import format_digits
from felicity.engines.causal.forward import TreeModel, score_trie
from felicity.engines.causal.trie import Shape
from felicity.engines.runtime import (
    REFUSALS,
    SENTENCES,
    TOLERANCE,
    TokenScorer,
    limit_batch_tokens,
    plan_batches,
    score_batch,
)
from felicity.engines.tokenizing import Encoded

# All of these are GELU with the tanh approximation.
GELU_VARIANTS = ("NewGELUActivation", "FastGELUActivation")
KIND = "checks"
# Raised whenever the check, the trie or the sentences change, so that old results are not believed.
CHECK = 3
# Small enough for the few tokens of the check to need several rows, passes and trunks.
SHAPE = Shape(row=16, window=24, batch=48, chain=3)
TRUNK = 48
PAST_WINDOW = 16
# Tokens compared at the end of each text, where a sliding attention window takes effect.
COMPARED = 96


def fuse_activations(model: Any) -> Callable[[], None]:
    """Replace Python implementations of GELU by torch's own; returns a function that undoes this.

    Only rounding changes, and the check on loading compares with the unchanged model.
    """
    from torch import nn

    activations = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child).__name__ in GELU_VARIANTS
    ]
    for parent, name, _ in activations:
        setattr(parent, name, nn.GELU(approximate="tanh"))

    def restore() -> None:
        for parent, name, child in activations:
            setattr(parent, name, child)

    return restore


@dataclass(frozen=True)
class Check:
    """How a model will be scored: `tree` if the trie works for it, and the reason.

    The model of the tree is transformers', or felicity's own forward pass if that was found equal.
    """

    tree: TreeModel | None
    note: str

    @property
    def scheduler(self) -> str:
        """`trie`, or `plain` if the model is scored in padded batches."""
        return "trie" if self.tree else "plain"


def recall_check(load: Callable[[bool], Any], key: dict[str, Any]) -> Check | None:
    """The result of the same check of the same weights under the same versions; None if it is unknown.

    load: loads the model, with felicity's own forward pass if True.
    """
    recalled = recall(KIND, key | {"check": CHECK})
    if recalled is None or not isinstance(recalled.get("note"), str):
        return None
    if not recalled.get("trie"):
        return Check(None, recalled["note"])
    native = bool(recalled.get("own"))
    try:
        model = load(native)
        tree = TreeModel.wrap(model)
    except REFUSALS:
        return None
    if not native:
        fuse_activations(model)
    return Check(tree, recalled["note"])


def check_tree(
    model: Any,
    tokenizer: Any,
    *,
    window: int,
    dtype: str,
    key: dict[str, Any] | None = None,
    load_own: Callable[[], Any] | None = None,
) -> Check:
    """Score a few sentences both ways, one of them longer than the model's attention window.

    With a `key`, the result is remembered under it; an error, which may be temporary (no memory left), is
    not. `load_own` loads felicity's own forward pass of the model, which is used if its numbers are right.
    """
    restore: Callable[[], None] = no_change
    try:
        tree = TreeModel.wrap(model)
        encoded = build_sample(tokenizer, window=window, attention_window=_longest_attention_window(tree))
        plain = score_in_batches(model, encoded)
        restore = fuse_activations(model)
        scores = _score_tree(tree, encoded)
    except REFUSALS as error:
        restore()
        reason = " ".join(str(error).split())[:120]
        return Check(None, f"the model takes no tree mask ({type(error).__name__}: {reason})")
    difference = _compare(scores, plain, encoded)
    if difference > TOLERANCE[dtype]:
        restore()
        check = Check(None, f"trie and plain numbers differ by {format_digits(difference, 2)} nats")
    else:
        check = Check(tree, f"trie and plain numbers agree within {format_digits(difference, 1)} nats")
    native = _check_own(load_own, scores, encoded, dtype) if check.tree and load_own else None
    if native is not None:
        check = replace(check, tree=native, note=f"{check.note}; computed without transformers")
    if key is not None:
        fact = {"trie": check.tree is not None, "own": native is not None, "note": check.note}
        remember(KIND, key | {"check": CHECK}, fact)
    return check


def _check_own(
    load_own: Callable[[], Any], expected: np.ndarray, encoded: Encoded, dtype: str
) -> TreeModel | None:
    """felicity's own forward pass, if it gives the expected numbers; None if not."""
    try:
        tree = TreeModel.wrap(load_own())
        native = _score_tree(tree, encoded)
    except ChangedFile:
        raise
    except (*REFUSALS, FelicityError):
        # transformers has loaded the model, and may know an arrangement of weights that felicity does not.
        return None
    return tree if _compare(native, expected, encoded) <= TOLERANCE[dtype] else None


def _score_tree(tree: TreeModel, encoded: Encoded) -> np.ndarray:
    """The log-probability of every wanted token over a trie; NaN for the others."""
    values = np.full(len(encoded.ids), np.nan, dtype=np.float32)
    nothing = np.zeros(len(encoded), dtype=bool)
    for sequences, records in score_trie(tree, encoded, nothing, SHAPE, TokenScorer()):
        values[encoded.places(sequences, encoded.wanted)] = records["logprob"]
    return values


def _compare(one: np.ndarray, other: np.ndarray, encoded: Encoded) -> float:
    """The largest difference of wanted tokens, in nats."""
    return float(np.max(np.abs(one - other)[encoded.wanted], initial=0.0))


def no_change() -> None:
    """Nothing to undo."""


def score_in_batches(model: Any, encoded: Encoded) -> np.ndarray:
    """The log-probability of every wanted token in padded batches; NaN for the others."""
    values = np.full(len(encoded.ids), np.nan, dtype=np.float32)
    for batch in plan_batches(encoded.lengths, budget=limit_batch_tokens(model)):
        values[encoded.places(batch, encoded.wanted)] = score_batch(model, encoded, batch, TokenScorer())[
            "logprob"
        ]
    return values


def build_sample(tokenizer: Any, *, window: int, attention_window: int) -> Encoded:
    """Sequences with shared prefixes, duplicates, prefixes of each other, and a long trunk."""
    short = [list(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in SENTENCES]
    running = [token for sentence in short for token in sentence]
    length = min(max(TRUNK, attention_window + PAST_WINDOW), window - 1)
    trunk = (running * (length // max(1, len(running)) + 1))[:length]
    room = window - length
    long = [trunk[: length // 2] + short[0], trunk + short[4][:room], trunk + short[5][:room]]
    encoded = Encoded.from_ids([ids[:window] for ids in (*short, *long) if ids])
    to_end = np.repeat(encoded.bounds[1:], encoded.lengths) - np.arange(len(encoded.ids))
    return replace(encoded, wanted=encoded.wanted & (to_end <= COMPARED))


def _longest_attention_window(tree: TreeModel) -> int:
    return max((window for window in tree.windows.values() if window is not None), default=0)
