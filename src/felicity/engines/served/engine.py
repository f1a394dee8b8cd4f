"""Served models: log p(token | everything before it), over HTTP."""

import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import polars as pl

from felicity.core.engine import NO_EXTRAS, EngineInfo, Sampling, TokenExtras
from felicity.core.errors import NotPossible
from felicity.core.schemas import ENCODINGS
from felicity.engines.causal import score_next
from felicity.engines.runtime import refuse_long_sequences
from felicity.engines.served.client import Client
from felicity.engines.served.completion import TopLimit, request_continuations, request_fillers
from felicity.engines.served.connection import Connection
from felicity.engines.served.prompts import (
    Row,
    build_row,
    build_served_tokens,
    build_text_row,
    build_whole,
    count_prompt_tokens,
    ids_of,
    read_forced,
    refuse_other_tokens,
    unknown_encodings,
)
from felicity.engines.served.protocols import Dialect, Prompt, PromptScores
from felicity.engines.served.settings import CostEstimate
from felicity.engines.tokenizing import Encoder

CHUNK = 8192
# A frame is yielded, and so saved to disk, after so many rows, or some rows and seconds, or more seconds.
# Before it is saved, the server is asked once more who it is, so smaller frames mean more requests.
FRAME_ROWS = 256
FEW_ROWS, FEW_SECONDS = 50, 1.0
FRAME_SECONDS = 10.0
# How long a server that has failed is waited for, to confirm what it said before.
LAST_PATIENCE = 5.0
# For cost estimates and rate limits if only the server knows its tokens.
CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class PromptJob:
    """One prompt to score: its index in the chunk, and its first token to score."""

    index: int
    prompt: Prompt
    tokens: int
    first: int = 1


ReadJob = Callable[[Client, PromptJob], Awaitable[PromptScores]]


