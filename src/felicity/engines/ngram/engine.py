"""n-gram models: log p(word | the few words before it)."""

import sys
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from felicity.core.engine import NOTHING_MORE, EngineInfo, More
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.describe import ModelDescription
from felicity.engines.devices import Compute, refuse_for_words
from felicity.engines.digests import remember_digest
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.ngram.arpa import read_arpa, read_header
from felicity.engines.ngram.kenlm_file import KenlmModel, is_kenlm, read_counts
from felicity.engines.ngram.model import NgramModel
from felicity.engines.pretrained import build_encodings, refuse_no_number
from felicity.engines.records import build_tokens
from felicity.engines.sources import ModelSource
from felicity.engines.words.encoding import (
    encode_words,
    mark_boundaries,
    name_casing,
    refuse_more,
    settle_policy,
)
from felicity.engines.words.tokenizer import WordList, WordTokenizer, fingerprint_words

# Scores do not depend on what else is scored; this is the rounding of stored tokens.
NOISE = 1e-5
CHUNK = 8192


class NgramEngine:
    """Scores with an ARPA file or a KenLM binary, which is read at the first call that needs it."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        compute: Compute | None = None,
    ) -> None:
        refuse_for_words(compute or Compute(), models="n-gram", processor=True)
        self._source = source
        self._description = description
        self._policy = policy

    @cached_property
    def model(self) -> NgramModel | KenlmModel:
        """The model in memory, or what KenLM made of its file."""
        path = self._source.folder
        return KenlmModel(path) if is_kenlm(path) else read_arpa(path)

    @cached_property
    def encoder(self) -> Encoder:
        """The words of the model under the policy."""
        tokenizer = load_ngram_tokenizer(self._source.folder)
        if isinstance(tokenizer.vocabulary, KenlmModel):
            self.model = tokenizer.vocabulary
        policy = settle_policy(self._policy)
        return Encoder.build(tokenizer, policy, window=sys.maxsize, name=self._source.name)

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked."""
        digest = remember_digest(self._source.folder)
        tokenizer = self.encoder.tokenizer
        return EngineInfo(
            name=self._source.name,
            family="ngram",
            kind="left-to-right",
            weights=digest,
            tokenizer=fingerprint_words(tokenizer, digest),
            policy=name_casing(self.encoder.policy, tokenizer).as_dict(),
            dtype="float32",
            parameters=self._description.parameters,
            vocabulary=len(tokenizer),
            window=None,
            noise=NOISE,
            can=("score", "more"),
            notes=self._source.details | {"words": tokenizer.cut},
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the vocabulary alone."""
        parts = [
            build_encodings(self._encode(chunk), self.encoder.tokenizer, window=self.encoder.window)
            for chunk in prompts.iter_slices(CHUNK)
        ]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, some thousands of prompts at a time; those in `done` are passed over.

        Raises NotPossible where a text has a word that a closed vocabulary lacks.
        """
        refuse_more(more, name=self._source.name)
        for chunk in prompts.iter_slices(CHUNK):
            rest = chunk.filter(~pl.col("request").is_in(list(done))) if done else chunk
            if rest.is_empty():
                continue
            encoded = self._encode(rest)
            nats = self.model.score(encoded.ids, encoded.bounds)[encoded.wanted]
            refuse_no_number(nats, name=self._source.name)
            records = nats.astype([("logprob", np.float32)])
            tokens = build_tokens(encoded, np.arange(len(encoded)), records, self.encoder.tokenizer)
            yield mark_boundaries(tokens, more)

    def _encode(self, prompts: pl.DataFrame) -> Encoded:
        return encode_words(self.encoder, prompts, name=self._source.name)


def load_ngram_tokenizer(path: Path) -> WordTokenizer:
    """The words of an n-gram file, without its longer n-grams.

    Raises BadInput where the file is damaged, NotPossible where KenLM is needed and not there.
    """
    if is_kenlm(path):
        return WordTokenizer(KenlmModel(path), cut="vocabulary")
    header, words = read_header(path)
    return WordTokenizer(WordList(words), cut=header.cut, lower=header.lower)


def describe_ngram(path: Path) -> ModelDescription:
    """What a file holds, from its header."""
    counts = read_counts(path) if is_kenlm(path) else read_header(path)[0].counts
    return ModelDescription(
        architecture="ngram",
        model_type="ngram",
        # A probability for every n-gram, a back-off weight for all that can be a history.
        parameters=sum(counts) + sum(counts[:-1]),
        window=None,
        vocabulary=counts[0],
        dtype="F32",
        size=path.stat().st_size,
    )
