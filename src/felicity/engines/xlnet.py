"""XLNet: a token predicted from any part of the rest, told by a permutation mask.

XLNet was trained on long texts and gives nonsense for a short sentence by itself, so a text of some length
stands before everything (Lau et al. 2020). What is predicted is hidden from all positions; with `left`,
so is all that comes after it, and what comes before is read in both directions, as in XLNet's training.
"""

from importlib.resources import files
from typing import Any

import numpy as np

from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.cloze import Way
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.hiding import Copies
from felicity.engines.masked import hide_tokens

# Ends a document in XLNet's training; here it stands between the lead and the text.
DOCUMENT_END = "<eod>"


def build_xlnet_encoder(tokenizer: Any, policy: Policy, *, window: int, name: str) -> Encoder:
    """The tokenizer with the policy's `auto` fields settled.

    Raises NotPossible where the tokenizer is to add its own special tokens, which stand behind the text.
    """
    if policy.bos == "tokenizer":
        raise NotPossible(
            f"'{name}' is an XLNet, whose tokenizer adds nothing before a text; use --bos auto."
        )
    begin = policy.bos
    if begin == "auto":
        begin = DOCUMENT_END if DOCUMENT_END in tokenizer.get_vocab() else "none"
    order = "both" if policy.order == "auto" else policy.order
    pll = "auto" if order == "left" else "word_l2r" if policy.pll == "auto" else policy.pll
    lead = read_lead() if policy.lead == "auto" else policy.lead
    settled = policy.but(bos=begin, order=order, pll=pll, lead=lead)
    return Encoder.build(tokenizer, settled, window=window, name=name, words=True)


def read_lead() -> str:
    """The paragraph that stands before every text, unless the policy has another."""
    return files("felicity.engines").joinpath("lead.txt").read_text(encoding="utf-8").strip()


def encode_lead(encoder: Encoder) -> list[int]:
    """The lead's tokens."""
    policy = encoder.policy
    if policy.lead == "none":
        return []
    text = policy.lead.lower() if policy.casing == "lower" else policy.lead
    return list(encoder.tokenizer(text, add_special_tokens=False)["input_ids"])


def hide_in_order(encoded: Encoded, sequences: range, policy: Policy) -> Copies:
    """A copy for every token of the texts: alone or with its word's rest, or with all that follows."""
    copies = hide_tokens(encoded, sequences, policy)
    if policy.order == "both":
        return copies
    # What is hidden from all might as well not be there.
    return Copies(copies.sequence, copies.begin, copies.begin + 1, copies.begin + 1, copies.target)


class XlnetReader:
    """XLNet's prediction of the first hidden token, from all that is not hidden."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, ids: np.ndarray, lengths: np.ndarray, begin: np.ndarray, end: np.ndarray, /) -> Any:
        import torch

        place = np.arange(ids.shape[1])
        hidden = (place >= begin[:, None]) & (place < end[:, None])
        seen = place < lengths[:, None]
        unseen = np.repeat(hidden[:, None, :], ids.shape[1], axis=1)
        asked = (place == begin[:, None])[:, None, :]
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


XLNET = Way(
    family="xlnet",
    auto="AutoModelForCausalLM",
    encoder=build_xlnet_encoder,
    lead=encode_lead,
    hide=hide_in_order,
    reader=XlnetReader,
    kind=lambda policy: "left-to-right" if policy.order == "left" else "permutation",
    # transformers mixes its positions, which are float32, into everything.
    half=False,
)
