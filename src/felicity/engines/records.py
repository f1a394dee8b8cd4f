"""What was read of the tokens as a table: one row a request, lists of one entry a token."""

from typing import Any

import numpy as np
import polars as pl

from felicity.core.schemas import TOKENS
from felicity.engines.encoding import Encoded

# Columns beyond TOKENS that come only where they were asked for.
FURTHER: dict[str, pl.DataType] = {
    "rank": pl.List(pl.UInt32()),
    "entropy": pl.List(pl.Float32()),
    "boundary": pl.List(pl.Float32()),
    "top_tokens": pl.List(pl.List(pl.String())),
    "top_logprob": pl.List(pl.List(pl.Float32())),
}


def build_tokens(
    encoded: Encoded, sequences: np.ndarray, records: np.ndarray, tokenizer: Any
) -> pl.DataFrame:
    """Rows of TOKENS for these sequences; `records` are those of their wanted tokens, in order."""
    places = encoded.places(sequences, encoded.own)
    scored = encoded.wanted[places]
    row = np.repeat(np.arange(len(sequences)), encoded.count(encoded.own)[sequences])
    columns: dict[str, Any] = {
        "row": row,
        "tokens": tokenizer.convert_ids_to_tokens(encoded.ids[places].tolist()),
        "start": encoded.start[places],
        "end": encoded.end[places],
    }
    for name in records.dtype.names or ():
        if name in ("logprob", "rank", "entropy", "boundary"):
            value = np.full(len(places), np.nan, dtype=np.float32)
            value[scored] = records[name]
            columns[name] = pl.Series(value).fill_nan(None)
        elif name == "top_token":
            pieces = iter(tokenizer.convert_ids_to_tokens(records[name].ravel().tolist()))
            top = records[name].shape[1]
            columns["top_tokens"] = [
                [next(pieces) for _ in range(top)] if known else None for known in scored
            ]
        else:
            values = iter(records[name].tolist())
            columns[name] = [next(values) if known else None for known in scored]
    flat = pl.DataFrame(columns, schema_overrides={"top_logprob": pl.List(pl.Float32())})
    lists = flat.group_by("row", maintain_order=True).agg(pl.exclude("row"))
    requests = pl.Series("request", [encoded.request[i] for i in sequences])
    schema = TOKENS | {name: kind for name, kind in FURTHER.items() if name in columns}
    named = lists.with_columns(requests.gather(lists["row"]))
    return named.select(pl.col(name).cast(kind) for name, kind in schema.items())
