"""Encoder-decoder forward passes: what the encoder reads, what the decoder scores, and the batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from felicity.core.casing import apply_casing
from felicity.core.errors import NotPossible
from felicity.engines.masked import find_word_ends
from felicity.engines.runtime import (
    ALONE,
    LOGITS,
    PADDED,
    PositionSelector,
    TokenScorer,
    find_switching,
    group_equal,
    normalize_logits,
    restore_attention,
)
from felicity.engines.runtime import MASKED_BATCH_TOKENS as BATCH_TOKENS
from felicity.engines.tokenizing import Encoded, Encoder, split_at_sentences

SENTINEL = "<extra_id_0>"


@dataclass(frozen=True)
class Sources:
    """Source token ids, one entry per text; tokens of context, and sentences dropped from it."""

    ids: list[np.ndarray]
    n_tokens: np.ndarray
    n_dropped: np.ndarray

    @classmethod
    def none(cls, size: int) -> "Sources":
        """Empty sources."""
        return cls([np.empty(0, np.int64)] * size, np.zeros(size, np.int64), np.zeros(size, np.int64))


def encode_sources(prompts: pl.DataFrame, encoder: Encoder) -> Sources:
    """The contexts between the tokenizer's special tokens, old sentences dropped if the policy allows it."""
    written = prompts["context_text"].fill_null("").to_list()
    contexts = [apply_casing(context, encoder.policy.casing) for context in written]
    rows = encoder.tokenizer(contexts, verbose=False)["input_ids"] if contexts else []
    around = len(encoder.tokenizer("")["input_ids"])
    dropped = np.zeros(len(rows), np.int64)
    if encoder.policy.overflow == "drop":
        for i in [i for i, row in enumerate(rows) if len(row) > encoder.window]:
            sentences = split_at_sentences(contexts[i])
            while sentences and len(rows[i]) > encoder.window:
                sentences = sentences[1:]
                dropped[i] += 1
                rows[i] = encoder.tokenizer("".join(sentences), verbose=False)["input_ids"]
    ids = [np.array(row, dtype=np.int64) for row in rows]
    return Sources(ids, np.array([len(row) - around for row in rows], dtype=np.int64), dropped)


