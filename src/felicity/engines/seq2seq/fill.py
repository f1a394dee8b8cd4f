"""Blanks filled by encoder-decoders, as gaps in their source.

T5 answers a sentinel with the sentinel and the missing text; its first token after that is the filler. BART
repeats the whole text; the filler is its token at the blank. A word of several tokens has the product
of their probabilities; the probability that it ends there is not included.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from felicity.engines.runtime import (
    TokenScorer,
    build_candidates,
    pair_candidates,
    parse_frame,
    place_blanks,
    place_words,
    rank_fillers,
    refuse_long_frames,
)
from felicity.engines.seq2seq.forward import Seq2SeqPredictor, SpecialTokens
from felicity.engines.tokenizing import Encoder


def fill_gaps(
    predictor: Seq2SeqPredictor,
    encoder: Encoder,
    layout: SpecialTokens,
    frames: Sequence[str],
    *,
    k: int,
    name: str,
) -> pl.DataFrame:
    """Rows of FILLERS."""
    parsed = [parse_frame(text) for text in frames]
    filled = place_blanks(encoder, parsed)
    refuse_long_frames(filled, encoder, name=name, around=1 + len(layout.behind))
    jobs = [layout.fill(filled.ids(i), int(filled.begin[i]), int(filled.end[i])) for i in range(len(parsed))]
    tables: list[pl.DataFrame] = [pl.DataFrame()] * len(jobs)
    for i, logprobs in predictor.predict(jobs):
        tables[i] = rank_fillers(parsed[i].text, logprobs, encoder.tokenizer, k=k)
    return pl.concat(tables)


def score_gaps(
    predictor: Seq2SeqPredictor,
    encoder: Encoder,
    layout: SpecialTokens,
    frames: Sequence[str],
    candidates: Sequence[Sequence[str]],
    *,
    name: str,
) -> pl.DataFrame:
    """Rows of CANDIDATES."""
    parsed, words = pair_candidates(frames, candidates)
    filled = place_words(encoder, parsed, words)
    refuse_long_frames(filled, encoder, name=name, around=1 + len(layout.behind))
    spans = [(int(filled.begin[i]), int(filled.end[i])) for i in range(len(words))]
    jobs = [layout.fill(filled.ids(i), *span) for i, span in enumerate(spans)]
    sums = [
        float(records["logprob"].sum(dtype=np.float64)) for records in predictor.score(jobs, TokenScorer())
    ]
    pieces = [
        encoder.tokenizer.convert_ids_to_tokens(filled.ids(i)[begin:end].tolist())
        for i, (begin, end) in enumerate(spans)
    ]
    return build_candidates(parsed, words, pieces, sums)
