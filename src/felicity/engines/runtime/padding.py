"""Whether padding changes a model's numbers, and how inputs are batched if it does.

Most models do not see the padding of a batch. Some do: those that mix or pool positions without a mask (FNet,
Funnel, ConvBERT, YOSO), and those that choose their kind of attention by the longest input of a batch
(BigBird). On loading, a few sentences are scored in a padded batch and one at a time; if the numbers differ,
only inputs of equal length share a batch, or none do.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.memo import recall, remember
from felicity.core.schemas import PROMPTS

PADDED, EQUAL, ALONE = "padded batches", "batches of equal length", "one text at a time"
KIND = "padding"
# Raised whenever the check or its sentences change, so that old results are not believed.
CHECK = 1
# Nats per token by which two ways of scoring may differ through rounding.
TOLERANCE = {"float64": 1e-5, "float32": 1e-4, "float16": 0.1, "bfloat16": 0.6}
# What transformers models raise for inputs that they do not support.
REFUSALS = (
    ValueError,
    TypeError,
    RuntimeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    NotImplementedError,
)
SENTENCES = (
    "The keys to the cabinet are on the table.",
    "The keys to the cabinet is on the table.",
    "The keys to the cabinet are",
    "The keys to the cabinet are",
    "Nobody who saw the parade has ever forgotten it.",
    "Nobody who saw the parade have ever forgotten it.",
)
# Attention of this type is replaced by another in short inputs.
LENGTH_DEPENDENT = "block_sparse"


def build_padding_sample() -> pl.DataFrame:
    """Prompts of different length, a few with a context."""
    texts = [*SENTENCES[1:4], SENTENCES[4], " ".join(SENTENCES[:3]), "Nobody", SENTENCES[0]]
    contexts = [None, None, None, SENTENCES[0], None, None, " ".join(SENTENCES[4:])]
    names = [str(place) for place in range(len(texts))]
    return pl.DataFrame({"request": names, "context_text": contexts, "text": texts}, schema=PROMPTS)


def choose_batches(
    score: Callable[[str], np.ndarray],
    model: Any,
    *,
    name: str,
    dtype: str,
    key: dict[str, Any] | None = None,
) -> str:
    """The fastest way to batch that gives the numbers of one text at a time.

    score: the log-probabilities of a few inputs, batched in one of the three ways. With a `key` the result
    is remembered.

    Raises NotPossible if the model cannot read these inputs one at a time.
    """
    if getattr(model.config, "attention_type", None) == LENGTH_DEPENDENT:
        return EQUAL
    recalled = recall(KIND, key | {"check": CHECK}) if key else None
    if recalled is not None and recalled.get("batches") in (PADDED, EQUAL, ALONE):
        return str(recalled["batches"])
    try:
        way = _compare(score, TOLERANCE[dtype])
    except REFUSALS as error:
        reason = " ".join(str(error).split())[:120]
        raise NotPossible(
            f"'{name}' cannot read a single sentence ({type(error).__name__}: {reason}); use another model."
        ) from error
    if key:
        remember(KIND, key | {"check": CHECK}, {"batches": way})
    return way


def _compare(score: Callable[[str], np.ndarray], tolerance: float) -> str:
    try:
        together: np.ndarray | None = score(PADDED)
    except REFUSALS:
        together = None
    alone = score(ALONE)
    for way in (PADDED, EQUAL):
        try:
            scores = together if way == PADDED else score(way)
        except REFUSALS:
            continue
        # The difference of two numbers that are not finite is not below the tolerance.
        if scores is not None and np.all(np.abs(scores - alone) <= tolerance):
            return way
    return ALONE


def group_equal(shapes: Sequence[tuple[int, ...]]) -> Iterator[np.ndarray]:
    """Places of inputs of equal shape, the largest first.

    >>> [group.tolist() for group in group_equal([(3, 1), (4, 1), (3, 1)])]
    [[1], [0, 2]]
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, shape in enumerate(shapes):
        groups.setdefault(shape, []).append(place)
    for shape in sorted(groups, reverse=True):
        yield np.array(groups[shape])


def find_switching(model: Any) -> list[Any]:
    """The parts of a model that switch their kind of attention at a short input, and stay so."""
    switching: dict[str, Any] = {}
    for name, part in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in switching)
        if hasattr(part, "set_attention_type") and not inside:
            switching[name] = part
    return list(switching.values())


def restore_attention(parts: Sequence[Any]) -> None:
    """Set parts back to the attention of their configuration, so that no input changes the next."""
    for part in parts:
        part.set_attention_type(part.config.attention_type)
