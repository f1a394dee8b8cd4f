"""Models of words: blanks filled with the likeliest words of the vocabulary, and texts continued."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from felicity.core.engine import Sampling
from felicity.core.errors import NotPossible
from felicity.core.schemas import CONTINUATIONS, FILLERS
from felicity.engines.causal.fill import encode_prompt, parse_left_frame
from felicity.engines.runtime import cut_at_stop, draw, find_limits, stream_for
from felicity.engines.tokenizing import Encoder
from felicity.engines.words import BEGIN, END, UNKNOWN, join_words

# Histories whose whole vocabulary is held at once.
ROWS = 256
# Nats over the vocabulary after each history of word ids, one row each.
Predict = Callable[[list[np.ndarray]], np.ndarray]


def fill_words(
    encoder: Encoder,
    frames: Sequence[str],
    *,
    k: int,
    name: str,
    predict: Predict,
) -> pl.DataFrame:
    """Rows of FILLERS: the k likeliest words after each frame's beginning.

    `predict` gives nats over the vocabulary, one row per history of word ids. Marks of beginning and end and
    the unknown word are not words; those that are likelier than a filler are counted as dropped.
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
    for token in likeliest[np.lexsort((likeliest, -logprobs[likeliest]))].tolist():
        word = name_ids([token])[0]
        if token in no_words or word == UNKNOWN:
            dropped += 1
        elif len(rows) < k:
            rows.append((frame, len(rows) + 1, word, word, float(logprobs[token]), dropped))
    return rows


def continue_words(
    encoder: Encoder, prompts: Sequence[str], *, sampling: Sampling, name: str, predict: Predict
) -> pl.DataFrame:
    """Rows of CONTINUATIONS: each prompt continued word by word, to the end of the sentence at most.

    The unknown word is never written: the probabilities of the other words are used without it.

    Raises NotPossible for beam search, BadInput for a prompt that leaves no room for a continuation.
    """
    if sampling.beams > 1:
        raise NotPossible(f"'{name}' has no beam search; leave the beams out.")
    histories = [np.array(encode_prompt(encoder, text.rstrip(), name=name)) for text in prompts]
    limits = find_limits(histories, sampling, continues=True)
    rows = []
    for prompt, history, limit in zip(prompts, histories, limits, strict=True):
        for sample in range(sampling.samples):
            stream = stream_for(sampling.seed, prompt, sample)
            shorter = replace(sampling, tokens=limit)
            rows.append((prompt, sample, *_continue(encoder, prompt, history, shorter, stream, predict)))
    return pl.DataFrame(rows, schema=CONTINUATIONS, orient="row")


def _continue(
    encoder: Encoder,
    prompt: str,
    history: np.ndarray,
    sampling: Sampling,
    stream: np.random.Generator,
    predict: Predict,
) -> tuple[str, int, str]:
    """The continuation, its number of words, and why it ended."""
    tokenizer = encoder.tokenizer
    end = tokenizer.convert_tokens_to_ids(END) if tokenizer.eos_token else -1
    never = [tokenizer.convert_tokens_to_ids(word) for word in (BEGIN, UNKNOWN)]
    words: list[str] = []
    while len(words) < sampling.tokens:
        nats = predict([history])[0].astype(np.float64)
        nats[[token for token in never if 0 <= token != end]] = -np.inf
        chosen = _choose(nats, sampling, stream)
        if chosen == end:
            return join_words(words, after=prompt), len(words), "end"
        history = np.append(history, chosen)
        words.append(tokenizer.convert_ids_to_tokens([chosen])[0])
        text = join_words(words, after=prompt)
        if any(mark in text for mark in sampling.stop):
            return cut_at_stop(text, sampling.stop), len(words), "stop"
    return join_words(words, after=prompt), len(words), "limit"


def _choose(nats: np.ndarray, sampling: Sampling, stream: np.random.Generator) -> int:
    if sampling.temperature == 0:
        return int(np.argmax(nats))
    scaled = np.exp((nats - nats.max()) / sampling.temperature)
    return draw(scaled / scaled.sum(), sampling.top_p, stream)
