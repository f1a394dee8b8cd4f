"""Encoder-decoders such as T5 and BART: log p(token | source, the tokens before it)."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.casing import apply_casing
from felicity.core.engine import NO_EXTRAS, EngineInfo, Sampling, TokenExtras
from felicity.core.errors import NotPossible
from felicity.core.memo import versions
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.runtime import (
    PADDED,
    UNIT_TOKENS,
    Compute,
    TokenScorer,
    build_encodings,
    build_info,
    build_padding_sample,
    build_tokens,
    choose_batches,
    find_window,
    generate_texts,
    load_tokenizer,
    load_weights,
    refuse_long_prompts,
    refuse_long_sequences,
    refuse_nonfinite,
    split_units,
)
from felicity.engines.seq2seq.fill import fill_gaps, score_gaps
from felicity.engines.seq2seq.forward import (
    DecoderJob,
    Seq2SeqPredictor,
    Sources,
    SpecialTokens,
    build_jobs,
    encode_sources,
)
from felicity.engines.sources import (
    ModelDescription,
    ModelSource,
    PrivateTensors,
    read_config,
    read_object,
    weight_files,
)
from felicity.engines.tokenizing import Encoded, Encoder, find_word_begins, marks_words

HEAD = "lm_head.weight"
CHUNK = 1024
# Of these, earlier versions stored numbers that depended on the batch.
BATCH_DEPENDENT = ("bigbird_pegasus", "fsmt")


def find_start(folder: Path, *, name: str) -> int:
    """The token that the decoder starts with.

    Raises NotPossible if no configuration file names one, BadInput if one is damaged.
    """
    settings = read_config(folder)
    path = folder / "generation_config.json"
    if path.is_file():
        settings |= {name: value for name, value in read_object(path).items() if value is not None}
    start = settings.get("decoder_start_token_id")
    if not isinstance(start, int):
        raise NotPossible(f"The configuration of '{name}' names no decoder_start_token_id; add it.")
    return start


def refuse_changed_head(model: Any, folder: Path, *, name: str) -> None:
    """Refuse a model whose output layer transformers has replaced by the embeddings.

    Its configurations of the T5 family say that the two are tied, even for models where they are not.

    Raises NotPossible.
    """
    import torch

    head = getattr(model, "lm_head", None)
    for file in weight_files(folder):
        if head is None or file.suffix != ".safetensors":
            continue
        with PrivateTensors(file) as tensors:
            if HEAD not in tensors.keys():  # noqa: SIM118 - not a mapping
                continue
            kept = tensors.get_tensor(HEAD).to(head.weight.dtype)
        if not torch.equal(kept, head.weight.detach().cpu()):
            raise NotPossible(
                f"This version of transformers replaces the output layer of '{name}' by its embeddings; "
                "install another version."
            )


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
        """The tokenizer under the policy; its leading special token goes before the decoder's text."""
        tokenizer, name = self._tokenizer, self._source.name
        if self._policy.bos not in ("auto", "tokenizer", "alone"):
            raise NotPossible(
                f"'{name}' is an encoder-decoder, whose decoder has its own begin token; omit --bos."
            )
        method = "target" if self._policy.seq2seq == "auto" else self._policy.seq2seq
        if method != "target" and self._policy.eos != "none":
            raise NotPossible(
                f"The end token is scored only with seq2seq='target', not '{method}'; omit --eos."
            )
        if method != "target" and self.layout.gap is None:
            raise NotPossible(
                f"The tokenizer of '{name}' has no sentinel or mask token; score with seq2seq='target'."
            )
        front = tokenizer.convert_ids_to_tokens(self.layout.front)
        if len(front) > 1:
            raise NotPossible(f"The tokenizer of '{name}' puts {len(front)} tokens before a text, not one.")
        resolved = self._policy.replace(bos=front[0] if front else "none", seq2seq=method)
        window = find_window(self._description, tokenizer) or sys.maxsize
        return Encoder.build(
            tokenizer,
            resolved,
            window=window,
            name=name,
            words=True,
            vocabulary=self._description.vocabulary,
        )

    @cached_property
    def layout(self) -> SpecialTokens:
        """The special tokens."""
        start = find_start(self._source.folder, name=self._source.name)
        return SpecialTokens.find(self._tokenizer, start)

    @cached_property
    def model(self) -> Any:
        """The model in evaluation mode."""
        with self._source.files.reading():
            model = load_weights(self._source, "AutoModelForSeq2SeqLM", compute=self._compute)
            refuse_changed_head(model, self._source.folder, name=self._source.name)
            return model

    @cached_property
    def predictor(self) -> Seq2SeqPredictor:
        """The model with its padding token; loads it."""
        predictor = Seq2SeqPredictor(self.model, pad=self._tokenizer.pad_token_id or 0)
        key = {
            "key": self._info.key,
            "device": [self._compute.device, self._compute.device_map],
            "versions": versions("torch", "transformers", "felicity"),
        }
        score = self._score_sample(predictor)
        predictor.batches = choose_batches(
            score, self.model, name=self._source.name, dtype=self._compute.dtype, key=key
        )
        return predictor

    def _score_sample(self, predictor: Seq2SeqPredictor) -> Callable[[str], np.ndarray]:
        """Scores a few texts, batched in the way that is asked for."""
        encoded, sources = self._encode(build_padding_sample())
        over = self._count(encoded, sources)["n_over"].to_numpy()
        jobs = []
        for index in np.flatnonzero(over == 0).tolist():
            parts = self._build_jobs(encoded, sources, range(index, index + 1))
            jobs += [parts[0], *parts[1:][-1:]]

        def score(batches: str) -> np.ndarray:
            predictor.batches = batches
            return np.concatenate([records["logprob"] for records in predictor.score(jobs, TokenScorer())])

        return score

    @property
    def info(self) -> EngineInfo:
        """What the model is and its settings; once it is loaded, also how its texts are batched."""
        if "predictor" not in self.__dict__:
            return self._info
        return replace(self._info, notes=self._info.notes | {"batches": self.predictor.batches})

    @cached_property
    def _info(self) -> EngineInfo:
        return build_info(
            self._source,
            self._description,
            family="seq2seq",
            kind="seq2seq",
            policy=self.encoder.policy,
            tokenizer=self._tokenizer,
            can=(
                "score",
                "more",
                *(("boundary",) if self._has_boundaries else ()),
                *(("fill",) if self.layout.gap is not None else ()),
                "generate",
            ),
            dtype=self._compute.dtype,
            # Earlier versions stored numbers that depended on the batch.
            scoring=2 if self._description.model_type in BATCH_DEPENDENT else 1,
        )

    def refuse_changed(self) -> None:
        """Check that the files are still those of `info`.

        Raises BadInput.
        """
        self._source.files.refuse_changed()

    @property
    def _has_boundaries(self) -> bool:
        """Whether the end of a word has a probability: not where the gaps are words."""
        return self.encoder.policy.seq2seq != "words" and marks_words(self._tokenizer)

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(*self._encode(chunk)) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, one frame per finished unit of texts; units that are wholly in `done` are skipped.

        Raises BadInput if context or text does not fit into the model's window.
        """
        if extras.boundary and self.encoder.policy.seq2seq == "words":
            raise NotPossible("With seq2seq='words' the ends of words are given; use boundary='plain'.")
        begins = find_word_begins(self._tokenizer, name=self._source.name) if extras.boundary else None
        scorer = TokenScorer(extras, begins)
        for chunk in prompts.iter_slices(CHUNK):
            encoded, sources = self._encode(chunk)
            refuse_long_sequences(
                self._count(encoded, sources), window=self.encoder.window, name=self._source.name
            )
            read = encoded.lengths + np.array([len(ids) for ids in sources.ids])
            often = encoded.count(encoded.of_text) if self.encoder.policy.seq2seq == "words" else 1
            for unit in split_units(read * often, budget=UNIT_TOKENS):
                if not all(encoded.request[i] in done for i in unit):
                    yield self._score(encoded, sources, unit, scorer)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable first tokens that the decoder puts into each blank."""
        return fill_gaps(self.predictor, self.encoder, self.layout, frames, k=k, name=self._source.name)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(the decoder starts to fill the blank with the candidate)."""
        return score_gaps(
            self.predictor, self.encoder, self.layout, frames, candidates, name=self._source.name
        )

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: the decoder's output after the encoder has read each prompt."""
        texts = [apply_casing(text, self._policy.casing) for text in prompts]
        rows = self._tokenizer(texts, verbose=False)["input_ids"]
        refuse_long_prompts(rows, limits=[0] * len(rows), window=self.info.window, name=self._source.name)
        refuse_long_prompts([[0]], limits=[sampling.tokens], window=self.info.window, name=self._source.name)
        alone = self.predictor.batches != PADDED
        return generate_texts(
            self.model, self._tokenizer, prompts, rows, sampling=sampling, continues=False, alone=alone
        )

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self._source.folder, name=self._source.name)

    def _encode(self, prompts: pl.DataFrame) -> tuple[Encoded, Sources]:
        """The decoder's texts and the encoder's sources."""
        if self.encoder.policy.seq2seq == "target":
            sources = encode_sources(prompts, self.encoder)
            prompts = prompts.with_columns(pl.lit(None, dtype=pl.String).alias("context_text"))
        else:
            sources = Sources.none(len(prompts))
        encoded = self.encoder.encode(prompts)
        return replace(encoded, wanted=encoded.of_text), sources

    def _count(self, encoded: Encoded, sources: Sources) -> pl.DataFrame:
        # The decoder's begin token, or the special tokens around the source, need room as well.
        room = self.encoder.window - max(1, len(self.layout.behind))
        counts = build_encodings(encoded, self._tokenizer, window=room)
        over = np.maximum(np.array([len(ids) for ids in sources.ids]) - self.encoder.window, 0)
        return counts.with_columns(
            n_context=pl.col("n_context") + pl.Series(sources.n_tokens, dtype=pl.Int64),
            n_dropped=pl.col("n_dropped") + pl.Series(sources.n_dropped, dtype=pl.Int64),
            n_over=pl.max_horizontal("n_over", pl.Series(over, dtype=pl.Int64)),
        )

    def _score(self, encoded: Encoded, sources: Sources, unit: range, scorer: TokenScorer) -> pl.DataFrame:
        jobs = self._build_jobs(encoded, sources, unit)
        # The tokens of a text are scored in order, job by job.
        records = np.concatenate(self.predictor.score(jobs, scorer))
        refuse_nonfinite(records["logprob"], name=self._source.name)
        return build_tokens(encoded, np.array(unit), records, self._tokenizer)

    def _build_jobs(self, encoded: Encoded, sources: Sources, unit: range) -> list[DecoderJob]:
        method = self.encoder.policy.seq2seq
        return list(build_jobs(encoded, unit, method=method, layout=self.layout, sources=sources.ids))
