"""Rows of TOKENS from a server's answers, and prompts scored one token at a time, as llama.cpp needs.

Some servers give the probability only of what they generate. A bias makes a token certain to come next, and
the server reports its log-probability before the bias: one request per token, exact but slow. Whether a
server reports the value from before the bias is tested, not assumed.
"""

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from felicity.core.casing import apply_casing
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS, TOKENS
from felicity.engines.runtime import build_encodings
from felicity.engines.served.client import BadResponse, Client
from felicity.engines.served.connection import Connection
from felicity.engines.served.probing import try_one
from felicity.engines.served.protocols import (
    Dialect,
    PromptScores,
    find_choice,
    find_spans,
    next_body,
    read_number,
    same_tokens,
)
from felicity.engines.tokenizing import Encoded, Encoder

Row = dict[str, Any]
# More than logits differ from each other.
BIAS = 100.0
TRIED = 3
# Nats by which the same value may differ between two requests.
SAME = 0.01
FORCED = Dialect(method="forced")


def count_prompt_tokens(encoded: Encoded, encoder: Encoder) -> pl.DataFrame:
    """One row of ENCODINGS per prompt."""
    tokenizer = encoder.tokenizer
    counted = encoder.begin in tokenizer.all_special_ids
    before = 0 if counted else encoder.count_begins(encoded)
    return build_encodings(encoded, tokenizer, window=encoder.window, before=before)


def unknown_encodings(prompts: pl.DataFrame) -> pl.DataFrame:
    """Rows of ENCODINGS with null counts: only the server knows its tokens, and reports them when scoring."""
    nothing = [
        pl.lit(None, dtype=dtype).alias(name) for name, dtype in ENCODINGS.items() if name != "request"
    ]
    return prompts.select("request", *nothing)


def ids_of(encoded: Encoded, place: int) -> list[int]:
    """The token ids of one prompt."""
    ids: list[int] = encoded.ids[encoded.bounds[place] : encoded.bounds[place + 1]].tolist()
    return ids


def refuse_other_tokens(ids: list[int], scores: PromptScores, tokenizer: Any, *, url: str) -> None:
    """Refuse a server that names other tokens than it was sent: it scored another text.

    Raises NotPossible.
    """
    if not scores.tokens:
        return
    sent = tokenizer.convert_ids_to_tokens(ids)
    # Servers write a begin token in different ways.
    begin = 1 if ids[0] in tokenizer.all_special_ids else 0
    pairs = ((sent[begin:], scores.tokens[begin:]), (sent, scores.tokens))
    if len(sent) != len(scores.tokens) or not any(same_tokens(*pair) for pair in pairs):
        theirs, ours = (" ".join(map(str, tokens[:4]))[:80] for tokens in (scores.tokens, sent))
        raise NotPossible(
            f"The server at {url} scored other tokens than it was sent ({theirs!r} for {ours!r}); it may "
            "add a begin token of its own: switch that off, or leave out --tokenizer."
        )


def build_row(encoded: Encoded, place: int, scores: PromptScores, tokenizer: Any) -> Row:
    """One row of TOKENS for a prompt sent as ids."""
    part = slice(encoded.bounds[place], encoded.bounds[place + 1])
    targets = np.flatnonzero(encoded.of_text[part])
    wanted = encoded.wanted[part]
    return {
        "request": encoded.request[place],
        "tokens": tokenizer.convert_ids_to_tokens(encoded.ids[part][targets].tolist()),
        "start": encoded.start[part][targets].tolist(),
        "end": encoded.end[part][targets].tolist(),
        "logprob": [scores.logprobs[i] if wanted[i] else None for i in targets],
    }


def build_served_tokens(rows: list[Row]) -> pl.DataFrame:
    """Rows of TOKENS as a frame."""
    return pl.DataFrame(rows, schema=TOKENS)


def build_whole(context: str, text: str, policy: dict[str, str]) -> tuple[str, int]:
    """Context and text as they are sent, and where the text starts.

    >>> build_whole("It rained.", "She left.", {"join": " ", "casing": "keep"})
    ('It rained. She left.', 11)
    """
    before = context + policy["join"] if context else ""
    whole = before + text
    return apply_casing(whole, policy["casing"]), len(before)


