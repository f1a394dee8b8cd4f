"""Models behind a server: log p(token | everything before it), asked for over HTTP."""

import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import polars as pl

from felicity.core.engine import NOTHING_MORE, EngineInfo, More, Sampling
from felicity.core.errors import NotPossible
from felicity.core.schemas import ENCODINGS
from felicity.engines.causal import refuse_overlong
from felicity.engines.causal_fill import score_next
from felicity.engines.encoding import Encoder
from felicity.engines.served.client import Client
from felicity.engines.served.connection import Connection
from felicity.engines.served.dialects import Dialect, Prompt, Reading
from felicity.engines.served.forcing import read_forced
from felicity.engines.served.settings import Bill
from felicity.engines.served.tables import (
    Row,
    build_row,
    build_tokens,
    count_tokens,
    ids_of,
    unknown_encodings,
)
from felicity.engines.served.texts import build_text_row, build_whole
from felicity.engines.served.writing import Depth, fill_next, generate_texts

CHUNK = 8192
# A frame is handed on, and so kept on disk, at least this often.
FRAME_ROWS = 256
FRAME_SECONDS = 1.0
# For bills and limits where only the server knows its tokens.
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Job:
    """One prompt on its way: its place in the chunk, and its first token that is to be scored."""

    place: int
    prompt: Prompt
    tokens: int
    first: int = 1


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
        self._depth = Depth(vocabulary=info.vocabulary)
        self.info = info

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt; nulls where only the server knows its tokens."""
        if self._encoder is None:
            return unknown_encodings(prompts)
        parts = [count_tokens(self._encoder.encode(part), self._encoder) for part in _chunks(prompts)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def bill(self, prompts: pl.DataFrame) -> Bill:
        """What scoring these prompts would send; without a tokenizer, four characters count as a token."""
        requests = len(prompts)
        if self._encoder is None:
            wholes = prompts.select(pl.concat_str("context_text", "text", ignore_nulls=True)).to_series()
            tokens = int(wholes.str.len_chars().sum()) // CHARACTERS_A_TOKEN + requests
        else:
            known = self.encode(prompts).select(own="n_tokens", before="n_context").cast(pl.Int64)
            tokens = int(known.sum_horizontal().sum())
            if self._dialect and self._dialect.way == "forced":
                # Each token is a request with all that stands before it.
                requests = int(known["own"].sum())
                sent = pl.col("own") * pl.col("before") + pl.col("own") * (pl.col("own") + 1) // 2
                tokens = int(known.select(sent.sum()).item())
        return self._connection.serving.bill(requests=requests, tokens=tokens)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS as the answers come; requests in `done` are not sent.

        Raises NotPossible where the server gives no log-probabilities of prompts, BadInput where a text
        is too long, FelicityError where the server's faults outlast the patience.
        """
        if more != NOTHING_MORE:
            raise NotPossible(f"'{self.info.name}' is behind a server, which gives log-probabilities only.")
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
        read = partial(read_prompt, model=self._connection.model, dialect=dialect)
        for chunk in _chunks(waiting):
            encoder = self._encoder
            rows = self._score_ids(chunk, encoder, read) if encoder else self._score_texts(chunk, read)
            yield from _frames(rows)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k likeliest tokens after what stands before each frame's blank."""
        return fill_next(self._connection, self._encoder, frames, k=k, depth=self._depth)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate | what stands before the blank)."""
        unknown = self._encoder.tokenizer.unk_token if self._encoder else None
        return score_next(self, frames, candidates, unknown=unknown, name=self.info.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt written on by the server."""
        return generate_texts(self._connection, self._encoder, prompts, sampling=sampling)

    def _score_ids(self, chunk: pl.DataFrame, encoder: Encoder, read: ReadJob) -> Iterator[Row]:
        encoded = encoder.encode(chunk)
        refuse_overlong(encoded, encoder.window, self.info.name)
        ids = [ids_of(encoded, place) for place in range(len(encoded))]
        first = [int(encoded.wanted[begin:end].argmax()) for begin, end in pairwise(encoded.bounds)]
        jobs = [Job(place, found, len(found), first[place]) for place, found in enumerate(ids)]
        for job, reading in self._connection.stream(jobs, read):
            yield build_row(encoded, job.place, reading, encoder.tokenizer)

    def _score_texts(self, chunk: pl.DataFrame, read: ReadJob) -> Iterator[Row]:
        wholes = [
            build_whole(context, text, self.info.policy)
            for context, text in zip(chunk["context_text"].fill_null(""), chunk["text"], strict=True)
        ]
        jobs = [
            Job(place, whole, len(whole) // CHARACTERS_A_TOKEN + 1) for place, (whole, _) in enumerate(wholes)
        ]
        for job, reading in self._connection.stream(jobs, read):
            yield build_text_row(chunk["request"][job.place], *wholes[job.place], reading)


async def read_prompt(client: Client, job: Job, *, model: str, dialect: Dialect) -> Reading:
    """The log-probabilities of one prompt."""
    if dialect.way == "forced" and not isinstance(job.prompt, str):
        return await read_forced(client, model, job.prompt, job.first)
    return await client.ask(
        f"{client.url}/completions",
        dialect.body(model, job.prompt),
        read=lambda payload: dialect.read(payload, job.prompt),
        tokens=job.tokens + dialect.new,
    )


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
