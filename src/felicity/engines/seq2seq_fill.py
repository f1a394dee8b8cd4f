"""Blanks filled by encoder-decoders, as gaps in what they read.

T5 answers a sentinel with the sentinel and what belongs there; its first token after that is the filler. BART
writes everything over again; the filler is the token it writes at the blank. A word of several tokens
has the product of their probabilities; whether it ends there is not asked.
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
from felicity.engines.reading import Reader
from felicity.engines.seq2seq_jobs import Layout
from felicity.engines.seq2seq_reading import Seq2SeqReader


def fill_gaps(
    reader: Seq2SeqReader, encoder: Encoder, layout: Layout, frames: Sequence[str], *, k: int, name: str
) -> pl.DataFrame:
    """Rows of FILLERS."""
    parsed = [parse_frame(text) for text in frames]
    filled = place_blanks(encoder, parsed)
    refuse_long_frames(filled, encoder, name=name, around=1 + len(layout.behind))
    jobs = [layout.fill(filled.ids(i), int(filled.begin[i]), int(filled.end[i])) for i in range(len(parsed))]
    tables: list[pl.DataFrame] = [pl.DataFrame()] * len(jobs)
    for i, logprobs in reader.predict(jobs):
        tables[i] = rank_fillers(parsed[i].text, logprobs, encoder.tokenizer, k=k)
    return pl.concat(tables)


def score_gaps(
    reader: Seq2SeqReader,
    encoder: Encoder,
    layout: Layout,
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
    sums = [float(found["logprob"].sum(dtype=np.float64)) for found in reader.score(jobs, Reader())]
    pieces = [
        encoder.tokenizer.convert_ids_to_tokens(filled.ids(i)[begin:end].tolist())
        for i, (begin, end) in enumerate(spans)
    ]
    return build_candidates(parsed, words, pieces, sums)
