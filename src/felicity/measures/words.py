"""Surprisal by word and by region: the tokens of each span, found by their characters, combined."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import regex

from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.regions import Span, find_unmarked
from felicity.core.schemas import REGIONS
from felicity.core.units import NATS_PER_BIT

CORRECTED, PLAIN = "corrected", "plain"
BOUNDARIES = ("auto", CORRECTED, PLAIN)
WORD = re.compile(r"\S+")
# With the flag (?w) a boundary of the regex library is that of UAX 29.
UNICODE_BOUNDARY = regex.compile(r"(?w)\b")
NEED_DICTIONARY = ("THAI", "LAO", "KHMER", "MYANMAR")
METRICS: dict[str, Callable[[np.ndarray], float]] = {
    "sum": lambda values: float(values.sum()),
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
    "range": lambda values: float(np.ptp(values)),
    "max": lambda values: float(values.max()),
    "min": lambda values: float(values.min()),
}


def find_words(text: str) -> list[Span]:
    """The spans of the words of a text: runs of characters between white space.

    Raises BadInput for a text in a script without spaces whose words are not marked.

    >>> find_words("It's raining.")
    [(0, 4), (5, 13)]
    """
    unmarked = find_unmarked(text)
    if unmarked:
        raise BadInput(
            f"'{unmarked}' is written without spaces, so its words are unknown; mark them with bars, such as "
            "猫|が|鳴く, and use --by region (regions= in Python), or use --by unicode or --by token."
        )
    return [match.span() for match in WORD.finditer(text)]


def find_unicode_words(text: str) -> list[Span]:
    """The spans of the words and marks of a text by Unicode's rules (UAX 29), which need no spaces.

    Of Chinese and Japanese these are single characters and runs of katakana, not the words of a dictionary.

    >>> text = "它很好，isn't it?"
    >>> [text[start:end] for start, end in find_unicode_words(text)]
    ['它', '很', '好', '，', "isn't", 'it', '?']

    Raises BadInput for Thai, Lao, Khmer and Burmese, whose words need a dictionary.
    """
    alone = next((letter for letter in text if unicodedata.name(letter, "").startswith(NEED_DICTIONARY)), "")
    if alone:
        raise BadInput(
            f"The words of '{text[:40]}' need a dictionary, which UAX 29 is not; mark them with bars and use "
            "--by region (regions= in Python), or use --by token."
        )
    cuts = sorted({0, len(text), *(match.start() for match in UNICODE_BOUNDARY.finditer(text))})
    return [(start, end) for start, end in pairwise(cuts) if not text[start:end].isspace()]


def choose_boundary(asked: str, info: EngineInfo) -> str:
    """How the tokens of a word are summed: `auto` is corrected where the model can, else plain.

    Raises UnknownName for another way, NotPossible for a correction that the model cannot make.
    """
    if asked not in BOUNDARIES:
        raise UnknownName("boundary", asked, BOUNDARIES)
    able = "boundary" in info.can
    if asked == CORRECTED and not able:
        raise NotPossible(
            f"'{info.name}' gives no probability that a word ends, so its words cannot be corrected for "
            "trailing white space; use --boundary plain."
        )
    return asked if asked != "auto" else CORRECTED if able else PLAIN


def sum_spans(
    tokens: pl.DataFrame,
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    *,
    boundary: str = CORRECTED,
) -> pl.DataFrame:
    """One row per span: text and place (numbers from 1), word, start, end, lp in nats, n_tokens.

    A token belongs to the span of its first non-space character. White space alone and an end token
    belong to what follows; an end token is a span of its own, an empty word. `corrected` needs the
    column `boundary` of the tokens.

    Raises BadInput if spans overlap or leave the text.
    """
    rows: list[tuple[int, int, str, int, int, float | None, int]] = []
    for place, (row, text, words) in enumerate(zip(tokens.iter_rows(named=True), texts, spans, strict=True)):
        check_spans(text, words)
        belongs, ends = assign_tokens(text, row["start"], row["end"], words)
        logprob = np.array([np.nan if value is None else value for value in row["logprob"]])
        if boundary == CORRECTED:
            logprob = logprob + _corrections(row, text, belongs)
        every = [*words, (len(text), len(text))] if ends else list(words)
        for number, (start, end) in enumerate(every):
            mine = logprob[belongs == number]
            defined = mine[~np.isnan(mine)]
            lp = float(defined.sum()) if len(defined) else None
            rows.append((place + 1, number + 1, text[start:end], start, end, lp, len(mine)))
    names = ("text", "place", "word", "start", "end", "lp", "n_tokens")
    kinds = (pl.Int64, pl.Int64, pl.String, pl.Int64, pl.Int64, pl.Float64, pl.Int64)
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
    """The span of each token (-1 for none), and whether an end token follows the last."""
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


def _corrections(row: dict[str, Any], text: str, belongs: np.ndarray) -> np.ndarray:
    """The correction of each token: the next word's boundary, minus its own if it starts a word."""
    shift = np.zeros(len(belongs))
    starts = row["start"]
    for number in range(1, len(belongs)):
        chance = row["boundary"][number]
        first = starts[number]
        opens = first is not None and (_after_space(text, int(first)) or first == len(text))
        # Beside a token without a score, the two sides would not cancel.
        scored = chance is not None and row["logprob"][number - 1] is not None
        if belongs[number] != belongs[number - 1] and opens and scored:
            shift[number] -= float(chance or 0.0)
            shift[number - 1] += float(chance or 0.0)
    return shift


def _after_space(text: str, place: int) -> bool:
    """Whether a token from here starts with white space, inside its offsets or before them."""
    return text[place : place + 1].isspace() or text[place - 1 : place].isspace()


def score_regions(
    items: pl.DataFrame, requests: pl.DataFrame, tokens: pl.DataFrame, *, boundary: str = PLAIN
) -> pl.DataFrame:
    """Rows of REGIONS for every stimulus in `tokens`, which has the column `boundary` if that is `corrected`.

    A token belongs to the region of its first non-space character. A token that could not be scored is
    ignored; a region without scored tokens has surprisal 0.
    """
    wanted = items.select("item", "suite", "condition", "text", "regions", "metric")
    named = requests.select("request", "item", "condition").join(wanted, on=["item", "condition"])
    rows = named.join(tokens, on="request", maintain_order="left")
    region_rows: list[dict[str, object]] = []
    for row in rows.iter_rows(named=True):
        region_rows += _regions(row, corrected=boundary == CORRECTED)
    return pl.DataFrame(region_rows, schema=REGIONS)


def _regions(row: dict[str, Any], *, corrected: bool) -> Iterable[dict[str, object]]:
    text, regions = row["text"], row["regions"]
    spans = [(region["start"], region["end"]) for region in regions]
    belongs, _ = assign_tokens(text, row["start"], row["end"], spans)
    lp = np.array([np.nan if value is None else value for value in row["logprob"]])
    if corrected:
        lp = lp + _corrections(row, text, belongs)
    for number, region in enumerate(regions):
        logprobs = lp[belongs == number]
        surprisals = -logprobs[~np.isnan(logprobs)] / NATS_PER_BIT
        yield {
            "item": row["item"],
            "suite": row["suite"],
            "condition": row["condition"],
            "region": region["region"],
            "name": region["name"],
            "surprisal_bits": METRICS[row["metric"]](surprisals) if len(surprisals) else 0.0,
            "n_tokens": len(surprisals),
        }
