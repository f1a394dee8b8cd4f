"""Masked models: pseudo-log-likelihood, each token predicted from both its sides.

With `original` (Salazar et al. 2020) one token is masked at a time. A word of several tokens is then
predicted while most of it is visible, which makes long rare words look probable; with `word_l2r` (Kauf &
Ivanova 2023) the tokens to the right within the same word are masked as well.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NO_EXTRAS, EngineInfo, TokenExtras
from felicity.core.errors import NotPossible
from felicity.core.memo import versions
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.masked.fill import fill_masked, score_masked
from felicity.engines.runtime import (
    UNIT_TOKENS,
    Compute,
    MaskedCopies,
    MaskedScorer,
    PositionSelector,
    Predictor,
    TokenScorer,
    build_encodings,
    build_info,
    build_padding_sample,
    build_tokens,
    choose_batches,
    find_switching,
    find_window,
    load_tokenizer,
    load_weights,
    refuse_long_sequences,
    refuse_nonfinite,
    restore_attention,
    split_units,
)
from felicity.engines.sources import ModelDescription, ModelSource
from felicity.engines.tokenizing import Encoded, Encoder

CHUNK = 1024
# Of these, earlier versions stored numbers that depended on the batch.
BATCH_DEPENDENT = ("fnet", "funnel", "big_bird", "convbert", "yoso", "mobilebert", "reformer")


@dataclass(frozen=True, kw_only=True)
class ClozeFamily:
    """What is specific to a family of models.

    encoder: the tokenizer under the policy, with `auto` resolved. lead: ids before every text.
    mask: the masked copies of some sequences. predictor: the model as a Predictor.
    kind: what a log-probability means under the policy. half: whether half precision works.
    """

    name: str
    auto: str
    encoder: Callable[..., Encoder]
    lead: Callable[[Encoder], list[int]]
    mask: Callable[[Encoded, range, Policy], MaskedCopies]
    predictor: Callable[[Any], Predictor]
    kind: Callable[[Policy], str]
    half: bool = True


class ClozeEngine:
    """Scores by masking tokens; weights are loaded at the first call that needs them."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        family: ClozeFamily,
        compute: Compute | None = None,
    ) -> None:
        self._source = source
        self._description = description
        self._policy = policy
        self._family = family
        self._compute = compute or Compute()
        if self._compute.dtype != "float32" and not family.half:
            raise NotPossible(f"'{source.name}' runs in float32 only; omit --dtype.")

    @cached_property
    def encoder(self) -> Encoder:
        """The tokenizer under the policy."""
        tokenizer = load_tokenizer(self._source.folder, name=self._source.name)
        window = find_window(self._description, tokenizer) or sys.maxsize
        encoder = self._family.encoder(tokenizer, self._policy, window=window, name=self._source.name)
        return replace(encoder, vocabulary=self._description.vocabulary)

    @cached_property
    def masked_scorer(self) -> MaskedScorer:
        """The model with its mask and padding tokens; loads it."""
        model = load_weights(self._source, self._family.auto, compute=self._compute)
        tokenizer = self.encoder.tokenizer
        scorer = MaskedScorer(
            predictor=self._family.predictor(model),
            mask_id=tokenizer.mask_token_id,
            pad_id=tokenizer.pad_token_id or 0,
            vocabulary=model.config.vocab_size,
        )
        key = {
            "key": self._info.key,
            "device": [self._compute.device, self._compute.device_map],
            "versions": versions("torch", "transformers", "felicity"),
        }
        score = self._score_sample(scorer)
        batches = choose_batches(score, model, name=self._source.name, dtype=self._compute.dtype, key=key)
        return replace(scorer, batches=batches)

    def _score_sample(self, scorer: MaskedScorer) -> Callable[[str], np.ndarray]:
        """Scores the first and last token of a few texts, batched in the way that is asked for."""
        encoded = self._encode(build_padding_sample())
        fitting = np.flatnonzero(encoded.lengths <= self.encoder.window).tolist()
        parts = [self._mask(encoded, range(index, index + 1)) for index in fitting]
        sequences = [sequence for (sequence,), _ in parts]
        ends = [copies.take(np.unique([0, len(copies) - 1])) for _, copies in parts if len(copies)]
        copies = MaskedCopies.join(ends, [index for index, (_, targets) in enumerate(parts) if len(targets)])

        def score(batches: str) -> np.ndarray:
            records = replace(scorer, batches=batches).score(sequences, copies, TokenScorer())
            return np.asarray(records["logprob"])

        return score

    @property
    def info(self) -> EngineInfo:
        """What the model is and its settings; once it is loaded, also how its inputs are batched."""
        if "masked_scorer" not in self.__dict__:
            return self._info
        return replace(self._info, notes=self._info.notes | {"batches": self.masked_scorer.batches})

    @cached_property
    def _info(self) -> EngineInfo:
        return build_info(
            self._source,
            self._description,
            family=self._family.name,
            kind=self._family.kind(self.encoder.policy),
            policy=self.encoder.policy,
            tokenizer=self.encoder.tokenizer,
            can=("score", "more", "fill"),
            dtype=self._compute.dtype,
            # Earlier versions stored numbers that depended on the batch.
            scoring=2 if self._description.model_type in BATCH_DEPENDENT else 1,
        )

    def refuse_changed(self) -> None:
        """Check that the files are still those of `info`.

        Raises BadInput.
        """
        self._source.files.refuse_changed()

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(self._encode(chunk)) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, one frame per finished unit of texts; units that are wholly in `done` are skipped.

        Raises BadInput if a text does not fit into the model's window, NotPossible for word boundaries.
        """
        if extras.boundary:
            raise NotPossible(
                f"'{self._source.name}' does not read from left to right, so it has no probabilities of word "
                "boundaries; use boundary='plain'."
            )
        for chunk in prompts.iter_slices(CHUNK):
            encoded = self._encode(chunk)
            refuse_long_sequences(self._count(encoded), window=self.encoder.window, name=self._source.name)
            cost = encoded.count(encoded.wanted) * (encoded.lengths + len(self._lead))
            for unit in split_units(cost, budget=UNIT_TOKENS):
                if not all(encoded.request[i] in done for i in unit):
                    yield self._score(encoded, unit, TokenScorer(extras))

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable tokens for each frame's blank."""
        return fill_masked(self.masked_scorer, self.encoder, frames, k=k, **self._setting)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate in the blank), its tokens unmasked from left to right."""
        return score_masked(self.masked_scorer, self.encoder, frames, candidates, **self._setting)

    @property
    def _setting(self) -> dict[str, Any]:
        return {"lead": self._lead, "left": self._left, "name": self._source.name}

    @property
    def _left(self) -> bool:
        return self._family.kind(self.encoder.policy) == "left-to-right"

    @cached_property
    def _lead(self) -> np.ndarray:
        return np.array(self._family.lead(self.encoder), dtype=np.int64)

    def _encode(self, prompts: pl.DataFrame) -> Encoded:
        encoded = self.encoder.encode(prompts)
        # Only a left-to-right prediction needs something on the left.
        if self._left and not len(self._lead):
            return encoded
        return replace(encoded, wanted=encoded.of_text)

    def _count(self, encoded: Encoded) -> pl.DataFrame:
        return build_encodings(encoded, self.encoder.tokenizer, window=self.encoder.window)

    def _score(self, encoded: Encoded, unit: range, scorer: TokenScorer) -> pl.DataFrame:
        records = self.masked_scorer.score(*self._mask(encoded, unit), scorer)
        refuse_nonfinite(records["logprob"], name=self._source.name)
        return build_tokens(encoded, np.array(unit), records, self.encoder.tokenizer)

    def _mask(self, encoded: Encoded, unit: range) -> tuple[list[np.ndarray], MaskedCopies]:
        """The sequences of some texts and their masked copies, with the lead before them."""
        copies = shift(self._family.mask(encoded, unit, self.encoder.policy), len(self._lead))
        bounds = encoded.bounds
        return [np.concatenate([self._lead, encoded.ids[bounds[i] : bounds[i + 1]]]) for i in unit], copies


def shift(copies: MaskedCopies, by: int) -> MaskedCopies:
    """The same copies for sequences with `by` further tokens at the beginning."""
    return MaskedCopies(
        copies.sequence, copies.begin + by, copies.end + by, copies.length + by, copies.target
    )


def build_masked_encoder(tokenizer: Any, policy: Policy, *, window: int, name: str) -> Encoder:
    """The tokenizer with its own special tokens around context and text, one segment.

    Raises NotPossible if the policy asks for other special tokens or there is no mask token.
    """
    if policy.bos not in ("auto", "tokenizer", "alone") or policy.eos != "none":
        raise NotPossible(
            f"'{name}' is a masked model, which reads a text between its tokenizer's own special tokens; "
            "omit --bos and --eos."
        )
    if tokenizer.mask_token_id is None:
        raise NotPossible(
            f"The tokenizer of '{name}' has no mask token, so it cannot be scored as a masked model."
        )
    pll = "word_l2r" if policy.pll == "auto" else policy.pll
    resolved = policy.replace(bos="tokenizer", pll=pll)
    return Encoder.build(tokenizer, resolved, window=window, name=name, words=True)


def mask_tokens(encoded: Encoded, sequences: range, policy: Policy) -> MaskedCopies:
    """One copy per token of the texts, with it masked alone or with the rest of its word."""
    first, last = encoded.bounds[sequences.start], encoded.bounds[sequences.stop]
    places = first + np.flatnonzero(encoded.wanted[first:last])
    row = np.searchsorted(encoded.bounds, places, side="right") - 1
    ends = places + 1
    if policy.pll == "word_l2r":
        ends = find_word_ends(encoded, places, row)
    return MaskedCopies(
        sequence=row - sequences.start,
        begin=places - encoded.bounds[row],
        end=ends - encoded.bounds[row],
        length=encoded.lengths[row],
        target=encoded.ids[places],
    )


def find_word_ends(encoded: Encoded, places: np.ndarray, row: np.ndarray) -> np.ndarray:
    """For each of these tokens, in order, the end of its word within the text."""
    ends = places + 1
    if encoded.word is None:
        return ends
    word = encoded.word[places]
    for k in range(len(places) - 2, -1, -1):
        neighbours = places[k + 1] == places[k] + 1 and row[k] == row[k + 1]
        if neighbours and word[k] == word[k + 1] and word[k] >= 0:
            ends[k] = ends[k + 1]
    return ends


class MaskedPredictor:
    """A masked model's prediction of the first masked token."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._switching = find_switching(model)
        self.selector = PositionSelector(model.base_model)

    def __call__(self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, _end: np.ndarray, /) -> Any:
        import torch

        device = self._model.device
        seen = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        inputs = {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(seen).to(device),
        }
        rows, places = torch.arange(len(ids), device=device), torch.from_numpy(begin).to(device)
        with torch.inference_mode():
            return self.selector.logits_at(lambda: self._read(**inputs), rows, places)

    def _read(self, **inputs: Any) -> Any:
        restore_attention(self._switching)
        return self._model(**inputs).logits


MASKED = ClozeFamily(
    name="masked",
    auto="AutoModelForMaskedLM",
    encoder=build_masked_encoder,
    lead=lambda _encoder: [],
    mask=mask_tokens,
    predictor=MaskedPredictor,
    kind=lambda _policy: "pseudo",
)
