"""Filling blanks and continuing texts with a served model."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import polars as pl

from felicity.core.engine import Sampling
from felicity.core.errors import BadInput, NotPossible
from felicity.core.ids import fingerprint
from felicity.core.schemas import CONTINUATIONS, FILLERS
from felicity.engines.causal import encode_prompt, parse_left_frame
from felicity.engines.served.client import BadResponse, Client, RequestRefused
from felicity.engines.served.connection import Connection
from felicity.engines.served.protocols import Prompt, find_choice, next_body, read_next
from felicity.engines.tokenizing import Encoder

# Tokens requested beyond k, since tokens that are not text by themselves are dropped.
SPARE = 5
SEEDS = 1 << 31

Next = list[tuple[str, float]]


@dataclass
class TopLimit:
    """How many of the most probable next tokens a server gives.

    vocabulary: its size, 0 if unknown. refused: the smallest number that was refused.
    """

    vocabulary: int = 0
    refused: int = sys.maxsize

    def request_sizes(self, k: int) -> tuple[int, ...]:
        """How many tokens to request, in turn, so that k remain."""
        return (k + SPARE, k) if k + SPARE < self.refused else (k,)


def request_fillers(
    connection: Connection, encoder: Encoder | None, frames: Sequence[str], *, k: int, top_limit: TopLimit
) -> pl.DataFrame:
    """Rows of FILLERS: the most probable tokens right after the text before the blank.

    Raises NotPossible if the server gives fewer than k.
    """
    parsed = [parse_left_frame(text, name=connection.model) for text in frames]
    prompts = [
        build_completion_prompt(encoder, frame.before.rstrip(), name=connection.model) for frame in parsed
    ]
    answers = connection.collect(
        prompts, partial(_request_next, model=connection.model, k=k, top_limit=top_limit)
    )
    rows = [
        row
        for frame, likeliest in zip(parsed, answers, strict=True)
        for row in _rank(frame.text, likeliest, k)
    ]
    return pl.DataFrame(rows, schema=FILLERS, orient="row")


async def _request_next(client: Client, prompt: Prompt, *, model: str, k: int, top_limit: TopLimit) -> Next:
    """The k most probable next tokens and, if the server gives them, a few more."""
    said = ""
    for asked in top_limit.request_sizes(k):
        body = next_body(model, prompt, asked)
        try:
            candidates = await client.ask(
                f"{client.url}/completions", body, read=read_next, tokens=len(prompt)
            )
        except RequestRefused as refused:
            if refused.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
            top_limit.refused = min(top_limit.refused, asked)
            said = refused.said
            continue
        if len(candidates) >= min(k, top_limit.vocabulary or k):
            # Servers add the token that they sampled to those requested.
            return candidates[:asked]
        said = f"it gave {len(candidates)} of {asked}"
        break
    raise NotPossible(
        f"The server at {client.url} does not give the {k} most probable tokens ({said}); request fewer "
        "with -k, or start vLLM with --max-logprobs."
    )


def _rank(frame: str, likeliest: Next, k: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    dropped = 0
    for token, logprob in likeliest:
        text = token.strip()
        if not text or "\ufffd" in text:
            dropped += 1
        elif len(rows) < k:
            rows.append((frame, len(rows) + 1, text, token, logprob, dropped))
    if not rows:
        raise NotPossible(
            f"None of the {len(likeliest)} most probable tokens from the server for '{frame}' is text by "
            "itself; request more with -k."
        )
    return rows


def request_continuations(
    connection: Connection, encoder: Encoder | None, prompts: Sequence[str], *, sampling: Sampling
) -> pl.DataFrame:
    """Rows of CONTINUATIONS; each is a request with its own seed, so that none depends on another.

    Raises NotPossible for what the protocol does not have: beams, or a limit that counts the prompt's tokens
    if its tokenizer is not here.
    """
    if sampling.beams > 1:
        raise NotPossible(f"The server of '{connection.model}' has no beam search; leave the beams out.")
    if sampling.whole is not None and encoder is None:
        raise NotPossible(
            f"The tokenizer of '{connection.model}' is not known here, so that the tokens of a prompt cannot "
            "be counted; limit those of the continuation only."
        )
    asked = [(text, sample) for text in prompts for sample in range(sampling.samples)]
    built = {text: build_completion_prompt(encoder, text, name=connection.model) for text in prompts}
    limits = {
        text: sampling.tokens if sampling.whole is None else min(sampling.tokens, sampling.whole - len(row))
        for text, row in built.items()
    }
    full = next((text for text, limit in limits.items() if limit < 1), None)
    if full is not None:
        raise BadInput(f"The prompt '{full}' alone has {sampling.whole} tokens or more; allow more.")
    bodies = [
        {
            "model": connection.model,
            "prompt": built[text],
            "max_tokens": limits[text],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": int(fingerprint([sampling.seed, text, sample]), 16) % SEEDS,
        }
        | ({"stop": list(sampling.stop)} if sampling.stop else {})
        for text, sample in asked
    ]
    written = connection.collect(bodies, partial(_write, sampling=sampling))
    rows = [(text, sample, *answer) for (text, sample), answer in zip(asked, written, strict=True)]
    return pl.DataFrame(rows, schema=CONTINUATIONS, orient="row")


async def _write(client: Client, body: dict[str, Any], *, sampling: Sampling) -> tuple[str, int, str]:
    def read(payload: Any) -> tuple[str, int, str]:
        choice = find_choice(payload)
        text = choice.get("text")
        if not isinstance(text, str):
            raise BadResponse("no text in the answer")
        used = payload.get("usage") or {}
        return text, int(used.get("completion_tokens", 0)), _end(choice, sampling)

    size = len(body["prompt"]) + sampling.tokens
    return await client.ask(f"{client.url}/completions", body, read=read, tokens=size)


def _end(choice: dict[str, Any], sampling: Sampling) -> str:
    """Why a continuation ended; if the server does not name the stop string, any given one counts."""
    if choice.get("finish_reason") == "length":
        return "limit"
    if "stop_reason" in choice:
        return "stop" if isinstance(choice["stop_reason"], str) else "end"
    return "stop" if sampling.stop else "end"


def build_completion_prompt(encoder: Encoder | None, text: str, *, name: str) -> Prompt:
    """A prompt as it is sent.

    Raises NotPossible if it is empty.
    """
    if encoder:
        return encode_prompt(encoder, text, name=name)
    if not text:
        raise NotPossible(f"'{name}' needs a text to start from; give one.")
    return text
