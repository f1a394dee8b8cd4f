"""Masked models: pseudo-log-likelihood, each token predicted from those on both its sides.

With `original` (Salazar et al. 2020) one token is hidden at a time. A word of several tokens is then
predicted with most of itself in sight, which makes long rare words look likely; with `word_l2r` (Kauf &
Ivanova 2023) the rest of the word to the right is hidden as well.
"""

from typing import Any

import numpy as np

from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.cloze import Way
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.hiding import Copies

# Nats by which reading hidden tokens alone may differ from reading all: rounding.
TOLERANCE = 1e-3


def build_masked_encoder(tokenizer: Any, policy: Policy, *, window: int, name: str) -> Encoder:
    """The tokenizer with its own special tokens around context and text, one segment.

    Raises NotPossible where the policy asks for other special tokens or there is no mask token.
    """
    if policy.bos not in ("auto", "tokenizer") or policy.eos != "none":
        raise NotPossible(
            f"'{name}' is a masked model, which reads a text between its tokenizer's own special tokens; "
            "leave --bos and --eos as they are."
        )
    if tokenizer.mask_token_id is None:
        raise NotPossible(f"The tokenizer of '{name}' has no mask token, so no token can be hidden.")
    pll = "word_l2r" if policy.pll == "auto" else policy.pll
    settled = policy.but(bos="tokenizer", pll=pll, seq2seq="auto", order="auto", lead="auto")
    return Encoder.build(tokenizer, settled, window=window, name=name, words=True)


def hide_tokens(encoded: Encoded, sequences: range, policy: Policy) -> Copies:
    """A copy for every token of the texts, hidden by itself or with the rest of its word."""
    first, last = encoded.bounds[sequences.start], encoded.bounds[sequences.stop]
    places = first + np.flatnonzero(encoded.wanted[first:last])
    row = np.searchsorted(encoded.bounds, places, side="right") - 1
    ends = places + 1
    if policy.pll == "word_l2r":
        ends = find_word_ends(encoded, places, row)
    return Copies(
        sequence=row - sequences.start,
        begin=places - encoded.bounds[row],
        end=ends - encoded.bounds[row],
        length=encoded.lengths[row],
        target=encoded.ids[places],
    )


def find_word_ends(encoded: Encoded, places: np.ndarray, row: np.ndarray) -> np.ndarray:
    """For each of these tokens, in order, where its word ends within the text."""
    ends = places + 1
    if encoded.word is None:
        return ends
    word = encoded.word[places]
    for k in range(len(places) - 2, -1, -1):
        neighbours = places[k + 1] == places[k] + 1 and row[k] == row[k + 1]
        if neighbours and word[k] == word[k + 1] and word[k] >= 0:
            ends[k] = ends[k + 1]
    return ends


class MaskedReader:
    """The prediction head where a token is hidden, and nowhere else.

    Every such head works on one position at a time, so the positions asked for are picked from what the
    body gives before the head sees it. Where that does not give the numbers of the whole model, found
    out once, the head reads all positions.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._places: tuple[Any, Any] | None = None
        if model.base_model is not model:
            model.base_model.register_forward_hook(self._pick)
        self.sparse = model.base_model is not model and self._agrees()

    def __call__(self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, _end: np.ndarray, /) -> Any:
        return self._read(ids, lengths, begin, sparse=self.sparse)

    def _read(self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, *, sparse: bool) -> Any:
        import torch

        device = self._model.device
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        rows, places = torch.arange(len(ids), device=device), torch.from_numpy(begin).to(device)
        self._places = (rows, places) if sparse else None
        try:
            with torch.inference_mode():
                logits = self._model(
                    input_ids=torch.from_numpy(ids).to(device),
                    attention_mask=torch.from_numpy(mask.astype(np.int64)).to(device),
                ).logits
        finally:
            self._places = None
        return logits[0] if sparse else logits[rows, places]

    def _pick(self, _module: Any, _inputs: Any, output: Any) -> Any:
        if self._places is None:
            return output
        picked = output[0][self._places][None]
        if isinstance(output, tuple):
            return (picked, *output[1:])
        output["last_hidden_state"] = picked
        return output

    def _agrees(self) -> bool:
        import torch

        rows, width = 3, 4
        ids = 1 + np.arange(rows * width).reshape(rows, width) % (self._model.config.vocab_size - 1)
        lengths, begin = np.full(rows, width), np.array([2, 0, 3])
        whole = self._read(ids, lengths, begin, sparse=False)
        try:
            picked = self._read(ids, lengths, begin, sparse=True)
        except (RuntimeError, IndexError, KeyError, TypeError, ValueError, AttributeError):
            return False
        return whole.shape == picked.shape and bool(torch.allclose(whole, picked, atol=TOLERANCE))


MASKED = Way(
    family="masked",
    auto="AutoModelForMaskedLM",
    encoder=build_masked_encoder,
    lead=lambda _encoder: [],
    hide=hide_tokens,
    reader=MaskedReader,
    kind=lambda _policy: "pseudo",
)
