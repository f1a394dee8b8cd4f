"""Scored prompts as rows of the tables that an engine hands on."""

from typing import Any

import numpy as np
import polars as pl

from felicity.core.schemas import ENCODINGS, TOKENS
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.pretrained import build_encodings
from felicity.engines.served.dialects import Reading

Row = dict[str, Any]


def count_tokens(encoded: Encoded, encoder: Encoder) -> pl.DataFrame:
    """One row of ENCODINGS per prompt."""
    tokenizer, begin = encoder.tokenizer, encoder.policy.bos
    named = begin not in ("none", "tokenizer")
    before = named and tokenizer.convert_tokens_to_ids(begin) not in tokenizer.all_special_ids
    return build_encodings(encoded, tokenizer, window=encoder.window, before=int(before))


def unknown_encodings(prompts: pl.DataFrame) -> pl.DataFrame:
    """Rows of ENCODINGS whose counts are null: only the server knows its tokens, and tells when it scores."""
    nothing = [
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in ENCODINGS.items() if name != "request"
    ]
    return prompts.select("request", *nothing)


def ids_of(encoded: Encoded, place: int) -> list[int]:
    """The token ids of one prompt."""
    found: list[int] = encoded.ids[encoded.bounds[place] : encoded.bounds[place + 1]].tolist()
    return found


def build_row(encoded: Encoded, place: int, reading: Reading, tokenizer: Any) -> Row:
    """One row of TOKENS from ids that were scored."""
    part = slice(encoded.bounds[place], encoded.bounds[place + 1])
    own = np.flatnonzero(encoded.own[part])
    wanted = encoded.wanted[part]
    return {
        "request": encoded.request[place],
        "tokens": tokenizer.convert_ids_to_tokens(encoded.ids[part][own].tolist()),
        "start": encoded.start[part][own].tolist(),
        "end": encoded.end[part][own].tolist(),
        "logprob": [reading.logprobs[i] if wanted[i] else None for i in own],
    }


def build_tokens(rows: list[Row]) -> pl.DataFrame:
    """Rows of TOKENS as a frame."""
    return pl.DataFrame(rows, schema=TOKENS)
