"""LSTM and TDLM models: log p(word | the words before it), for TDLM also given a document.

An LSTM reads a context before the text, as one running text. A TDLM takes it as the document that the
text stands in: the content words of the context, at most as many as in training; without one the topic
vector is zero.
"""

import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NOTHING_MORE, EngineInfo, More
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.batches import BATCH_TOKENS, plan_batches
from felicity.engines.describe import ModelDescription
from felicity.engines.devices import Compute, choose_device, prepare_processor, refuse_for_words
from felicity.engines.digests import remember_digest
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.folders import read_tensors
from felicity.engines.pretrained import build_encodings, refuse_no_number
from felicity.engines.reading import Reader
from felicity.engines.records import build_tokens
from felicity.engines.sources import ModelSource
from felicity.engines.trained.folder import VOCABULARY, find_weights, read_record, read_words
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.words.encoding import encode_words, mark_boundaries, name_casing, settle_policy
from felicity.engines.words.tokenizer import WordList, WordTokenizer, fingerprint_words

# Nats by which re-batching may move a sentence's sum in float32; a property test holds it.
NOISE = 1e-4
CHUNK = 8192


class TrainedEngine:
    """Scores with a model of `felicity train`; weights are loaded at the first call that needs them."""

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
        refuse_for_words(self._compute, models="LSTM and TDLM")

    @cached_property
    def settings(self) -> TrainingSettings:
        """What the model was trained with."""
        return read_record(self._source.folder).settings

    @cached_property
    def encoder(self) -> Encoder:
        """The words of the model under the policy."""
        tokenizer = load_trained_tokenizer(self._source.folder)
        policy = settle_policy(self._policy)
        return Encoder.build(tokenizer, policy, window=sys.maxsize, name=self._source.name)

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode."""
        from felicity.engines.trained.loading import load_trained

        prepare_processor()
        return load_trained(self._source.folder, device=choose_device(self._compute.device))

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked, without its weights."""
        folder = self._source.folder
        tokenizer = self.encoder.tokenizer
        vocabulary = remember_digest(folder / VOCABULARY)
        return EngineInfo(
            name=self._source.name,
            family=self.settings.family,
            kind="left-to-right",
            weights=remember_digest(find_weights(folder)),
            tokenizer=fingerprint_words(tokenizer, vocabulary),
            policy=name_casing(self.encoder.policy, tokenizer).as_dict(),
            dtype="float32",
            parameters=self._description.parameters,
            vocabulary=len(tokenizer),
            window=None,
            noise=NOISE,
            can=("score", "more"),
            notes=self._source.details | self._notes(),
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the vocabulary alone."""
        parts = []
        for chunk in prompts.iter_slices(CHUNK):
            encoded, documents = self._encode(chunk)
            rows = build_encodings(encoded, self.encoder.tokenizer, window=self.encoder.window)
            if self.settings.topic:
                given = pl.Series("n_context", [len(words) for words in documents], dtype=pl.UInt32)
                rows = rows.with_columns(given)
            parts.append(rows)
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, a frame whenever a batch is done; batches wholly in `done` are passed over."""
        from felicity.engines.trained.scoring import score_batch

        reader = Reader(replace(more, boundary=False))
        for chunk in prompts.iter_slices(CHUNK):
            encoded, documents = self._encode(chunk)
            finished = np.array([request in done for request in encoded.request], dtype=bool)
            for batch in plan_batches(encoded.lengths, budget=BATCH_TOKENS):
                if finished[batch].all():
                    continue
                records = score_batch(self.model, encoded, batch, [documents[i] for i in batch], reader)
                refuse_no_number(records["logprob"], name=self._source.name)
                tokens = build_tokens(encoded, batch, records, self.encoder.tokenizer)
                yield mark_boundaries(tokens, more)

    def _encode(self, prompts: pl.DataFrame) -> tuple[Encoded, list[np.ndarray]]:
        """The sequences to read, and for TDLM the content words of each document."""
        name = self._source.name
        if not self.settings.topic:
            nothing = np.zeros(0, dtype=np.int64)
            return encode_words(self.encoder, prompts, name=name), [nothing] * len(prompts)
        alone = prompts.with_columns(pl.lit(None, dtype=pl.String).alias("context_text"))
        contexts = [self.encoder.cased(text) for text in prompts["context_text"].fill_null("").to_list()]
        found = self.encoder.tokenizer(contexts)["input_ids"]
        words = (np.array(ids, dtype=np.int64) for ids in found)
        longest = self.settings.topic.document
        documents = [ids[self._content[ids]][:longest] for ids in words]
        return encode_words(self.encoder, alone, name=name), documents

    @cached_property
    def _content(self) -> np.ndarray:
        return read_words(self._source.folder).content

    def _notes(self) -> dict[str, Any]:
        notes: dict[str, Any] = {"words": self.settings.cut}
        if self.settings.topic:
            notes["context"] = f"a document: its first {self.settings.topic.document} content words"
        return notes


def load_trained_tokenizer(folder: Path) -> WordTokenizer:
    """The words of a trained model.

    Raises BadInput where the files are damaged.
    """
    settings = read_record(folder).settings
    words = WordList(read_words(folder).words)
    return WordTokenizer(words, cut=settings.cut, lower=settings.casing == "lower")


def describe_trained(folder: Path) -> ModelDescription:
    """What a folder of `felicity train` holds, from its record and the header of its weights."""
    weights = find_weights(folder)
    settings = read_record(folder).settings
    tensors = read_tensors(weights)
    return ModelDescription(
        architecture=settings.family,
        model_type=settings.family,
        parameters=sum(prod(shape) for _, shape in tensors.values()),
        window=None,
        vocabulary=len(read_words(folder)),
        dtype="F32",
        size=weights.stat().st_size,
    )
