"""Hugging Face causal models: log p(token | everything before it)."""

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NO_EXTRAS, EngineInfo, Sampling, TokenExtras
from felicity.core.memo import versions
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.causal.batch_check import (
    BATCH_DEPENDENT,
    agrees_in_batches,
    batch_texts,
    find_rope_limit,
)
from felicity.engines.causal.fill import encode_prompt, fill_next, score_next
from felicity.engines.causal.forward import LENGTH_DEPENDENT_ROPE, score_trie
from felicity.engines.causal.llama import (
    HALF,
    MOST_PARAMETERS,
    Config,
    Llama,
    load_llama,
    read_llama_config,
)
from felicity.engines.causal.self_check import Check, check_tree, recall_check
from felicity.engines.causal.trie import Shape
from felicity.engines.runtime import (
    ALONE,
    PADDED,
    Compute,
    TokenScorer,
    build_info,
    build_tokens,
    choose_device,
    count_logit_rows,
    find_limits,
    free_logits_buffer,
    generate_texts,
    limit_batch_tokens,
    load_tokenizer,
    load_weights,
    refuse_long_prompts,
    refuse_long_sequences,
    refuse_nonfinite,
    score_batch,
    score_sequences,
    split_chunks,
)
from felicity.engines.sources import (
    ModelDescription,
    ModelSource,
    fingerprint_tokenizer,
    fingerprint_weights,
    read_config,
)
from felicity.engines.tokenizing import (
    BeginToken,
    Encoded,
    Encoder,
    choose_begin_token,
    find_word_begins,
    marks_words,
)

CHUNK = 8192


