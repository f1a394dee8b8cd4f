"""Texts longer than a model's window, scored piece by piece, each after what precedes it.

With `--overflow slide`, a text is cut between words. The first piece fills the window; each later one is
about `stride` tokens long and stands after as many of the preceding words as the window holds, so that a word
has about `window - stride` tokens before it, or more. Every window is tokenized as the text that it is, after
the begin token of the policy. The pieces are prompts like any other, so their scores are cached.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from felicity.core.engine import Engine, EngineInfo
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import find_stride
from felicity.core.schemas import PROMPTS

# A cut needs a single space: joined again by it, the pieces are the same text.
WORD = re.compile(r"\S+(?:\s{2,}\S+|[^\S ]\S+)*")
# Tokens of a window that are kept free for the begin token and the like.
SPARE = 2

Score = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Word:
    """A word of a text, its place in it, and its tokens: after other words, and first in a window."""

    start: int
    end: int
    tokens: int
    alone: int


def slides(info: EngineInfo) -> bool:
    """Whether over-long texts are scored in windows.

    Raises NotPossible if the model or the other fields of its policy do not allow it.
    """
    if info.window is None or find_stride(info.policy["overflow"], info.window) is None:
        return False
    policy = info.policy
    if info.kind != "left-to-right" or policy["eos"] != "none":
        raise NotPossible(
            "--overflow slide is for models that read from left to right, without an end token; omit it."
        )
    if policy["seam"] != "offsets" or policy["join"] != " ":
        raise NotPossible("--overflow slide needs the policy's own seam and join; omit --policy and --join.")
    return True


def score_sliding(engine: Engine, prompts: pl.DataFrame, score: Score) -> pl.DataFrame:
    """Tokens of prompts, the over-long ones in windows; `score` gives those of prompts that fit.

    Raises BadInput for a text that cannot be cut, such as one in a script without spaces.
    """
    over = engine.encode(prompts)["n_over"].to_list()
    pieces: list[tuple[str, str | None, str]] = []
    origin: list[tuple[int, int]] = []
    for place, (row, beyond) in enumerate(zip(prompts.iter_rows(), over, strict=True)):
        cut = _cut(engine, row[1], row[2]) if beyond else [(row[1], 0, len(row[2]))]
        for context, start, end in cut:
            pieces.append((f"{row[0]} [{len(origin)}]", context, row[2][start:end]))
            origin.append((place, start))
    scored = score(pl.DataFrame(pieces, schema=PROMPTS, orient="row"))
    lists = [name for name in scored.columns if name != "request"]
    shifted = scored.with_columns(
        pl.Series("place", [place for place, _ in origin]), pl.Series("shift", [start for _, start in origin])
    ).with_columns(
        (pl.col(name).cast(pl.List(pl.Int64)) + pl.col("shift")).cast(scored.schema[name])
        for name in ("start", "end")
    )
    whole = shifted.group_by("place", maintain_order=True).agg(pl.col(name).explode() for name in lists)
    return whole.select(prompts["request"], *lists)


def _cut(engine: Engine, context: str | None, text: str) -> list[tuple[str | None, int, int]]:
    """The pieces of a text: the context of each, and its first and last character in the text."""
    window = engine.info.window or 0
    stride = find_stride(engine.info.policy["overflow"], window) or 0
    before = f"{context} " if context else ""
    words = _measure(engine, before, text)
    sums = np.cumsum([0, *(word.tokens for word in words)])
    first = next(place for place, word in enumerate(words) if word.start >= len(before))
    room = window - SPARE
    pieces: list[tuple[str | None, int, int]] = []
    begin = first
    while begin < len(words):
        left = min(int(np.searchsorted(sums, sums[begin] - (room - stride))), begin)
        while left < begin and _count(words, sums, left, begin) > room - stride:
            left += 1
        # The last of the words that still fit after those on the left.
        end = int(np.searchsorted(sums, sums[left] + room, side="right")) - 1
        while end > begin and _count(words, sums, left, end) > room:
            end -= 1
        if end <= begin:
            raise BadInput(
                f"'{(before + text)[words[begin].start :][:40]}...' has more tokens than the window of "
                f"{window} without a single space to cut at; cut the text yourself."
            )
        end = min(end, len(words))
        opening = (before + text)[words[left].start : words[begin].start].rstrip() or None
        pieces.append((opening, words[begin].start - len(before), words[end - 1].end - len(before)))
        begin = end
    return pieces


def _count(words: Sequence[Word], sums: np.ndarray, left: int, end: int) -> int:
    """The tokens of a window from one word up to another."""
    return int(sums[end] - sums[left + 1]) + words[left].alone


def _find_words(text: str, shift: int) -> list[tuple[int, int]]:
    """The spans of words that can be cut apart; white space at the ends belongs to the first and the last."""
    spans = [match.span() for match in WORD.finditer(text)]
    starts = [0, *(start for start, _ in spans[1:])]
    ends = [*(end for _, end in spans[:-1]), len(text)]
    return [(start + shift, end + shift) for start, end in zip(starts, ends, strict=True)] if spans else []


def _measure(engine: Engine, before: str, text: str) -> list[Word]:
    """The words of a text with their numbers of tokens, each tokenized after the word before it and alone."""
    spans = _find_words(before[:-1], 0) + _find_words(text, len(before))
    texts = [(before + text)[start:end] for start, end in spans]
    rows = [(str(place), texts[place - 1] if place else None, word) for place, word in enumerate(texts)]
    rows += [(f"alone {place}", None, word) for place, word in enumerate(texts)]
    counts = engine.encode(pl.DataFrame(rows, schema=PROMPTS, orient="row"))["n_tokens"].to_list()
    sizes = zip(spans, counts[: len(texts)], counts[len(texts) :], strict=True)
    return [Word(start, end, after, alone) for (start, end), after, alone in sizes]


def describe_sliding(info: EngineInfo, over: Sequence[int]) -> str:
    """What is done with over-long texts, in words; empty if there are none."""
    stride = find_stride(info.policy["overflow"], info.window or 0)
    if not any(over) or stride is None or info.window is None:
        return ""
    return (
        f"longer than the window of {info.window:,} tokens, scored in windows that advance by {stride:,} "
        f"tokens: beyond the first window a word has about {info.window - stride:,} tokens before it, or more"
    )
