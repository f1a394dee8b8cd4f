"""Hugging Face causal models: log p(token | everything before it)."""

import sys
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import EngineInfo, Sampling
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS, TOKENS, conform
from felicity.engines.batches import BATCH_TOKENS, plan_batches, score_batch
from felicity.engines.causal_fill import encode_prompt, fill_next, score_next
from felicity.engines.describe import ModelDescription
from felicity.engines.digests import fingerprint_tokenizer, fingerprint_weights
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.generating import generate_texts, refuse_long
from felicity.engines.loading import load_causal, load_tokenizer
from felicity.engines.sources import ModelSource

# Nats by which re-batching may move a sentence's sum in float32; a property test holds it.
NOISE = 1e-4
CHUNK = 8192


class CausalEngine:
    """Scores with a causal model of transformers; weights are loaded at the first call that needs them."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        device: str = "auto",
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self._source = source
        self._description = description
        self._policy = policy
        self._device = device
        self._batch_tokens = batch_tokens

    @cached_property
    def encoder(self) -> Encoder:
        """The tokenizer under the policy."""
        tokenizer = load_tokenizer(self._source.folder, name=self._source.name)
        return Encoder.build(
            tokenizer, self._policy, window=self._description.window or sys.maxsize, name=self._source.name
        )

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode, in float32."""
        return load_causal(self._source.folder, name=self._source.name, device=self._device)

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked, without its weights."""
        return EngineInfo(
            name=self._source.name,
            family="causal",
            kind="left-to-right",
            weights=fingerprint_weights(self._source.folder),
            tokenizer=fingerprint_tokenizer(self._source.folder),
            policy=self.encoder.policy.as_dict(),
            dtype="float32",
            parameters=self._description.parameters,
            vocabulary=len(self.encoder.tokenizer),
            window=self._description.window,
            noise=NOISE,
            can=("score", "fill", "generate"),
            notes=self._source.details,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(chunk) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(self, prompts: pl.DataFrame, *, done: Collection[str] = ()) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, a frame whenever a batch is done; batches wholly in `done` are passed over.

        Raises BadInput where a text does not fit into the model's window.
        """
        for chunk in prompts.iter_slices(CHUNK):
            encoded = self.encoder.encode(chunk)
            refuse_overlong(encoded, self.encoder.window, self._source.name)
            finished = np.array([request in done for request in encoded.request], dtype=bool)
            batches = plan_batches(encoded.lengths, budget=self._batch_tokens)
            for batch in (batch for batch in batches if not finished[batch].all()):
                yield self._tokens(encoded, batch, score_batch(self.model, encoded, batch))

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k likeliest tokens after what stands before each frame's blank."""
        return fill_next(self.model, self.encoder, frames, k=k, name=self._source.name)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate | what stands before the blank)."""
        unknown = self.encoder.tokenizer.unk_token
        return score_next(self, frames, candidates, unknown=unknown, name=self._source.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt written on."""
        rows = [encode_prompt(self.encoder, text, name=self._source.name) for text in prompts]
        refuse_long(rows, tokens=sampling.tokens, window=self._description.window, name=self._source.name)
        return generate_texts(
            self.model, self.encoder.tokenizer, prompts, rows, sampling=sampling, writes_on=True
        )

    def _count(self, prompts: pl.DataFrame) -> pl.DataFrame:
        encoded = self.encoder.encode(prompts)
        n_own = encoded.count(encoded.own)
        unknown = self.encoder.tokenizer.unk_token_id
        # Byte-level tokenizers name an unknown token that they never produce for text.
        is_unknown = encoded.own & (encoded.ids == (-1 if unknown is None else unknown))
        before = int(self.encoder.policy.bos not in ("none", "tokenizer"))
        columns = {
            "n_tokens": n_own,
            "n_unscored": n_own - encoded.count(encoded.wanted),
            "n_across": encoded.n_across,
            "n_unknown": encoded.count(is_unknown),
            "n_context": encoded.lengths - n_own - before,
            "n_dropped": encoded.n_dropped,
            "n_over": np.maximum(encoded.lengths - self.encoder.window, 0),
        }
        return pl.DataFrame({"request": encoded.request} | columns, schema=ENCODINGS)

    def _tokens(self, encoded: Encoded, batch: np.ndarray, logprobs: np.ndarray) -> pl.DataFrame:
        """The scored batch as rows of TOKENS."""
        rows = [np.arange(encoded.bounds[i], encoded.bounds[i + 1]) for i in batch]
        places = np.concatenate(rows)
        value = np.full(len(places), np.nan, dtype=np.float32)
        value[encoded.wanted[places]] = logprobs
        own = encoded.own[places]
        row = np.repeat(np.arange(len(batch)), [len(r) for r in rows])[own]
        places = places[own]
        pieces = self.encoder.tokenizer.convert_ids_to_tokens(encoded.ids[places].tolist())
        if np.isinf(logprobs).any() or np.isnan(logprobs).any():
            raise NotPossible(
                f"'{self._source.name}' gave a log-probability that is no number; are its weights whole?"
            )
        flat = pl.DataFrame(
            {
                "row": row,
                "tokens": pieces,
                "start": encoded.start[places],
                "end": encoded.end[places],
                "logprob": pl.Series(value[own]).fill_nan(None),
            }
        )
        lists = flat.group_by("row", maintain_order=True).agg("tokens", "start", "end", "logprob")
        requests = pl.Series("request", [encoded.request[i] for i in batch])
        return conform(lists.with_columns(requests.gather(lists["row"])), TOKENS)


def refuse_overlong(encoded: Encoded, window: int, name: str) -> None:
    """Stop before a text is cut or scored wrongly.

    Raises BadInput naming the first text that is longer than the window.
    """
    over = np.flatnonzero(encoded.lengths > window)
    if len(over):
        first = over[0]
        context = bool(encoded.lengths[first] > encoded.count(encoded.own)[first] + 1)
        step = "drop old context with --overflow drop" if context else "shorten it"
        raise BadInput(
            f"The text of '{encoded.request[first]}' is {encoded.lengths[first]} tokens long, but '{name}' "
            f"reads at most {window}; {step} ({len(over)} such text{'s' if len(over) > 1 else ''})."
        )