@dataclass(frozen=True)
class DecoderJob:
    """The encoder reads `source`; the decoder's tokens from `begin` on are scored."""

    source: np.ndarray
    decoder: np.ndarray
    begin: int


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of an encoder-decoder.

    front, behind: the tokenizer's special tokens around a source. start: the decoder's begin token.
    gap: the token for missing text; None if the model has none. rewrites: a gap is filled by repeating
    the whole text.
    """

    front: list[int]
    behind: list[int]
    start: int
    gap: int | None
    rewrites: bool

    @classmethod
    def find(cls, tokenizer: Any, start: int) -> "SpecialTokens":
        """The layout according to the tokenizer."""
        output = tokenizer("a", return_special_tokens_mask=True)
        ids, special = output["input_ids"], output["special_tokens_mask"]
        inner = [index for index, bit in enumerate(special) if not bit]
        sentinel = SENTINEL in tokenizer.get_vocab()
        gap = tokenizer.convert_tokens_to_ids(SENTINEL) if sentinel else tokenizer.mask_token_id
        return cls(ids[: inner[0]], ids[inner[-1] + 1 :], start, gap, not sentinel)

    def write(self, ids: np.ndarray, source: np.ndarray, first: int) -> DecoderJob:
        """The decoder writes all of `ids`; the text starts at `first`."""
        decoder = np.concatenate([[self.start], ids])
        return DecoderJob(source, decoder, 1 + first)

    def fill(self, ids: np.ndarray, begin: int, end: int) -> DecoderJob:
        """The decoder fills the gap that `ids[begin:end]` leaves."""
        if self.gap is None:
            raise NotPossible("The model's tokenizer has no sentinel or mask token, so it cannot fill gaps.")
        source = np.concatenate([ids[:begin], [self.gap], ids[end:], np.array(self.behind, dtype=np.int64)])
        if self.rewrites:
            return DecoderJob(source, np.concatenate([[self.start], ids[:end]]), 1 + begin)
        return DecoderJob(source, np.concatenate([[self.start, self.gap], ids[begin:end]]), 2)


def build_jobs(
    encoded: Encoded, unit: range, *, method: str, layout: SpecialTokens, sources: Sequence[np.ndarray]
) -> Iterator[DecoderJob]:
    """The jobs that score some texts, in the order of their tokens; `sources` are used for `target`."""
    for i in unit:
        first = encoded.bounds[i]
        ids = encoded.ids[first : encoded.bounds[i + 1]]
        targets = first + np.flatnonzero(encoded.of_text[first : encoded.bounds[i + 1]])
        if method == "target":
            yield layout.write(ids, sources[i], int(targets[0] - first))
        elif method == "span":
            yield layout.fill(ids, int(targets[0] - first), int(targets[-1] + 1 - first))
        else:
            yield from _fill_words(encoded, targets, ids, layout)


def _fill_words(
    encoded: Encoded, targets: np.ndarray, ids: np.ndarray, layout: SpecialTokens
) -> Iterator[DecoderJob]:
    first = int(np.searchsorted(encoded.bounds, targets[0], side="right")) - 1
    start = encoded.bounds[first]
    ends = find_word_ends(encoded, targets, np.full(len(targets), first))
    position = 0
    while position < len(targets):
        size = int(ends[position] - targets[position])
        begin = int(targets[position] - start)
        yield layout.fill(ids, begin, begin + size)
        position += size


class Seq2SeqPredictor:
    """The log-probabilities of a decoder's tokens; `batches` says which jobs share a forward pass."""

    def __init__(self, model: Any, *, pad: int) -> None:
        self.batches = PADDED
        self._model = model
        self._pad = pad
        self._switching = find_switching(model)
        self.selector = PositionSelector(model.get_decoder())

    def score(self, jobs: Sequence[DecoderJob], scorer: TokenScorer) -> list[np.ndarray]:
        """Records of each job's scored tokens: log p(token | source, the tokens before it)."""
        values: list[np.ndarray] = [np.empty(0)] * len(jobs)
        for batch in self._plan(jobs):
            targets = [jobs[i].decoder[jobs[i].begin :] for i in batch]
            wanted = [np.arange(jobs[i].begin - 1, len(jobs[i].decoder) - 1) for i in batch]
            logits = self._forward([jobs[i] for i in batch], [jobs[i].decoder[:-1] for i in batch], wanted)
            flat = scorer.score(logits, np.arange(len(logits)), np.concatenate(targets))
            ends = np.cumsum([len(part) for part in targets])
            for i, part in zip(batch, np.split(flat, ends[:-1]), strict=True):
                values[i] = part
        return values

    def predict(self, jobs: Sequence[DecoderJob]) -> Iterator[tuple[int, np.ndarray]]:
        """For each job, the log-probabilities over the vocabulary for the token at `begin`."""
        for batch in self._plan(jobs):
            written = [jobs[i].decoder[: jobs[i].begin] for i in batch]
            last = [np.array([len(ids) - 1]) for ids in written]
            logits = self._forward([jobs[i] for i in batch], written, last)
            yield from zip(batch, normalize_logits(logits), strict=True)

    def _plan(self, jobs: Sequence[DecoderJob]) -> list[list[int]]:
        """Jobs, longest first, in batches of bounded tokens and logits."""
        if self.batches == PADDED:
            return self._plan_padded(jobs)
        if self.batches == ALONE:
            return [[index] for index in range(len(jobs))]
        batches = []
        for group in group_equal([(len(job.source), len(job.decoder), job.begin) for job in jobs]):
            planned = self._plan_padded([jobs[index] for index in group])
            batches += [group[batch].tolist() for batch in planned]
        return batches

    def _plan_padded(self, jobs: Sequence[DecoderJob]) -> list[list[int]]:
        most = max(1, LOGITS // self._model.config.get_text_config().vocab_size)
        size = np.array([len(job.source) + len(job.decoder) for job in jobs])
        order = np.argsort(-size, kind="stable")
        batches: list[list[int]] = []
        begin = 0
        while begin < len(order):
            longest = int(size[order[begin]])
            rows = max(1, min(BATCH_TOKENS // longest, most // longest))
            batches.append([int(i) for i in order[begin : begin + rows]])
            begin += rows
        return batches

    def _forward(
        self, jobs: Sequence[DecoderJob], written: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
    ) -> Any:
        """Logits at the wanted positions of the decoders' inputs, one job after the other."""
        import torch

        device = self._model.device
        sources = list({job.source.tobytes(): job.source for job in jobs}.values())
        row_of = {source.tobytes(): row for row, source in enumerate(sources)}
        row = torch.tensor([row_of[job.source.tobytes()] for job in jobs], device=device)
        rows = np.repeat(np.arange(len(jobs)), [len(part) for part in wanted])
        places = np.concatenate(wanted)
        with torch.inference_mode():
            ids, seen = self._pad_rows(sources)
            restore_attention(self._switching)
            states = self._model.get_encoder()(input_ids=ids, attention_mask=seen)[0]
            inputs = {
                "encoder_outputs": (states[row],),
                "attention_mask": seen[row],
                "decoder_input_ids": self._pad_rows(written)[0],
                "use_cache": False,
            }
            return self.selector.logits_at(
                lambda: self._model(**inputs).logits,
                torch.from_numpy(rows).to(device),
                torch.from_numpy(places).to(device),
            )

    def _pad_rows(self, rows: Sequence[np.ndarray]) -> tuple[Any, Any]:
        import torch

        lengths = np.array([len(row) for row in rows])
        ids = np.full((len(rows), int(lengths.max())), self._pad, dtype=np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
        seen = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        device = self._model.device
        return torch.from_numpy(ids).to(device), torch.from_numpy(seen).to(device)
