"""Scored sequences as rows of the tables that an engine hands on."""

import numpy as np
import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.schemas import ENCODINGS, TOKENS, conform
from felicity.engines.encoding import Encoded, Encoder


def build_encodings(encoded: Encoded, encoder: Encoder, *, context: np.ndarray | None = None) -> pl.DataFrame:
    """One row of ENCODINGS per sequence; `context` counts its words where the sequence does not hold them."""
    n_own = encoded.count(encoded.own)
    inner = encoded.end > encoded.start
    is_unknown = encoded.own & inner & (encoded.ids == encoder.tokenizer.unk_token_id)
    before = int(encoder.policy.bos not in ("none", "tokenizer"))
    columns = {
        "n_tokens": n_own,
        "n_unscored": n_own - encoded.count(encoded.wanted),
        "n_across": encoded.n_across,
        "n_unknown": encoded.count(is_unknown),
        "n_context": encoded.lengths - n_own - before if context is None else context,
        "n_dropped": encoded.n_dropped,
        "n_over": np.maximum(encoded.lengths - encoder.window, 0),
    }
    return pl.DataFrame({"request": encoded.request} | columns, schema=ENCODINGS)


def build_tokens(
    encoded: Encoded, encoder: Encoder, sequences: np.ndarray, logprobs: np.ndarray, *, name: str
) -> pl.DataFrame:
    """Rows of TOKENS for these sequences; `logprobs` are of their wanted tokens, flat, in their order.

    Raises NotPossible where one is no number.
    """
    if not np.isfinite(logprobs).all():
        raise NotPossible(f"'{name}' gave a log-probability that is no number; are its files whole?")
    value = np.full(len(encoded.ids), np.nan, dtype=np.float32)
    value[encoded.places(sequences, encoded.wanted)] = logprobs
    places = encoded.places(sequences, encoded.own)
    flat = pl.DataFrame(
        {
            "row": np.repeat(np.arange(len(sequences)), encoded.count(encoded.own)[sequences]),
            "tokens": encoder.tokenizer.convert_ids_to_tokens(encoded.ids[places].tolist()),
            "start": encoded.start[places],
            "end": encoded.end[places],
            "logprob": pl.Series(value[places]).fill_nan(None),
        }
    )
    lists = flat.group_by("row", maintain_order=True).agg("tokens", "start", "end", "logprob")
    requests = pl.Series("request", [encoded.request[i] for i in sequences])
    return conform(lists.with_columns(requests.gather(lists["row"])), TOKENS)
