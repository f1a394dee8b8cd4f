"""Blanks filled by models of words: the likeliest words of the vocabulary after a beginning."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from felicity.core.schemas import FILLERS
from felicity.engines.causal.fill import encode_prompt, parse_left_frame
from felicity.engines.tokenizing import Encoder
from felicity.engines.words import UNKNOWN

# Histories whose whole vocabulary is held at once.
ROWS = 256


def fill_words(
    encoder: Encoder,
    frames: Sequence[str],
    *,
    k: int,
    name: str,
    predict: Callable[[list[np.ndarray]], np.ndarray],
) -> pl.DataFrame:
    """Rows of FILLERS: the k likeliest words after each frame's beginning.

    `predict` gives nats over the vocabulary, a row per history of word ids. Marks of beginning and end and
    the unknown word are no words; those that are likelier than a filler are counted as dropped.
    """
    parsed = [parse_left_frame(text, name=name) for text in frames]
    histories = [np.array(encode_prompt(encoder, frame.before.rstrip(), name=name)) for frame in parsed]
    tokenizer = encoder.tokenizer
    no_words = {*tokenizer.all_special_ids, tokenizer.unk_token_id}
    rows: list[tuple[object, ...]] = []
    for begin in range(0, len(parsed), ROWS):
        part = slice(begin, begin + ROWS)
        for frame, logprobs in zip(parsed[part], predict(histories[part]), strict=True):
            rows += _rank(frame.text, logprobs, tokenizer.convert_ids_to_tokens, no_words, k)
    return pl.DataFrame(rows, schema=FILLERS, orient="row")


def _rank(
    frame: str, logprobs: np.ndarray, name_ids: Callable[[list[int]], list[str]], no_words: set[int], k: int
) -> list[tuple[object, ...]]:
    most = min(k + len(no_words), len(logprobs))
    likeliest = np.argpartition(-logprobs, most - 1)[:most]
    rows: list[tuple[object, ...]] = []
    dropped = 0
    for place in likeliest[np.lexsort((likeliest, -logprobs[likeliest]))].tolist():
        word = name_ids([place])[0]
        if place in no_words or word == UNKNOWN:
            dropped += 1
        elif len(rows) < k:
            rows.append((frame, len(rows) + 1, word, word, float(logprobs[place]), dropped))
    return rows
