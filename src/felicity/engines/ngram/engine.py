"""n-gram models: log p(word | the few words before it)."""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from felicity.core.engine import NO_EXTRAS, EngineInfo, Sampling, TokenExtras
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.causal import continue_words, fill_words, score_next
from felicity.engines.ngram.arpa import read_arpa, read_header
from felicity.engines.ngram.kenlm_file import KenlmModel, read_ngram_counts
from felicity.engines.ngram.model import NgramModel
from felicity.engines.runtime import (
    Compute,
    build_encodings,
    build_tokens,
    refuse_nonfinite,
    refuse_word_model_options,
)
from felicity.engines.sources import ModelDescription, ModelSource
from felicity.engines.tokenizing import Encoded, Encoder
from felicity.engines.words import (
    UNKNOWN,
    ListedVocabulary,
    WordTokenizer,
    build_word_encoder,
    describe_word_model,
    encode_words,
    is_kenlm,
    mark_boundaries,
    refuse_extras,
)

# Scores do not depend on other prompts; this is the rounding of stored values.
NOISE = 1e-5
CHUNK = 8192


class NgramEngine:
    """Scores with an ARPA file or a KenLM binary, loaded at the first call that needs it."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        compute: Compute | None = None,
    ) -> None:
        refuse_word_model_options(compute or Compute(), models="n-gram", processor=True)
        self._source = source
        self._description = description
        self._policy = policy

    @cached_property
    def model(self) -> NgramModel | KenlmModel:
        """The model in memory, or KenLM's model."""
        path = self._source.folder
        with self._source.files.reading():
            return KenlmModel.load(path) if is_kenlm(path) else read_arpa(path)

    @cached_property
    def encoder(self) -> Encoder:
        """The words of the model under the policy."""
        with self._source.files.reading():
            tokenizer = load_ngram_tokenizer(self._source.folder)
        if isinstance(tokenizer.vocabulary, KenlmModel):
            self.model = tokenizer.vocabulary
        return build_word_encoder(tokenizer, self._policy, name=self._source.name)

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and its settings."""
        digest = self._source.files.digest(self._source.folder)
        info = describe_word_model(
            self.encoder,
            name=self._source.name,
            family="ngram",
            weights=digest,
            vocabulary=digest,
            parameters=self._description.parameters,
            noise=NOISE,
            # KenLM looks words up but does not list them, so that no best word can be found.
            can=(
                "score",
                "more",
                "boundary",
                *(() if is_kenlm(self._source.folder) else ("fill", "generate")),
            ),
            notes=self._source.details | {"words": self.encoder.tokenizer.splitting},
        )
        self._source.files.confirm()
        return info

    def refuse_changed(self) -> None:
        """Check that the file is still that of `info`.

        Raises BadInput.
        """
        self._source.files.refuse_changed()

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the vocabulary alone."""
        parts = [
            build_encodings(self._encode(chunk), self.encoder.tokenizer, window=self.encoder.window)
            for chunk in prompts.iter_slices(CHUNK)
        ]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, some thousands of prompts at a time; those in `done` are skipped.

        Raises NotPossible if a text has a word that a closed vocabulary lacks.
        """
        refuse_extras(extras, name=self._source.name)
        for chunk in prompts.iter_slices(CHUNK):
            rest = chunk.filter(~pl.col("request").is_in(list(done))) if done else chunk
            if rest.is_empty():
                continue
            encoded = self._encode(rest)
            nats = self.model.score(encoded.ids, encoded.bounds)[encoded.wanted]
            refuse_nonfinite(nats, name=self._source.name)
            records = nats.astype([("logprob", np.float32)])
            tokens = build_tokens(encoded, np.arange(len(encoded)), records, self.encoder.tokenizer)
            yield mark_boundaries(tokens, extras)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable words after the text before each frame's blank."""
        return fill_words(self.encoder, frames, k=k, name=self._source.name, predict=self._predict)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate | the text before the blank)."""
        return score_next(self, frames, candidates, unknown=UNKNOWN, name=self._source.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt continued word by word."""
        return continue_words(
            self.encoder, prompts, sampling=sampling, name=self._source.name, predict=self._predict
        )

    def _predict(self, histories: list[np.ndarray]) -> np.ndarray:
        """Nats of every word after each history; histories that end alike are scored once."""
        words = len(self.encoder.tokenizer)
        reach = self._order - 1
        predictions: dict[tuple[int, ...], np.ndarray] = {}
        for history in histories:
            end = tuple(history[len(history) - min(reach, len(history)) :].tolist())
            if end not in predictions:
                rows = np.column_stack([np.tile(np.array(end, dtype=np.int64), (words, 1)), np.arange(words)])
                bounds = np.arange(words + 1) * (len(end) + 1)
                predictions[end] = self.model.score(rows.ravel(), bounds)[len(end) :: len(end) + 1]
        ends = [tuple(one[len(one) - min(reach, len(one)) :].tolist()) for one in histories]
        return np.stack([predictions[end] for end in ends])

    @cached_property
    def _order(self) -> int:
        path = self._source.folder
        return len(read_ngram_counts(path) if is_kenlm(path) else read_header(path)[0].counts)

    def _encode(self, prompts: pl.DataFrame) -> Encoded:
        return encode_words(self.encoder, prompts, name=self._source.name)


def load_ngram_tokenizer(path: Path) -> WordTokenizer:
    """The words of an n-gram file, without its longer n-grams.

    Raises BadInput if the file is damaged, NotPossible if KenLM is needed and not installed.
    """
    if is_kenlm(path):
        return WordTokenizer(KenlmModel.load(path), splitting="vocabulary")
    header, words = read_header(path)
    return WordTokenizer(ListedVocabulary(words), splitting=header.splitting, lower=header.lower)


def describe_ngram(path: Path) -> ModelDescription:
    """What a file contains, from its header."""
    counts = read_ngram_counts(path) if is_kenlm(path) else read_header(path)[0].counts
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