def resolve_text_policy(policy: Policy) -> Policy:
    """The policy for prompts sent as texts: special tokens are left to the server.

    Raises NotPossible if the policy asks for what only token ids can do.
    """
    asked = {
        "--bos": policy.bos not in ("auto", "tokenizer"),
        "--eos": policy.eos != "none",
        "--overflow": policy.overflow != "error",
        "--compat": policy.seam != "offsets",
        "the policy first='refuse'": policy.first != "skip",
    }
    refused = [option for option, given in asked.items() if given]
    if refused:
        raise NotPossible(
            f"This server accepts or reports no token ids, so {refused[0]} is not possible; name the model's "
            "tokenizer with --tokenizer, or omit it."
        )
    return policy.replace(bos="tokenizer")


def build_text_row(request: str, whole: str, begin: int, scores: PromptScores) -> Row:
    """One row of TOKENS for a prompt sent as text; its scored part starts at `begin`.

    Raises BadInput if the tokens do not make up the text.
    """
    for skipped in (0, 1):
        spans = find_spans(whole, scores.tokens[skipped:])
        if spans is not None:
            break
    else:
        raise BadInput(
            f"The server's tokens for '{request}' do not make up its text, so they cannot be "
            "placed; name the model's tokenizer with --tokenizer."
        )
    targets = [place for place, span in enumerate(spans) if span[1] > begin]
    if not targets:
        raise BadInput(f"The text of '{request}' has no token to score; remove it or add a text.")
    return {
        "request": request,
        "tokens": [scores.tokens[skipped + place] for place in targets],
        "start": [max(0, spans[place][0] - begin) for place in targets],
        "end": [spans[place][1] - begin for place in targets],
        "logprob": [scores.logprobs[skipped + place] for place in targets],
    }


def find_forced(connection: Connection, prompt: list[int]) -> Dialect | None:
    """The dialect of this module, if the server supports it: a forced token must keep its log-probability."""
    ids = try_one(connection, next_body(connection.model, prompt, TRIED), _read_ids)
    if not ids or len(ids) < TRIED:
        return None
    token, logprob = ids[-1]
    value = try_one(connection, _body(connection.model, prompt, token), partial(_read_forced, token=token))
    return FORCED if value is not None and abs(value - logprob) < SAME else None


async def read_forced(client: Client, model: str, prompt: list[int], first: int) -> PromptScores:
    """The log-probabilities of a prompt's tokens from `first` on.

    Raises NotPossible if the server withholds one.
    """
    logprobs: list[float | None] = [None] * max(1, first)
    for position in range(len(logprobs), len(prompt)):
        token = prompt[position]
        value = await client.ask(
            f"{client.url}/completions",
            _body(model, prompt[:position], token),
            read=partial(_read_forced, token=token),
            tokens=position + 1,
        )
        logprobs.append(value)
    return PromptScores(logprobs=logprobs, tokens=[])


def _body(model: str, prompt: list[int], token: int) -> dict[str, Any]:
    return next_body(model, prompt, 1) | {"logit_bias": {str(token): BIAS}}


def _read_forced(payload: Any, *, token: int) -> float:
    logprobs = find_choice(payload)["logprobs"]
    if logprobs is None:
        # llama.cpp withholds tokens that start a character without ending it.
        raise NotPossible(
            f"The server does not give the log-probability of token {token}, which is only part of a "
            "character; serve the model with vLLM, or give its file to -m."
        )
    entry = logprobs["content"][0]
    if entry["id"] != token:
        raise BadResponse(f"token {entry['id']} instead of the forced {token}")
    return read_number(entry["logprob"])


def _read_ids(payload: Any) -> list[tuple[int, float]]:
    rows = find_choice(payload)["logprobs"]["content"][0]["top_logprobs"]
    return [(int(row["id"]), read_number(row["logprob"])) for row in rows]
