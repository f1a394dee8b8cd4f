"""XLNet: a token predicted from any part of the rest, selected by a permutation mask.

XLNet was trained on long texts and fails on a short sentence alone, so a longer text precedes everything
(Lau et al. 2020). The predicted token is masked from all positions; with `left`, so is everything after it,
and the text before it is read in both directions, as in XLNet's training.
"""

from importlib.resources import files
from typing import Any

import numpy as np

from felicity.core.casing import apply_casing
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.masked.engine import ClozeFamily, mask_tokens
from felicity.engines.runtime import MaskedCopies
from felicity.engines.tokenizing import Encoded, Encoder

# Ends a document in XLNet's training; here it separates the lead from the text.
DOCUMENT_END = "<eod>"


def build_xlnet_encoder(tokenizer: Any, policy: Policy, *, window: int, name: str) -> Encoder:
    """The tokenizer with the policy's `auto` fields resolved.

    Raises NotPossible if the tokenizer is to add its own special tokens, which XLNet puts after the text.
    """
    if policy.bos == "tokenizer":
        raise NotPossible(
            f"'{name}' is an XLNet, whose tokenizer adds nothing before a text; use --bos auto."
        )
    begin = policy.bos
    # The text before everything else ends here, whether a context follows or not.
    if begin in ("auto", "alone"):
        begin = DOCUMENT_END if DOCUMENT_END in tokenizer.get_vocab() else "none"
    order = "both" if policy.order == "auto" else policy.order
    pll = "auto" if order == "left" else "word_l2r" if policy.pll == "auto" else policy.pll
    lead = read_lead() if policy.lead == "auto" else policy.lead
    resolved = policy.replace(bos=begin, order=order, pll=pll, lead=lead)
    return Encoder.build(tokenizer, resolved, window=window, name=name, words=True)


def read_lead() -> str:
    """The paragraph before every text, unless the policy gives another."""
    return files("felicity.engines.masked").joinpath("lead.txt").read_text(encoding="utf-8").strip()


def encode_lead(encoder: Encoder) -> list[int]:
    """The lead's tokens."""
    policy = encoder.policy
    if policy.lead == "none":
        return []
    text = apply_casing(policy.lead, policy.casing)
    return list(encoder.tokenizer(text, add_special_tokens=False)["input_ids"])


def mask_in_order(encoded: Encoded, sequences: range, policy: Policy) -> MaskedCopies:
    """One copy per token of the texts, masked alone, with the rest of its word, or with all that follows."""
    copies = mask_tokens(encoded, sequences, policy)
    if policy.order == "both":
        return copies
    # What is masked from every position can be left out.
    return MaskedCopies(copies.sequence, copies.begin, copies.begin + 1, copies.begin + 1, copies.target)


class XlnetPredictor:
    """XLNet's prediction of the first masked token, from all tokens that are not masked."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, end: np.ndarray, /) -> Any:
        import torch

        position = np.arange(ids.shape[1])
        masked = (position >= begin[:, None]) & (position < end[:, None])
        seen = position < lengths[:, None]
        unseen = np.repeat(masked[:, None, :], ids.shape[1], axis=1)
        asked = (position == begin[:, None])[:, None, :]
        device = self._model.device

        def numbers(array: np.ndarray) -> Any:
            return torch.from_numpy(array).to(device, self._model.dtype)

        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.from_numpy(ids).to(device),
                attention_mask=numbers(seen),
                perm_mask=numbers(unseen),
                target_mapping=numbers(asked),
                use_mems=False,
            ).logits
        return logits[:, 0]


XLNET = ClozeFamily(
    name="xlnet",
    auto="AutoModelForCausalLM",
    encoder=build_xlnet_encoder,
    lead=encode_lead,
    mask=mask_in_order,
    predictor=XlnetPredictor,
    kind=lambda policy: "left-to-right" if policy.order == "left" else "permutation",
    # transformers mixes XLNet's positions, which are float32, into everything.
    half=False,
)
