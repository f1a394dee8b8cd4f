"""Blanks filled by models that predict hidden tokens.

A word of several tokens gets as many hidden places as it has tokens, which are opened from left to
right: log p(first | all hidden) + log p(second | first, the rest hidden) + ... Words of equally many
tokens share their first input, words that begin alike the next ones too.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from felicity.engines.encoding import Encoder
from felicity.engines.frames import (
    build_candidates,
    pair_candidates,
    parse_frame,
    place_blanks,
    place_words,
    rank_fillers,
    refuse_long_frames,
)
from felicity.engines.hiding import Copies, Hider, normalize
from felicity.engines.reading import Reader


def fill_hidden(
    hider: Hider, encoder: Encoder, frames: Sequence[str], *, lead: np.ndarray, left: bool, k: int, name: str
) -> pl.DataFrame:
    """Rows of FILLERS; with `left` the blank is predicted from what stands before it alone."""
    parsed = [parse_frame(text) for text in frames]
    filled = place_blanks(encoder, parsed)
    refuse_long_frames(filled, encoder, name=name)
    hidden = np.array([hider.mask], dtype=np.int64)
    sequences = [
        np.concatenate([lead, filled.ids(i)[: filled.begin[i]], hidden, filled.ids(i)[filled.end[i] :]])
        for i in range(len(parsed))
    ]
    begin = filled.begin + len(lead)
    length = begin + 1 if left else np.array([len(ids) for ids in sequences])
    copies = Copies(np.arange(len(parsed)), begin, begin + 1, length, np.full(len(parsed), hider.mask))
    tables: list[pl.DataFrame] = [pl.DataFrame()] * len(parsed)
    for members, row, logits in hider.predict(sequences, copies):
        for member, logprobs in zip(members, normalize(logits)[row], strict=True):
            tables[member] = rank_fillers(parsed[member].text, logprobs, encoder.tokenizer, k=k)
    return pl.concat(tables)


def score_hidden(
    hider: Hider,
    encoder: Encoder,
    frames: Sequence[str],
    candidates: Sequence[Sequence[str]],
    *,
    lead: np.ndarray,
    left: bool,
    name: str,
) -> pl.DataFrame:
    """Rows of CANDIDATES."""
    parsed, words = pair_candidates(frames, candidates)
    filled = place_words(encoder, parsed, words)
    refuse_long_frames(filled, encoder, name=name)
    sizes = filled.end - filled.begin
    sequence = np.repeat(np.arange(len(words)), sizes)
    step = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = filled.begin[sequence] + step
    shift = len(lead)
    copies = Copies(
        sequence=sequence,
        begin=place + shift,
        end=(place + 1 if left else filled.end[sequence]) + shift,
        length=(place + 1 if left else filled.encoded.lengths[sequence]) + shift,
        target=filled.encoded.ids[filled.encoded.bounds[sequence] + place],
    )
    sequences = [np.concatenate([lead, filled.ids(i)]) for i in range(len(words))]
    records = hider.score(sequences, copies, Reader())
    sums = np.bincount(sequence, weights=records["logprob"], minlength=len(words))
    pieces = [
        encoder.tokenizer.convert_ids_to_tokens(filled.ids(i)[filled.begin[i] : filled.end[i]].tolist())
        for i in range(len(words))
    ]
    return build_candidates(parsed, words, pieces, sums.tolist())
