"""Encoder-decoders such as T5 and BART: log p(token | what was read, what was written before)."""

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NOTHING_MORE, EngineInfo, More, Sampling
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.describe import ModelDescription
from felicity.engines.devices import Compute
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.generating import generate_texts, refuse_long
from felicity.engines.hiding import UNIT_TOKENS, cut_units
from felicity.engines.loading import load_tokenizer, load_weights
from felicity.engines.pretrained import (
    build_encodings,
    build_info,
    find_window,
    refuse_no_number,
    refuse_overlong,
)
from felicity.engines.reading import Reader
from felicity.engines.records import build_tokens
from felicity.engines.seq2seq_fill import fill_gaps, score_gaps
from felicity.engines.seq2seq_head import find_start, refuse_changed_head
from felicity.engines.seq2seq_jobs import Layout, build_jobs
from felicity.engines.seq2seq_reading import Seq2SeqReader
from felicity.engines.seq2seq_sources import Sources, encode_sources
from felicity.engines.sources import ModelSource
from felicity.engines.vocabulary import find_word_begins

CHUNK = 1024


class Seq2SeqEngine:
    """Scores with an encoder-decoder; weights are loaded at the first call that needs them."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        compute: Compute | None = None,
    ) -> None:
        self._source = source
        self._description = description
        self._policy = policy
        self._compute = compute or Compute()

    @cached_property
    def encoder(self) -> Encoder:
        """The tokenizer under the policy; what it puts before a text it puts before what is written."""
        tokenizer, name = self._tokenizer, self._source.name
        if self._policy.bos not in ("auto", "tokenizer"):
            raise NotPossible(
                f"'{name}' is an encoder-decoder, whose decoder has a begin token of its own; leave --bos as "
                "it is."
            )
        way = "target" if self._policy.seq2seq == "auto" else self._policy.seq2seq
        if way != "target" and self._policy.eos != "none":
            raise NotPossible(
                f"The end token can be scored in the way 'target', not '{way}'; leave --eos out."
            )
        if way != "target" and self.layout.gap is None:
            raise NotPossible(
                f"The tokenizer of '{name}' has no sentinel or mask token; score with seq2seq='target'."
            )
        front = tokenizer.convert_ids_to_tokens(self.layout.front)
        if len(front) > 1:
            raise NotPossible(f"The tokenizer of '{name}' puts {len(front)} tokens before a text, not one.")
        settled = self._policy.but(bos=front[0] if front else "none", seq2seq=way)
        window = find_window(self._description, tokenizer) or sys.maxsize
        return Encoder.build(tokenizer, settled, window=window, name=name, words=True)

    @cached_property
    def layout(self) -> Layout:
        """The special tokens."""
        start = find_start(self._source.folder, name=self._source.name)
        return Layout.find(self._tokenizer, start)

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode."""
        model = load_weights(
            self._source.folder, "AutoModelForSeq2SeqLM", name=self._source.name, compute=self._compute
        )
        refuse_changed_head(model, self._source.folder, name=self._source.name)
        return model

    @cached_property
    def reader(self) -> Seq2SeqReader:
        """The model as something that scores what it is to write."""
        return Seq2SeqReader(self.model, pad=self._tokenizer.pad_token_id or 0)

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked, without its weights."""
        return build_info(
            self._source,
            self._description,
            family="seq2seq",
            kind="seq2seq",
            policy=self.encoder.policy,
            tokenizer=self._tokenizer,
            can=("score", "more", *(("fill",) if self.layout.gap is not None else ()), "generate"),
            dtype=self._compute.dtype,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(*self._encode(chunk)) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, a frame whenever a unit of texts is done; units wholly in `done` are passed over.

        Raises BadInput where context or text does not fit into the model's window.
        """
        if more.boundary and self.encoder.policy.seq2seq == "words":
            raise NotPossible("Words that fill gaps have their ends given; take them with boundary='plain'.")
        begins = find_word_begins(self._tokenizer, name=self._source.name) if more.boundary else None
        reader = Reader(more, begins)
        for chunk in prompts.iter_slices(CHUNK):
            encoded, sources = self._encode(chunk)
            refuse_overlong(self._count(encoded, sources), window=self.encoder.window, name=self._source.name)
            read = encoded.lengths + np.array([len(ids) for ids in sources.ids])
            often = encoded.count(encoded.own) if self.encoder.policy.seq2seq == "words" else 1
            for unit in cut_units(read * often, budget=UNIT_TOKENS):
                if not all(encoded.request[i] in done for i in unit):
                    yield self._score(encoded, sources, unit, reader)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k likeliest first tokens of what the decoder puts into each blank."""
        return fill_gaps(self.reader, self.encoder, self.layout, frames, k=k, name=self._source.name)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(the decoder begins to fill the blank with the candidate)."""
        return score_gaps(self.reader, self.encoder, self.layout, frames, candidates, name=self._source.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: what the decoder writes when the encoder has read each prompt."""
        texts = [text.lower() for text in prompts] if self._policy.casing == "lower" else list(prompts)
        rows = self._tokenizer(texts, verbose=False)["input_ids"]
        refuse_long(rows, tokens=0, window=self.info.window, name=self._source.name)
        refuse_long([[0]], tokens=sampling.tokens, window=self.info.window, name=self._source.name)
        return generate_texts(self.model, self._tokenizer, prompts, rows, sampling=sampling, writes_on=False)

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self._source.folder, name=self._source.name)

    def _encode(self, prompts: pl.DataFrame) -> tuple[Encoded, Sources]:
        """What is written, and what is read before."""
        if self.encoder.policy.seq2seq == "target":
            sources = encode_sources(prompts, self.encoder)
            prompts = prompts.with_columns(pl.lit(None, dtype=pl.String).alias("context_text"))
        else:
            sources = Sources.none(len(prompts))
        encoded = self.encoder.encode(prompts)
        return replace(encoded, wanted=encoded.own), sources

    def _count(self, encoded: Encoded, sources: Sources) -> pl.DataFrame:
        # The decoder's begin token, or the tokens around what is read, take room as well.
        room = self.encoder.window - max(1, len(self.layout.behind))
        counts = build_encodings(encoded, self._tokenizer, window=room)
        over = np.maximum(np.array([len(ids) for ids in sources.ids]) - self.encoder.window, 0)
        return counts.with_columns(
            n_context=pl.col("n_context") + pl.Series(sources.n_tokens, dtype=pl.UInt32),
            n_dropped=pl.col("n_dropped") + pl.Series(sources.n_dropped, dtype=pl.UInt32),
            n_over=pl.max_horizontal("n_over", pl.Series(over, dtype=pl.UInt32)),
        )

    def _score(self, encoded: Encoded, sources: Sources, unit: range, reader: Reader) -> pl.DataFrame:
        way = self.encoder.policy.seq2seq
        jobs = list(build_jobs(encoded, unit, way=way, layout=self.layout, sources=sources.ids))
        # The tokens of a text are scored in their order, job by job.
        records = np.concatenate(self.reader.score(jobs, reader))
        refuse_no_number(records["logprob"], name=self._source.name)
        return build_tokens(encoded, np.array(unit), records, self._tokenizer)
