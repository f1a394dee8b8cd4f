"""Prompts in pieces of bounded memory, those that begin alike together."""

from collections.abc import Iterator

import numpy as np
import polars as pl

PROMPTS_AT_ONCE = 8192
CHARACTERS_AT_ONCE = 2_000_000


def cut_chunks(prompts: pl.DataFrame, *, join: str) -> Iterator[pl.DataFrame]:
    """All prompts, sorted by what the model reads, a piece at a time; the same way every time.

    >>> prompts = pl.DataFrame({"request": ["1", "2"], "context_text": [None, None], "text": ["b", "a"]})
    >>> [chunk["text"].to_list() for chunk in cut_chunks(prompts, join=" ")]
    [['a', 'b']]
    """
    context = pl.col("context_text")
    begins = pl.when(context.fill_null("") == "").then(pl.lit("")).otherwise(context + join)
    whole = (begins + pl.col("text")).alias("whole")
    frame = prompts.with_columns(whole).sort("whole", maintain_order=True)
    size = frame["whole"].str.len_chars().cast(pl.Int64).cum_sum().to_numpy()
    frame = frame.drop("whole")
    begin = 0
    while begin < len(frame):
        before = size[begin - 1] if begin else 0
        room = int(np.searchsorted(size, before + CHARACTERS_AT_ONCE, side="right"))
        end = max(begin + 1, min(room, begin + PROMPTS_AT_ONCE))
        yield frame[begin:end]
        begin = end
