"""Words and regions from tokens: sums by character offsets, so that a repeated word is never mistaken.

A tokenizer that writes the space before a word leaves the end of a word open: "cat" may go on as
"catalogue" until the next token comes. The trailing-whitespace correction moves the probability that
the word ends there from the next word to the word itself (Pimentel & Meister 2024; Oh & Schuler 2024):

    lp(word) = sum of its tokens + log p(a word begins | after it) - log p(a word begins | before it)

The terms between words cancel in the sum, so words still sum to their sentence. Nothing stands before
a text's first word, and nothing is known of what follows its last, unless an end token is scored.
"""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName

BOUNDARIES = ("corrected", "plain")
WORD = re.compile(r"\S+")
Span = tuple[int, int]


def find_words(text: str) -> list[Span]:
    """Where the words of a text stand: runs of characters between white space.

    >>> find_words("It's raining.")
    [(0, 4), (5, 13)]
    """
    return [match.span() for match in WORD.finditer(text)]


def sum_spans(
    tokens: pl.DataFrame,
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    *,
    boundary: str = "corrected",
) -> pl.DataFrame:
    """One row a span: place of its text, place in it, word, start, end, lp in nats, n_tokens.

    A token belongs to the span of its first character that is no white space; white space alone, and
    an end token, belong to what follows, which for an end token is a span of its own, an empty word.
    `corrected` needs the column `boundary` of the tokens.

    Raises UnknownName for another boundary, BadInput where spans overlap or leave the text.
    """
    if boundary not in BOUNDARIES:
        raise UnknownName("boundary", boundary, BOUNDARIES)
    rows: list[tuple[int, int, str, int, int, float | None, int]] = []
    for place, (row, text, own) in enumerate(zip(tokens.iter_rows(named=True), texts, spans, strict=True)):
        check_spans(text, own)
        belongs, ends = assign_tokens(text, row["start"], row["end"], own)
        logprob = np.array([np.nan if value is None else value for value in row["logprob"]])
        if boundary == "corrected":
            logprob = logprob + _corrections(row, text, belongs)
        every = [*own, (len(text), len(text))] if ends else list(own)
        for number, (start, end) in enumerate(every):
            mine = logprob[belongs == number]
            known = mine[~np.isnan(mine)]
            lp = float(known.sum()) if len(known) else None
            rows.append((place, number, text[start:end], start, end, lp, len(mine)))
    names = ("text", "place", "word", "start", "end", "lp", "n_tokens")
    kinds = (pl.UInt32, pl.UInt32, pl.String, pl.UInt32, pl.UInt32, pl.Float64, pl.UInt32)
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")


def check_spans(text: str, spans: Sequence[Span]) -> None:
    """Refuse spans that overlap, run backwards or leave the text."""
    last = 0
    for start, end in spans:
        if not last <= start <= end <= len(text):
            raise BadInput(f"The region {start} to {end} of '{text}' overlaps another or leaves the text.")
        last = end


def assign_tokens(
    text: str, starts: Sequence[int], ends: Sequence[int], spans: Sequence[Span]
) -> tuple[np.ndarray, bool]:
    """The span of each token (-1 for none), and whether an end token stands behind the last."""
    begins = np.array([start for start, _ in spans], dtype=np.int64)
    stops = np.array([end for _, end in spans], dtype=np.int64)
    belongs = np.full(len(starts), -1)
    ended = False
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start == end == len(text) and number == len(starts) - 1:
            belongs[number], ended = len(spans), True
            continue
        first = start
        while first < len(text) and text[first].isspace():
            first += 1
        inside = int(np.searchsorted(stops, first, side="right"))
        if inside < len(spans) and begins[inside] <= first:
            belongs[number] = inside
        elif first == len(text) and len(spans):
            belongs[number] = len(spans) - 1
    return belongs, ended


def _corrections(row: dict[str, list[float | None]], text: str, belongs: np.ndarray) -> np.ndarray:
    """What each token gets: the next word's chance to begin, less its own where it begins a word."""
    shift = np.zeros(len(belongs))
    starts = row["start"]
    for number in range(1, len(belongs)):
        chance = row["boundary"][number]
        first = starts[number]
        opens = first is not None and (_after_space(text, int(first)) or first == len(text))
        # Beside a token that has no score, the two sides would not cancel.
        scored = chance is not None and row["logprob"][number - 1] is not None
        if belongs[number] != belongs[number - 1] and opens and scored:
            shift[number] -= float(chance or 0.0)
            shift[number - 1] += float(chance or 0.0)
    return shift


def _after_space(text: str, place: int) -> bool:
    """Whether a token from here begins with white space, written into its offsets or left before them."""
    return text[place : place + 1].isspace() or text[place - 1 : place].isspace()
