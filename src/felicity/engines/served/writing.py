"""What a server puts into a blank, and how it writes a text on."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import polars as pl

from felicity.core.engine import Sampling
from felicity.core.errors import NotPossible
from felicity.core.ids import fingerprint
from felicity.core.schemas import CONTINUATIONS, FILLERS
from felicity.engines.causal_fill import encode_prompt, parse_left_frame
from felicity.engines.encoding import Encoder
from felicity.engines.served.client import Client, Refused, Unreadable
from felicity.engines.served.connection import Connection
from felicity.engines.served.dialects import Prompt, find_choice, next_body, read_next

# Asked for beyond k, since tokens that are no text by themselves are left out.
SPARE = 5
SEEDS = 1 << 31

Next = list[tuple[str, float]]


@dataclass
class Depth:
    """How deep into the vocabulary a server tells what comes next.

    vocabulary: its tokens, 0 where they are not known. refused: the least that it refused to tell.
    """

    vocabulary: int = 0
    refused: int = sys.maxsize

    def asks(self, k: int) -> tuple[int, ...]:
        """How many to ask for, in turn, so that k remain."""
        return (k + SPARE, k) if k + SPARE < self.refused else (k,)


def fill_next(
    connection: Connection, encoder: Encoder | None, frames: Sequence[str], *, k: int, depth: Depth
) -> pl.DataFrame:
    """Rows of FILLERS: the likeliest tokens right after what stands before the blank.

    Raises NotPossible where the server tells fewer than k.
    """
    parsed = [parse_left_frame(text, name=connection.model) for text in frames]
    prompts = [build_prompt(encoder, frame.before.rstrip(), name=connection.model) for frame in parsed]
    found = connection.ask_all(prompts, partial(_ask_next, model=connection.model, k=k, depth=depth))
    rows = [
        row for frame, likeliest in zip(parsed, found, strict=True) for row in _rank(frame.text, likeliest, k)
    ]
    return pl.DataFrame(rows, schema=FILLERS, orient="row")


async def _ask_next(client: Client, prompt: Prompt, *, model: str, k: int, depth: Depth) -> Next:
    """The k likeliest next tokens and, where the server tells as many, a few more."""
    said = ""
    for asked in depth.asks(k):
        body = next_body(model, prompt, asked)
        try:
            found = await client.ask(f"{client.url}/completions", body, read=read_next, tokens=len(prompt))
        except Refused as refused:
            if refused.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
            depth.refused = min(depth.refused, asked)
            said = refused.said
            continue
        if len(found) >= min(k, depth.vocabulary or k):
            # Servers add the token that they drew to those that were asked for.
            return found[:asked]
        said = f"asked for {asked}, it told {len(found)}"
        break
    raise NotPossible(
        f"The server at {client.url} does not tell the {k} likeliest tokens ({said}); ask for fewer with -k, "
        "or start vLLM with --max-logprobs."
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
            f"None of the {len(likeliest)} likeliest tokens that the server tells for '{frame}' is a text by "
            "itself; ask for more with -k."
        )
    return rows


def generate_texts(
    connection: Connection, encoder: Encoder | None, prompts: Sequence[str], *, sampling: Sampling
) -> pl.DataFrame:
    """Rows of CONTINUATIONS; each is a request with a seed of its own, so that none hangs on another."""
    asked = [(text, sample) for text in prompts for sample in range(sampling.samples)]
    built = {text: build_prompt(encoder, text, name=connection.model) for text in prompts}
    bodies = [
        {
            "model": connection.model,
            "prompt": built[text],
            "max_tokens": sampling.tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": int(fingerprint([sampling.seed, text, sample]), 16) % SEEDS,
        }
        | ({"stop": list(sampling.stop)} if sampling.stop else {})
        for text, sample in asked
    ]
    written = connection.ask_all(bodies, partial(_write, sampling=sampling))
    rows = [(text, sample, *answer) for (text, sample), answer in zip(asked, written, strict=True)]
    return pl.DataFrame(rows, schema=CONTINUATIONS, orient="row")


async def _write(client: Client, body: dict[str, Any], *, sampling: Sampling) -> tuple[str, int, str]:
    def read(payload: Any) -> tuple[str, int, str]:
        choice = find_choice(payload)
        text = choice.get("text")
        if not isinstance(text, str):
            raise Unreadable("no text in it")
        used = payload.get("usage") or {}
        return text, int(used.get("completion_tokens", 0)), _end(choice, sampling)

    size = len(body["prompt"]) + sampling.tokens
    return await client.ask(f"{client.url}/completions", body, read=read, tokens=size)


def _end(choice: dict[str, Any], sampling: Sampling) -> str:
    """How a continuation ended; a server that does not say at which string met one if any was given."""
    if choice.get("finish_reason") == "length":
        return "limit"
    if "stop_reason" in choice:
        return "stop" if isinstance(choice["stop_reason"], str) else "end"
    return "stop" if sampling.stop else "end"


def build_prompt(encoder: Encoder | None, text: str, *, name: str) -> Prompt:
    """The beginning of a text as it is sent.

    Raises NotPossible where there is nothing to begin from.
    """
    if encoder:
        return encode_prompt(encoder, text, name=name)
    if not text:
        raise NotPossible(f"'{name}' has nothing to begin from; give a text.")
    return text