class CausalEngine:
    """Scores with a causal transformers model; weights are loaded at the first call that needs them."""

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
        policy = self._policy.replace(bos=self._begin.token) if self._begin else self._policy
        return Encoder.build(
            self._tokenizer,
            policy,
            window=self._window,
            name=self._source.name,
            vocabulary=self._description.vocabulary,
        )

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self._source.folder, name=self._source.name)

    @property
    def _window(self) -> int:
        return self._description.window or sys.maxsize

    @cached_property
    def _begin(self) -> BeginToken | None:
        """The begin token of `auto`; loads the model if it is met for the first time."""
        if self._policy.bos != "auto" or not self._tokenizer.is_fast:
            return None
        return choose_begin_token(
            self._tokenizer,
            lambda sequences: score_sequences(self.model, sequences),
            key={
                "weights": fingerprint_weights(self._source.folder, self._source.files.digest),
                "tokenizer": fingerprint_tokenizer(self._source.folder, self._source.files.digest),
            },
            window=self._window,
            vocabulary=self._description.vocabulary,
        )

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode."""
        return load_weights(self._source, "AutoModelForCausalLM", compute=self._compute)

    @cached_property
    def check(self) -> Check:
        """Whether the model can be computed over a trie; loads the model."""
        if self._scheduler == "plain":
            return Check(None, "requested")
        key = {
            "weights": self._info.weights,
            "tokenizer": self._info.tokenizer,
            "window": self.encoder.window,
            "device": [self._device, self._compute.device_map],
            "dtype": self._compute.dtype,
            "versions": versions("torch", "transformers", "felicity"),
        }
        recalled = recall_check(self._load, key)
        if recalled is not None:
            return recalled
        check = check_tree(
            self.model,
            self.encoder.tokenizer,
            window=self.encoder.window,
            dtype=self._compute.dtype,
            key=key,
            load_own=partial(self._load, True) if self._llama else None,
        )
        if check.tree and isinstance(check.tree.model, Llama):
            # One copy of the weights is enough until something other than scores is requested.
            del self.model
        return check

    def _load(self, native: bool) -> Any:
        """The model as transformers computes it, or as felicity does."""
        if not native:
            return self.model
        if self._llama is None:
            raise ValueError("this model needs transformers")
        with self._source.files.reading():
            return load_llama(
                self._source.folder, self._llama, name=self._source.name, dtype=self._compute.dtype
            )

    @cached_property
    def _llama(self) -> Config | None:
        """The configuration of a model that felicity can compute by itself on this device."""
        if self._compute.device_map or self._device != "cpu":
            return None
        return self._llama_config

    @cached_property
    def _llama_config(self) -> Config | None:
        if self._description.parameters > MOST_PARAMETERS:
            return None
        return read_llama_config(self._source.folder)

    @cached_property
    def _device(self) -> str:
        """The kind of device that the model is on."""
        if self._compute.device_map:
            return str(self.model.device.type)
        return choose_device(self._compute.device).partition(":")[0]

    @property
    def info(self) -> EngineInfo:
        """What the model is and its settings; once it is loaded, also which scheduler is used."""
        if "check" not in self.__dict__:
            return self._info
        scheduling = {"scheduler": self.check.scheduler, "scheduler_check": self.check.note}
        if "_batch_limit" in self.__dict__:
            scheduling["batches"] = ALONE if self._batch_limit == 0 else PADDED
        return replace(self._info, notes=self._info.notes | scheduling)

    @cached_property
    def _info(self) -> EngineInfo:
        info = build_info(
            self._source,
            self._description,
            family="causal",
            kind="left-to-right",
            policy=self.encoder.policy,
            tokenizer=self.encoder.tokenizer,
            can=(
                "score",
                "more",
                *(("boundary",) if marks_words(self.encoder.tokenizer) else ()),
                "fill",
                "generate",
            ),
            dtype=self._compute.dtype,
            scoring=self._scoring_version(),
        )
        return replace(info, notes=info.notes | self._begin.note) if self._begin else info

    def _scoring_version(self) -> int:
        """Above 1 for models whose scores of earlier versions depended on the batch or were less precise."""
        if self._compute.dtype in HALF and self._llama_config:
            return 3
        config = read_config(self._source.folder)
        rope = [config.get(name) for name in ("rope_parameters", "rope_scaling")]
        turned = any(kind in str(part) for part in rope for kind in LENGTH_DEPENDENT_ROPE)
        return 2 if turned or self._description.model_type in BATCH_DEPENDENT else 1

    def refuse_changed(self) -> None:
        """Check that the files are still those of `info`.

        Raises BadInput.
        """
        self._source.files.refuse_changed()

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(self.encoder.encode(chunk)) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, one frame per finished batch; batches that are wholly in `done` are skipped.

        Raises BadInput if a text does not fit into the model's window.
        """
        begins = self._word_begins if extras.boundary else None
        scorer = TokenScorer(extras, begins)
        for chunk in split_chunks(prompts, join=self.encoder.policy.join):
            encoded = self.encoder.encode(chunk)
            refuse_long_sequences(self._count(encoded), window=self.encoder.window, name=self._source.name)
            finished = np.array([request in done for request in encoded.request], dtype=bool)
            if finished.all():
                continue
            try:
                for sequences, records in self._score(encoded, finished, scorer):
                    refuse_nonfinite(records["logprob"], name=self._source.name)
                    yield build_tokens(encoded, sequences, records, self.encoder.tokenizer)
            finally:
                free_logits_buffer(self.check.tree.model if self.check.tree else self.model)

    def _score(
        self, encoded: Encoded, finished: np.ndarray, scorer: TokenScorer
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if tree := self.check.tree:
            most = count_logit_rows(tree.model)
            shape = Shape(batch=min(Shape.batch, most), window=min(Shape.window, most))
            yield from score_trie(tree, encoded, finished, shape, scorer)
            return
        budget = limit_batch_tokens(self.model)
        for batch in batch_texts(encoded.lengths, budget=budget, limit=self._batch_limit):
            if not finished[batch].all():
                yield batch, score_batch(self.model, encoded, batch, scorer)

    @cached_property
    def _batch_limit(self) -> int | None:
        """The longest text that is read in a padded batch; None if all are, 0 if none is."""
        window, dtype = self.encoder.window, self._compute.dtype
        if not agrees_in_batches(self.model, self.encoder.tokenizer, window=window, dtype=dtype):
            return 0
        return find_rope_limit(self.model.config.get_text_config())

    @cached_property
    def _word_begins(self) -> np.ndarray:
        return find_word_begins(self.encoder.tokenizer, name=self._source.name)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable tokens after the text before each frame's blank."""
        return fill_next(self.model, self.encoder, frames, k=k, name=self._source.name, alone=self._alone)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate | the text before the blank)."""
        unknown = self.encoder.tokenizer.unk_token
        return score_next(self, frames, candidates, unknown=unknown, name=self._source.name)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt continued."""
        rows = [encode_prompt(self.encoder, text, name=self._source.name) for text in prompts]
        limits = find_limits(rows, sampling, continues=True)
        refuse_long_prompts(rows, limits=limits, window=self._description.window, name=self._source.name)
        return generate_texts(
            self.model,
            self.encoder.tokenizer,
            prompts,
            rows,
            sampling=sampling,
            continues=True,
            alone=self._alone,
        )

    @property
    def _alone(self) -> bool:
        """Whether blanks and continuations are computed one at a time."""
        return self._description.model_type in BATCH_DEPENDENT

    def _count(self, encoded: Encoded) -> pl.DataFrame:
        n_own = encoded.count(encoded.of_text)
        unknown = self.encoder.tokenizer.unk_token_id
        # Byte-level tokenizers name an unknown token that they never produce.
        is_unknown = encoded.of_text & (encoded.ids == (-1 if unknown is None else unknown))
        if self.encoder.policy.eos != "none":
            is_unknown[encoded.bounds[1:] - 1] = False
        columns = {
            "n_tokens": n_own,
            "n_unscored": n_own - encoded.count(encoded.wanted),
            "n_across": encoded.n_across,
            "n_unknown": encoded.count(is_unknown),
            "n_context": encoded.lengths - n_own - self.encoder.count_begins(encoded),
            "n_dropped": encoded.n_dropped,
            "n_over": np.maximum(encoded.lengths - self.encoder.window, 0),
        }
        return pl.DataFrame({"request": encoded.request} | columns, schema=ENCODINGS)
