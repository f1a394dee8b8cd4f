"""The likeliest words for every frame of a cloze dataset, from an engine that can fill blanks."""

import polars as pl

from felicity.core.schemas import CLOZE
from felicity.run.model import Model
from felicity.run.store import frame_keys

# Where the blank is, and the full stop that models which read both sides see behind it.
FRAME = pl.format("{} ___.", "context_text").alias("frame")
K = 20


def find_frames(items: pl.DataFrame) -> list[str]:
    """The frames of a dataset's stimuli, equal ones once."""
    return items.select(FRAME).to_series().unique(maintain_order=True).to_list()


def read_cloze(lm: Model, items: pl.DataFrame, *, k: int = K) -> pl.DataFrame:
    """Rows of CLOZE: the k likeliest words for the frame of every stimulus, and the target's rank among them.

    The stimulus is the frame (`context_text`) and its target (`text`). All frames must be filled already.
    """
    framed = items.with_columns(FRAME)
    frames = find_frames(items)
    filled = lm.store.read_fillers(frame_keys(frames, k=k), frames)
    words = (
        filled.sort("rank")
        .group_by("frame", maintain_order=True)
        .agg(pl.col("filler").alias("predictions"), pl.col("dropped").max())
    )
    whole = framed.join(words, on="frame", how="left", maintain_order="left").rename({"text": "target"})
    place = pl.struct("predictions", "target").map_elements(
        lambda row: (
            row["predictions"].index(row["target"]) + 1 if row["target"] in row["predictions"] else None
        ),
        return_dtype=pl.Int64,
    )
    return whole.with_columns(place.alias("rank")).select(
        pl.col(name).cast(dtype) for name, dtype in CLOZE.items()
    )
