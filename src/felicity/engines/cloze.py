"""Engines that hide a token and predict it from what is left: masked models and XLNet."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NOTHING_MORE, EngineInfo, More
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.cloze_fill import fill_hidden, score_hidden
from felicity.engines.describe import ModelDescription
from felicity.engines.devices import Compute
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.hiding import UNIT_TOKENS, Copies, Hider, Predictor, cut_units
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
from felicity.engines.sources import ModelSource

CHUNK = 1024


@dataclass(frozen=True, kw_only=True)
class Way:
    """What is particular to a family.

    encoder: the tokenizer under the policy, with what is `auto` settled. lead: ids before every text.
    hide: the copies of some sequences. reader: the model as something that predicts hidden tokens.
    kind: what a log-probability means under the policy. half: whether it can be had in half precision.
    """

    family: str
    auto: str
    encoder: Callable[..., Encoder]
    lead: Callable[[Encoder], list[int]]
    hide: Callable[[Encoded, range, Policy], Copies]
    reader: Callable[[Any], Predictor]
    kind: Callable[[Policy], str]
    half: bool = True


class ClozeEngine:
    """Scores by hiding; weights are loaded at the first call that needs them."""

    def __init__(
        self,
        source: ModelSource,
        description: ModelDescription,
        *,
        policy: Policy,
        way: Way,
        compute: Compute | None = None,
    ) -> None:
        self._source = source
        self._description = description
        self._policy = policy
        self._way = way
        self._compute = compute or Compute()
        if self._compute.dtype != "float32" and not way.half:
            raise NotPossible(f"'{source.name}' can be computed in float32 only; leave --dtype out.")

    @cached_property
    def encoder(self) -> Encoder:
        """The tokenizer under the policy; its window is what the lead leaves."""
        tokenizer = load_tokenizer(self._source.folder, name=self._source.name)
        window = find_window(self._description, tokenizer) or sys.maxsize
        return self._way.encoder(tokenizer, self._policy, window=window, name=self._source.name)

    @cached_property
    def hider(self) -> Hider:
        """The model as something that predicts hidden tokens; loads it."""
        model = load_weights(
            self._source.folder, self._way.auto, name=self._source.name, compute=self._compute
        )
        tokenizer = self.encoder.tokenizer
        return Hider(
            read=self._way.reader(model),
            mask=tokenizer.mask_token_id,
            pad=tokenizer.pad_token_id or 0,
            vocabulary=model.config.vocab_size,
        )

    @cached_property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked, without its weights."""
        return build_info(
            self._source,
            self._description,
            family=self._way.family,
            kind=self._way.kind(self.encoder.policy),
            policy=self.encoder.policy,
            tokenizer=self.encoder.tokenizer,
            can=("score", "more", "fill"),
            dtype=self._compute.dtype,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        parts = [self._count(self._encode(chunk)) for chunk in prompts.iter_slices(CHUNK)]
        return pl.concat(parts) if parts else pl.DataFrame(schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, a frame whenever a unit of texts is done; units wholly in `done` are passed over.

        Raises BadInput where a text does not fit into the model's window, NotPossible for word boundaries.
        """
        if more.boundary:
            raise NotPossible(
                f"'{self._source.name}' does not read from left to right, so no word ends for it before the "
                "next begins; take words with boundary='plain'."
            )
        for chunk in prompts.iter_slices(CHUNK):
            encoded = self._encode(chunk)
            refuse_overlong(self._count(encoded), window=self.encoder.window, name=self._source.name)
            cost = encoded.count(encoded.wanted) * (encoded.lengths + len(self._lead))
            for unit in cut_units(cost, budget=UNIT_TOKENS):
                if not all(encoded.request[i] in done for i in unit):
                    yield self._score(encoded, unit, Reader(more))

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k likeliest tokens for each frame's blank."""
        return fill_hidden(self.hider, self.encoder, frames, k=k, **self._setting)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate in the blank), its tokens opened from left to right."""
        return score_hidden(self.hider, self.encoder, frames, candidates, **self._setting)

    @property
    def _setting(self) -> dict[str, Any]:
        return {"lead": self._lead, "left": self._left, "name": self._source.name}

    @property
    def _left(self) -> bool:
        return self._way.kind(self.encoder.policy) == "left-to-right"

    @cached_property
    def _lead(self) -> np.ndarray:
        return np.array(self._way.lead(self.encoder), dtype=np.int64)

    def _encode(self, prompts: pl.DataFrame) -> Encoded:
        encoded = self.encoder.encode(prompts)
        # Only what is predicted from the left, with nothing there, cannot be predicted.
        if self._left and not len(self._lead):
            return encoded
        return replace(encoded, wanted=encoded.own)

    def _count(self, encoded: Encoded) -> pl.DataFrame:
        return build_encodings(encoded, self.encoder.tokenizer, window=self.encoder.window)

    def _score(self, encoded: Encoded, unit: range, reader: Reader) -> pl.DataFrame:
        copies = shift(self._way.hide(encoded, unit, self.encoder.policy), len(self._lead))
        bounds = encoded.bounds
        sequences = [np.concatenate([self._lead, encoded.ids[bounds[i] : bounds[i + 1]]]) for i in unit]
        records = self.hider.score(sequences, copies, reader)
        refuse_no_number(records["logprob"], name=self._source.name)
        return build_tokens(encoded, np.array(unit), records, self.encoder.tokenizer)


def shift(copies: Copies, by: int) -> Copies:
    """The same copies of sequences that begin with `by` further tokens."""
    return Copies(copies.sequence, copies.begin + by, copies.end + by, copies.length + by, copies.target)
