"""Models behind a server: log p(token | everything before it), asked for over HTTP."""

import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.causal import refuse_overlong
from felicity.engines.encoding import Encoder
from felicity.engines.served.client import Client
from felicity.engines.served.connection import Connection
from felicity.engines.served.dialects import Dialect, Prompt, Reading
from felicity.engines.served.settings import Bill
from felicity.engines.served.tables import (
    Row,
    build_encodings,
    build_row,
    build_text_row,
    build_tokens,
    ids_of,
    unknown_encodings,
)

CHUNK = 8192
# A frame is handed on, and so kept on disk, at least this often.
FRAME_ROWS = 256
FRAME_SECONDS = 1.0


@dataclass(frozen=True)
class Job:
    """One prompt on its way: `place` is where it stands in its chunk."""

    place: int
    prompt: Prompt
    tokens: int


ReadJob = Callable[[Client, Job], Awaitable[Reading]]


class ServedEngine:
    """Scores with a model behind a server.

    With an `encoder`, token ids are sent; without one texts, and the server's own tokens are taken.
    Without a `dialect` the server gives no log-probabilities of a prompt.
    """

    def __init__(
        self, connection: Connection, info: EngineInfo, *, encoder: Encoder | None, dialect: Dialect | None
    ) -> None:
        self._connection = connection
        self._encoder = encoder
        self._dialect = dialect
        self.info = info

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt; nulls where only the server knows its tokens."""
        if self._encoder is None:
            return unknown_encodings(prompts)
        parts = [build_encodings(self._encoder.encode(part), self._encoder) for part in _chunks(prompts)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def bill(self, prompts: pl.DataFrame) -> Bill:
        """What scoring these prompts would send; without a tokenizer, four characters count as a token."""
        known = self.encode(prompts)
        if self._encoder is None:
            characters = prompts.select(
                pl.col("text").str.len_chars().sum() + pl.col("context_text").str.len_chars().sum()
            ).item()
            tokens = int(characters or 0) // 4 + len(prompts)
        else:
            tokens = int(known["n_tokens"].sum() + known["n_context"].sum())
        return self._connection.serving.bill(requests=len(prompts), tokens=tokens)

    def score(self, prompts: pl.DataFrame, *, done: Collection[str] = ()) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS as the answers come; requests in `done` are not sent.

        Raises NotPossible where the server gives no log-probabilities of prompts, BadInput where a text
        is too long, FelicityError where the server's faults outlast the patience.
        """
        dialect = self._dialect
        if dialect is None:
            raise NotPossible(
                f"The server at {self._connection.url} tells only the likeliest next tokens, not the "
                f"log-probabilities of a text, so '{self.info.name}' can {', '.join(self.info.can)} but not "
                "score; serve the model with vLLM, or give its files to -m."
            )
        waiting = prompts.filter(~pl.col("request").is_in(list(done))) if done else prompts
        announce = self._connection.serving.announce
        if announce and len(waiting):
            announce(self.bill(waiting))
        for chunk in _chunks(waiting):
            reading = partial(read_prompt, model=self._connection.model, dialect=dialect)
            found = (
                self._score_ids(chunk, self._encoder, reading)
                if self._encoder
                else self._score_texts(chunk, reading)
            )
            yield from _frames(found)

    def _score_ids(self, chunk: pl.DataFrame, encoder: Encoder, read: ReadJob) -> Iterator[Row]:
        encoded = encoder.encode(chunk)
        refuse_overlong(encoded, encoder.window, self.info.name)
        ids = [ids_of(encoded, place) for place in range(len(encoded))]
        jobs = [Job(place, found, len(found)) for place, found in enumerate(ids)]
        for job, reading in self._connection.stream(jobs, read):
            yield build_row(encoded, job.place, reading, encoder.tokenizer)

    def _score_texts(self, chunk: pl.DataFrame, read: ReadJob) -> Iterator[Row]:
        wholes = [
            build_whole(context, text, self.info.policy)
            for context, text in zip(chunk["context_text"].fill_null(""), chunk["text"], strict=True)
        ]
        jobs = [Job(place, whole, len(whole) // 4 + 1) for place, (whole, _) in enumerate(wholes)]
        for job, reading in self._connection.stream(jobs, read):
            yield build_text_row(chunk["request"][job.place], *wholes[job.place], reading)


async def read_prompt(client: Client, job: Job, *, model: str, dialect: Dialect) -> Reading:
    """The log-probabilities of one prompt."""
    return await client.ask(
        f"{client.url}/completions",
        dialect.body(model, job.prompt),
        read=lambda payload: dialect.read(payload, job.prompt),
        tokens=job.tokens + dialect.new,
    )


def build_whole(context: str, text: str, policy: dict[str, str]) -> tuple[str, int]:
    """Context and text as they are sent, and where the text begins.

    >>> build_whole("It rained.", "She left.", {"join": " ", "casing": "keep"})
    ('It rained. She left.', 11)
    """
    before = context + policy["join"] if context else ""
    whole = before + text
    return (whole.lower() if policy["casing"] == "lower" else whole), len(before)


def resolve_text_policy(policy: Policy) -> Policy:
    """The policy under which texts are sent: what stands before and behind them is the server's affair.

    Raises NotPossible where the policy asks for what only token ids can do.
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
            f"This server takes or tells no token ids, so {refused[0]} cannot be kept; name the model's "
            "tokenizer with --tokenizer, or leave it out."
        )
    return policy.but(bos="tokenizer")


def _chunks(prompts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield from prompts.iter_slices(CHUNK)


def _frames(rows: Iterator[Row]) -> Iterator[pl.DataFrame]:
    """Rows in frames: some hundreds, or those of a second."""
    held: list[Row] = []
    since = time.monotonic()
    try:
        for row in rows:
            held.append(row)
            if len(held) >= FRAME_ROWS or time.monotonic() - since > FRAME_SECONDS:
                yield build_tokens(held)
                held, since = [], time.monotonic()
    except Exception:
        # What came before the failure is scored all the same.
        if held:
            yield build_tokens(held)
        raise
    if held:
        yield build_tokens(held)
