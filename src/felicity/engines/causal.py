"""Hugging Face causal models: log p(token | everything before it)."""

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NOTHING_MORE, EngineInfo, More, Sampling
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.batches import bound_tokens, plan_batches, score_batch
from felicity.engines.causal_fill import encode_prompt, fill_next, score_next
from felicity.engines.checking import Check, check_tree
from felicity.engines.chunks import cut_chunks
from felicity.engines.describe import ModelDescription
from felicity.engines.devices import Compute
from felicity.engines.digests import fingerprint_tokenizer, fingerprint_weights
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.generating import generate_texts, refuse_long
from felicity.engines.loading import load_tokenizer, load_weights
from felicity.engines.logits import count_rows, forget_logits
from felicity.engines.pretrained import NOISE
from felicity.engines.reading import Reader
from felicity.engines.records import build_tokens
from felicity.engines.sources import ModelSource
from felicity.engines.spans import Shape
from felicity.engines.treescoring import score_trie
from felicity.engines.vocabulary import find_word_begins

CHUNK = 8192


class CausalEngine:
    """Scores with a causal model of transformers; weights are loaded at the first call that needs them."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        compute: Compute | None = None,
        scheduler: str = "auto",
    ) -> None:
        self._source = source
        self._description = description
        self._policy = policy
        self._compute = compute or Compute()
        self._scheduler = scheduler

    @cached_property
    def encoder(self) -> Encoder:
        """The tokenizer under the policy."""
        tokenizer = load_tokenizer(self._source.folder, name=self._source.name)
        return Encoder.build(
            tokenizer, self._policy, window=self._description.window or sys.maxsize, name=self._source.name
        )

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode."""
        return load_weights(
            self._source.folder, "AutoModelForCausalLM", name=self._source.name, compute=self._compute
        )

    @cached_property
    def check(self) -> Check:
        """Whether the model can be read as a trie; loads it."""
        if self._scheduler == "plain":
            return Check(None, "asked for")
        window = self.encoder.window
        return check_tree(self.model, self.encoder.tokenizer, window=window, dtype=self._compute.dtype)

    @property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked; once it is loaded, also how it is read."""
        if "check" not in self.__dict__:
            return self._info
        reading = {"scheduler": self.check.scheduler, "scheduler_check": self.check.note}
        return replace(self._info, notes=self._info.notes | reading)

    @cached_property
    def _info(self) -> EngineInfo:
        return EngineInfo(
            name=self._source.name,
            family="causal",
            kind="left-to-right",
            weights=fingerprint_weights(self._source.folder),
            tokenizer=fingerprint_tokenizer(self._source.folder),
            policy=self.encoder.policy.as_dict(),
            dtype=self._compute.dtype,
            parameters=self._description.parameters,
            vocabulary=len(self.encoder.tokenizer),
            window=self._description.window,
            noise=NOISE[self._compute.dtype],
            can=("score", "more", "fill", "generate"),
            notes=self._source.details,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(chunk) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, a frame whenever a batch is done; batches wholly in `done` are passed over.

        Raises BadInput where a text does not fit into the model's window.
        """
        begins = self._word_begins if more.boundary else None
        reader = Reader(more, begins)
        for chunk in cut_chunks(prompts, join=self.encoder.policy.join):
            encoded = self.encoder.encode(chunk)
            refuse_overlong(encoded, self.encoder.window, self._source.name)
            finished = np.array([request in done for request in encoded.request], dtype=bool)
            if finished.all():
                continue
            try:
                for sequences, records in self._score(encoded, finished, reader):
                    self._refuse_no_number(records["logprob"])
                    yield build_tokens(encoded, sequences, records, self.encoder.tokenizer)
            finally:
                forget_logits(self.model)

    def _score(
        self, encoded: Encoded, finished: np.ndarray, reader: Reader
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.check.tree:
            yield from score_trie(self.check.tree, encoded, finished, self._shape, reader)
            return
        for batch in plan_batches(encoded.lengths, budget=bound_tokens(self.model)):
            if not finished[batch].all():
                yield batch, score_batch(self.model, encoded, batch, reader)

    @cached_property
    def _word_begins(self) -> np.ndarray:
        return find_word_begins(self.encoder.tokenizer, name=self._source.name)

    @cached_property
    def _shape(self) -> Shape:
        most = count_rows(self.model)
        return Shape(batch=min(Shape.batch, most), window=min(Shape.window, most))

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
        if self.encoder.policy.eos != "none":
            is_unknown[encoded.bounds[1:] - 1] = False
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

    def _refuse_no_number(self, logprobs: np.ndarray) -> None:
        if not np.isfinite(logprobs).all():
            raise NotPossible(
                f"'{self._source.name}' gave a log-probability that is no number; are its weights whole?"
            )


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
