"""Scored prompts as rows of the tables that an engine hands on."""

from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import ENCODINGS, TOKENS
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.served.dialects import Reading
from felicity.engines.served.pieces import find_spans

Row = dict[str, Any]


def build_encodings(encoded: Encoded, encoder: Encoder) -> pl.DataFrame:
    """One row of ENCODINGS per prompt."""
    n_own = encoded.count(encoded.own)
    unknown = encoder.tokenizer.unk_token_id
    is_unknown = encoded.own & (encoded.ids == (-1 if unknown is None else unknown))
    before = int(encoder.policy.bos not in ("none", "tokenizer"))
    columns = {
        "n_tokens": n_own,
        "n_unscored": n_own - encoded.count(encoded.wanted),
        "n_across": encoded.n_across,
        "n_unknown": encoded.count(is_unknown),
        "n_context": encoded.lengths - n_own - before,
        "n_dropped": encoded.n_dropped,
        "n_over": np.maximum(encoded.lengths - encoder.window, 0),
    }
    return pl.DataFrame({"request": encoded.request} | columns, schema=ENCODINGS)


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


def build_text_row(request: str, whole: str, begin: int, reading: Reading) -> Row:
    """One row of TOKENS from a text that the server tokenized; its scored part begins at `begin`.

    Raises BadInput where the tokens cannot be placed in the text.
    """
    for skipped in (0, 1):
        spans = find_spans(whole, reading.tokens[skipped:])
        if spans is not None:
            break
    else:
        raise BadInput(
            f"The tokens that the server made of '{request}' do not make up its text, so they cannot be "
            "placed; name the model's tokenizer with --tokenizer."
        )
    own = [place for place, span in enumerate(spans) if span[1] > begin]
    if not own:
        raise BadInput(f"The text of '{request}' has no token to score; remove it or fill it in.")
    return {
        "request": request,
        "tokens": [reading.tokens[skipped + place] for place in own],
        "start": [max(0, spans[place][0] - begin) for place in own],
        "end": [spans[place][1] - begin for place in own],
        "logprob": [reading.logprobs[skipped + place] for place in own],
    }


def build_tokens(rows: list[Row]) -> pl.DataFrame:
    """Rows of TOKENS as a frame."""
    return pl.DataFrame(rows, schema=TOKENS)