class ServedEngine:
    """Scores with a served model.

    With an `encoder`, token ids are sent; without one, texts, and the server's own tokens are used.
    Without a `dialect` the server gives no log-probabilities of prompts. `verify` checks, on a connection,
    that the server still has the same model; its second argument counts the checks.
    """

    def __init__(
        self,
        connection: Connection,
        info: EngineInfo,
        *,
        encoder: Encoder | None,
        dialect: Dialect | None,
        verify: Callable[[Connection, int], None],
    ) -> None:
        self._connection = connection
        self._encoder = encoder
        self._dialect = dialect
        self._top_limit = TopLimit(vocabulary=info.vocabulary)
        self._verify = verify
        self._checks = 0
        self._failed = False
        self.info = info

    def refuse_changed(self) -> None:
        """Check that the server still has the model of `info`, by one sentence of the probe.

        Raises FelicityError.
        """
        connection = self._connection
        if self._failed:
            connection = connection.replace(patience=min(LAST_PATIENCE, connection.serving.patience))
        self._checks += 1
        self._verify(connection, self._checks)

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt; nulls if only the server knows its tokens."""
        if self._encoder is None:
            return unknown_encodings(prompts)
        parts = [count_prompt_tokens(self._encoder.encode(part), self._encoder) for part in _chunks(prompts)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def estimate_cost(self, prompts: pl.DataFrame) -> CostEstimate:
        """What scoring these prompts would send; without a tokenizer, a token counts as four characters."""
        requests = len(prompts)
        if self._encoder is None:
            wholes = prompts.select(pl.concat_str("context_text", "text", ignore_nulls=True)).to_series()
            tokens = int(wholes.str.len_chars().sum()) // CHARACTERS_A_TOKEN + requests
        else:
            counts = self.encode(prompts).select(own="n_tokens", before="n_context").cast(pl.Int64)
            tokens = int(counts.sum_horizontal().sum())
            if self._dialect and self._dialect.method == "forced":
                # Each token is a request with everything before it.
                requests = int(counts["own"].sum())
                sent = pl.col("own") * pl.col("before") + pl.col("own") * (pl.col("own") + 1) // 2
                tokens = int(counts.select(sent.sum()).item())
        return self._connection.serving.bill(requests=requests, tokens=tokens)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS as the answers arrive; requests in `done` are not sent.

        Raises NotPossible if the server gives no log-probabilities of prompts, BadInput if a text is too
        long, FelicityError if the server keeps failing longer than the patience.
        """
        if extras != NO_EXTRAS:
            raise NotPossible(f"'{self.info.name}' is a served model and gives log-probabilities only.")
        dialect = self._dialect
        if dialect is None:
            raise NotPossible(
                f"The server at {self._connection.url} gives only the most probable next tokens, not the "
                f"log-probabilities of a text, so '{self.info.name}' can {', '.join(self.info.can)} but not "
                "score; serve the model with vLLM, or give its files to -m."
            )
        waiting = prompts.filter(~pl.col("request").is_in(list(done))) if done else prompts
        announce = self._connection.serving.announce
        if announce and len(waiting):
            announce(self.estimate_cost(waiting))
        read = partial(read_prompt, model=self._connection.model, dialect=dialect)
        for chunk in _chunks(waiting):
            encoder = self._encoder
            rows = self._score_ids(chunk, encoder, read) if encoder else self._score_texts(chunk, read)
            yield from self._frames(rows)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable tokens after the text before each frame's blank."""
        return request_fillers(self._connection, self._encoder, frames, k=k, top_limit=self._top_limit)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate | the text before the blank)."""
        unknown = self._encoder.tokenizer.unk_token if self._encoder else None
        return score_next(self, frames, candidates, unknown=unknown, name=self.info.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt continued by the server."""
        return request_continuations(self._connection, self._encoder, prompts, sampling=sampling)

    def _frames(self, rows: Iterator[Row]) -> Iterator[pl.DataFrame]:
        """Rows in frames of some hundreds, or of some seconds."""
        held: list[Row] = []
        since = time.monotonic()
        try:
            for row in rows:
                held.append(row)
                waited = time.monotonic() - since
                few = len(held) >= FEW_ROWS and waited > FEW_SECONDS
                if few or len(held) >= FRAME_ROWS or waited > FRAME_SECONDS:
                    yield build_served_tokens(held)
                    held, since = [], time.monotonic()
        except Exception:
            # Yield what arrived before the failure.
            self._failed = True
            if held:
                yield build_served_tokens(held)
            raise
        if held:
            yield build_served_tokens(held)

    def _score_ids(self, chunk: pl.DataFrame, encoder: Encoder, read: ReadJob) -> Iterator[Row]:
        encoded = encoder.encode(chunk)
        refuse_long_sequences(
            count_prompt_tokens(encoded, encoder), window=encoder.window, name=self.info.name
        )
        ids = [ids_of(encoded, index) for index in range(len(encoded))]
        first = [int(encoded.wanted[begin:end].argmax()) for begin, end in pairwise(encoded.bounds)]
        jobs = [PromptJob(index, prompt, len(prompt), first[index]) for index, prompt in enumerate(ids)]
        for job, scores in self._connection.stream(jobs, read):
            refuse_other_tokens(ids[job.index], scores, encoder.tokenizer, url=self._connection.url)
            yield build_row(encoded, job.index, scores, encoder.tokenizer)

    def _score_texts(self, chunk: pl.DataFrame, read: ReadJob) -> Iterator[Row]:
        wholes = [
            build_whole(context, text, self.info.policy)
            for context, text in zip(chunk["context_text"].fill_null(""), chunk["text"], strict=True)
        ]
        jobs = [
            PromptJob(index, whole, len(whole) // CHARACTERS_A_TOKEN + 1)
            for index, (whole, _) in enumerate(wholes)
        ]
        for job, scores in self._connection.stream(jobs, read):
            yield build_text_row(chunk["request"][job.index], *wholes[job.index], scores)


async def read_prompt(client: Client, job: PromptJob, *, model: str, dialect: Dialect) -> PromptScores:
    """The log-probabilities of one prompt."""
    if dialect.method == "forced" and not isinstance(job.prompt, str):
        return await read_forced(client, model, job.prompt, job.first)
    return await client.ask(
        f"{client.url}/completions",
        dialect.body(model, job.prompt),
        read=lambda payload: dialect.read(payload, job.prompt),
        tokens=job.tokens + dialect.new,
    )


def _chunks(prompts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield from prompts.iter_slices(CHUNK)
