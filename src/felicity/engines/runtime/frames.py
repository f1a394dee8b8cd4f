"""Cloze frames: the blank, the tokens of words placed in it, and the most probable fillers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import CANDIDATES, FILLERS, PROMPTS
from felicity.engines.runtime.pretrained import build_encodings, refuse_long_sequences
from felicity.engines.tokenizing import Encoded, Encoder

BLANK = re.compile(r"_{3,}")
# Words placed in a blank to find its tokens; the first that shares no token with its neighbours is used.
PLACEHOLDERS = ("it", "the", "one", "A", "x")


@dataclass(frozen=True)
class ClozeFrame:
    """A text with a blank: the text before it and after it."""

    text: str
    before: str
    after: str


def parse_frame(text: str) -> ClozeFrame:
    """A text with its blank, written `___`.

    >>> parse_frame("A robin is a ___.").after
    '.'

    Raises BadInput unless there is exactly one blank.
    """
    parts = BLANK.split(text)
    if len(parts) != 2:
        raise BadInput(f"The frame '{text}' has {len(parts) - 1} blanks; mark exactly one with ___.")
    return ClozeFrame(text, *parts)


@dataclass(frozen=True)
class Filled:
    """Frames with words in their blanks; the word of sequence i has the tokens `begin[i]:end[i]`."""

    encoded: Encoded
    begin: np.ndarray
    end: np.ndarray

    def ids(self, i: int) -> np.ndarray:
        """All tokens of sequence i."""
        return np.asarray(self.encoded.ids[self.encoded.bounds[i] : self.encoded.bounds[i + 1]])


def place_words(encoder: Encoder, frames: Sequence[ClozeFrame], words: Sequence[str]) -> Filled:
    """Each frame with its word in the blank.

    Raises BadInput if the vocabulary lacks the word, NotPossible if one of its tokens also holds characters
    of a neighbour.
    """
    filled, ragged = _place(encoder, frames, words)
    for i in np.flatnonzero(ragged)[:1]:
        raise NotPossible(
            f"In '{frames[i].text}' the word '{words[i]}' shares a token with the text beside the blank; "
            "put a space between them."
        )
    unknown = encoder.tokenizer.unk_token_id
    for i, word in enumerate(words):
        if unknown is not None and unknown in filled.ids(i)[filled.begin[i] : filled.end[i]]:
            raise BadInput(f"The model's vocabulary cannot spell '{word}'; leave it out.")
    return filled


def place_blanks(encoder: Encoder, frames: Sequence[ClozeFrame]) -> Filled:
    """Each frame with a placeholder in its blank, to be removed again.

    Raises NotPossible if every placeholder shares a token with a neighbour.
    """
    chosen = [PLACEHOLDERS[0]] * len(frames)
    for following in (*PLACEHOLDERS[1:], ""):
        filled, ragged = _place(encoder, frames, chosen)
        if not ragged.any():
            return filled
        chosen = [following if bad else word for word, bad in zip(chosen, ragged, strict=True)]
    worst = frames[int(np.flatnonzero(ragged)[0])]
    raise NotPossible(f"The blank of '{worst.text}' is part of a word; put spaces around it.")


def _place(encoder: Encoder, frames: Sequence[ClozeFrame], words: Sequence[str]) -> tuple[Filled, np.ndarray]:
    texts = [frame.before + word + frame.after for frame, word in zip(frames, words, strict=True)]
    names = [frame.text for frame in frames]
    prompts = pl.DataFrame(
        {"request": names, "context_text": [None] * len(texts), "text": texts}, schema=PROMPTS
    )
    encoded = replace(encoder, policy=encoder.policy.replace(eos="none")).encode(prompts)
    begin, end = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    ragged = np.zeros(len(texts), bool)
    for i, (frame, word) in enumerate(zip(frames, words, strict=True)):
        # The space before a word counts as the word's, whether or not its first token holds it.
        first, last = len(frame.before.rstrip()), len(frame.before) + len(word)
        span = slice(encoded.bounds[i], encoded.bounds[i + 1])
        starts, ends = encoded.start[span].astype(np.int64), encoded.end[span].astype(np.int64)
        inside = np.flatnonzero(encoded.of_text[span] & (ends > first) & (starts < last))
        if not len(inside):
            ragged[i] = True
            continue
        begin[i], end[i] = inside[0], inside[-1] + 1
        ragged[i] = starts[inside[0]] < first or ends[inside[-1]] > last
    return Filled(encoded, begin, end), ragged


def rank_fillers(frame: str, logprobs: np.ndarray, tokenizer: Any, *, k: int) -> pl.DataFrame:
    """The k most probable tokens, each decoded alone and stripped; empty ones are skipped and counted."""
    rows: list[tuple[Any, ...]] = []
    dropped = 0
    for token in np.argsort(-logprobs, kind="stable").tolist():
        if len(rows) == k:
            break
        text = tokenizer.decode([token]).strip() if token < len(tokenizer) else ""
        if not text:
            dropped += 1
            continue
        piece = tokenizer.convert_ids_to_tokens(token)
        rows.append((frame, len(rows) + 1, text, piece, float(logprobs[token]), dropped))
    return pl.DataFrame(rows, schema=FILLERS, orient="row")


def pair_candidates(
    frames: Sequence[str], candidates: Sequence[Sequence[str]]
) -> tuple[list[ClozeFrame], list[str]]:
    """Every frame with each of its candidates.

    Raises BadInput if a frame has no candidates or an empty one.
    """
    pairs: list[tuple[ClozeFrame, str]] = []
    for text, words in zip(frames, candidates, strict=True):
        frame = parse_frame(text)
        if not words or any(not word.strip() for word in words):
            raise BadInput(f"The frame '{text}' has no candidates or an empty one; give words.")
        pairs += [(frame, word.strip()) for word in words]
    return [frame for frame, _ in pairs], [word for _, word in pairs]


def build_candidates(
    frames: Sequence[ClozeFrame], words: Sequence[str], tokens: list[list[str]], logprob: Sequence[float]
) -> pl.DataFrame:
    """Rows of CANDIDATES."""
    columns = {"frame": [frame.text for frame in frames], "candidate": list(words)}
    return pl.DataFrame(
        columns | {"tokens": tokens, "logprob": [float(value) for value in logprob]}, schema=CANDIDATES
    )


def refuse_long_frames(filled: Filled, encoder: Encoder, *, name: str, around: int = 0) -> None:
    """Refuse frames that do not fit into the window together with `around` further tokens.

    Raises BadInput.
    """
    encodings = build_encodings(filled.encoded, encoder.tokenizer, window=encoder.window - around)
    refuse_long_sequences(encodings, window=encoder.window, name=name)
