"""XLNet: both orders equal the definition, one prediction at a time, with the lead in front."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import felicity as fe
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.masked.xlnet import read_lead
from tests.engines.shapes import CONTEXT, SENTENCES, make_xlnet

LEAD = "She saw the dog and the bird in the tree."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_xlnet(tmp_path_factory.mktemp("xlnet") / "tiny-xlnet")


def open_xlnet(folder: Path, **policy: Any) -> Any:
    return fe.model(str(folder), policy=Policy(**({"lead": LEAD} | policy)), cache=False)


class Direct:
    """The model itself, one prediction at a time."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def predict(self, ids: list[int], hidden: list[int]) -> np.ndarray:
        """Log-probabilities at the first of the `hidden` places, which no position attends to."""
        import torch

        size = len(ids)
        perm_mask = torch.zeros(1, size, size)
        perm_mask[:, :, hidden] = 1.0
        target_mapping = torch.zeros(1, 1, size)
        target_mapping[0, 0, hidden[0]] = 1.0
        with torch.no_grad():
            logits = self.model(
                input_ids=torch.tensor([ids]), perm_mask=perm_mask, target_mapping=target_mapping
            ).logits
        return logits[0, 0].log_softmax(-1).numpy()


@pytest.mark.parametrize("context", ["", CONTEXT])
@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ({"pll": "original"}, "permutation"),
        ({"pll": "word_l2r"}, "permutation"),
        ({"order": "left"}, "left-to-right"),
    ],
)
def test_every_order_equals_its_definition(
    folder: Path, policy: dict[str, str], kind: str, context: str
) -> None:
    direct = Direct(folder)
    lm = open_xlnet(folder, **policy)
    assert lm.info.kind == kind
    found = lm.tokens(SENTENCES, context=context or None)["logprob"].to_list()
    front = [*direct.ids(LEAD), direct.tokenizer.convert_tokens_to_ids("<eod>")]
    for text, ours in zip(SENTENCES, found, strict=True):
        whole = f"{context} {text}".strip()
        encoded = direct.tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        before = sum(end <= len(whole) - len(text) for _, end in encoded["offset_mapping"])
        words = [None] * len(front) + encoded.word_ids()
        ids = front + encoded["input_ids"]
        slow = []
        for place in range(len(front) + before, len(ids)):
            hidden = [place]
            if policy.get("pll") == "word_l2r":
                hidden += [later for later in range(place + 1, len(ids)) if words[later] == words[place]]
            if policy.get("order") == "left":
                hidden = list(range(place, len(ids)))
            slow.append(direct.predict(ids, hidden)[ids[place]])
        assert np.allclose(ours, slow, atol=1e-4)


def test_the_lead_that_ships_is_long_and_in_the_policy(folder: Path) -> None:
    lm = fe.model(str(folder), cache=False)
    assert lm.info.policy["lead"] == read_lead()
    assert len(read_lead().split()) > 150
    assert (lm.info.family, lm.info.window) == ("xlnet", None)


def test_a_text_without_lead_and_begin_token_has_a_first_token_that_cannot_be_scored(folder: Path) -> None:
    bare = {"lead": "none", "bos": "none"}
    left = open_xlnet(folder, order="left", **bare).tokens(SENTENCES[0])["logprob"].to_list()[0]
    both = open_xlnet(folder, **bare).tokens(SENTENCES[0])["logprob"].to_list()[0]
    assert left[0] is None
    assert None not in left[1:] + both


def test_what_the_tokenizer_adds_behind_a_text_is_refused(folder: Path) -> None:
    with pytest.raises(NotPossible, match="use --bos auto"):
        open_xlnet(folder, bos="tokenizer").score("A cat.")


def test_half_precision_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # How fast the products are on this machine, which is measured before, does not matter here.
    monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", "print(2.0)")
    with pytest.raises(NotPossible, match="float32 only"):
        fe.model(str(folder), dtype="float16", cache=False)
