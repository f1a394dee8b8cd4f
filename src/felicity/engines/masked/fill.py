"""Blanks filled by models that predict masked tokens.

A word of several tokens gets one mask per token, and the masks are replaced from left to right:
log p(first | all masked) + log p(second | first, the rest masked) + ... Words with the same number of
tokens share their first input; words with the same first tokens share the next ones too.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from felicity.engines.runtime import (
    MaskedCopies,
    MaskedScorer,
    TokenScorer,
    build_candidates,
    normalize_logits,
    pair_candidates,
    parse_frame,
    place_blanks,
    place_words,
    rank_fillers,
    refuse_long_frames,
)
from felicity.engines.tokenizing import Encoder


def fill_masked(
    masked_scorer: MaskedScorer,
    encoder: Encoder,
    frames: Sequence[str],
    *,
    lead: np.ndarray,
    left: bool,
    k: int,
    name: str,
) -> pl.DataFrame:
    """Rows of FILLERS; with `left` the blank is predicted from the text before it alone."""
    parsed = [parse_frame(text) for text in frames]
    filled = place_blanks(encoder, parsed)
    refuse_long_frames(filled, encoder, name=name)
    masks = np.array([masked_scorer.mask_id], dtype=np.int64)
    sequences = [
        np.concatenate([lead, filled.ids(i)[: filled.begin[i]], masks, filled.ids(i)[filled.end[i] :]])
        for i in range(len(parsed))
    ]
    begin = filled.begin + len(lead)
    length = begin + 1 if left else np.array([len(ids) for ids in sequences])
    copies = MaskedCopies(
        np.arange(len(parsed)), begin, begin + 1, length, np.full(len(parsed), masked_scorer.mask_id)
    )
    tables: list[pl.DataFrame] = [pl.DataFrame()] * len(parsed)
    for members, row, logits in masked_scorer.predict(sequences, copies):
        for member, logprobs in zip(members, normalize_logits(logits)[row], strict=True):
            tables[member] = rank_fillers(parsed[member].text, logprobs, encoder.tokenizer, k=k)
    return pl.concat(tables)


def score_masked(
    masked_scorer: MaskedScorer,
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
    position = filled.begin[sequence] + step
    shift = len(lead)
    copies = MaskedCopies(
        sequence=sequence,
        begin=position + shift,
        end=(position + 1 if left else filled.end[sequence]) + shift,
        length=(position + 1 if left else filled.encoded.lengths[sequence]) + shift,
        target=filled.encoded.ids[filled.encoded.bounds[sequence] + position],
    )
    sequences = [np.concatenate([lead, filled.ids(i)]) for i in range(len(words))]
    records = masked_scorer.score(sequences, copies, TokenScorer())
    sums = np.bincount(sequence, weights=records["logprob"], minlength=len(words))
    pieces = [
        encoder.tokenizer.convert_ids_to_tokens(filled.ids(i)[filled.begin[i] : filled.end[i]].tolist())
        for i in range(len(words))
    ]
    return build_candidates(parsed, words, pieces, sums.tolist())
