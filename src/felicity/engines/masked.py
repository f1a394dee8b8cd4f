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
from felicity.engines.picking import Picker


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
    settled = policy.but(bos="tokenizer", pll=pll)
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
    """A masked model's prediction of the first hidden token."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.picker = Picker(model.base_model)

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
            return self.picker.read(lambda: self._model(**inputs).logits, rows, places)


MASKED = Way(
    family="masked",
    auto="AutoModelForMaskedLM",
    encoder=build_masked_encoder,
    lead=lambda _encoder: [],
    hide=hide_tokens,
    reader=MaskedReader,
    kind=lambda _policy: "pseudo",
)
