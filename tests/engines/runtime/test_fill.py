"""Blanks: equal to the full softmax of a direct forward pass, for every family."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.engines.runtime.frames import rank_fillers
from tests.engines.shapes import make_masked, make_seq2seq, make_xlnet

FRAME = "No bird is a ___."
WORDS = ["dog", "tree", "mirrors", "robin"]
LEAD = "She saw the dog and the bird in the tree."


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Callable[[str], Path]:
    made: dict[str, Path] = {"gpt2": tiny_model}

    def find(shape: str) -> Path:
        if shape not in made:
            folder = tmp_path_factory.mktemp("fill") / f"tiny-{shape}"
            maker = {"t5": make_seq2seq, "bart": make_seq2seq, "xlnet": lambda _, f: make_xlnet(f)}
            made[shape] = maker.get(shape, make_masked)(shape, folder)
        return made[shape]

    return find


def open_model(folder: Path, **policy: Any) -> Any:
    return fe.model(str(folder), policy=Policy(**({"lead": LEAD} | policy)), cache=False)


class Direct:
    """Each family's prediction for a blank, by its definition, on one unbatched input."""

    def __init__(self, folder: Path, shape: str, *, left: bool = False) -> None:
        import torch
        import transformers

        auto = {"gpt2": "CausalLM", "xlnet": "CausalLM", "t5": "Seq2SeqLM", "bart": "Seq2SeqLM"}
        loader = getattr(transformers, f"AutoModelFor{auto.get(shape, 'MaskedLM')}")
        self.model = loader.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.shape = shape
        self.left = left

    def split(self, word: str, *, special: bool) -> tuple[list[int], list[int], list[int]]:
        """Tokens before, in and after a word of the frame, the space before it being its own."""
        text = FRAME.replace("___", word)
        start, end = FRAME.index("___") - 1, FRAME.index("___") + len(word)
        output = self.tokenizer(text, add_special_tokens=special, return_offsets_mapping=True)
        ids, spans = output["input_ids"], output["offset_mapping"]
        inside = [i for i, (a, b) in enumerate(spans) if b > start and a < end and b > a]
        return ids[: inside[0]], [ids[i] for i in inside], ids[inside[-1] + 1 :]

    def predict(self, word: list[int], before: list[int], after: list[int], done: int) -> np.ndarray:
        """Log-probabilities for token `done` of a word of which the tokens before that are known."""
        import torch

        known, open_places = word[:done], len(word) - done
        with torch.no_grad():
            if self.shape == "gpt2":
                begin = [self.tokenizer.bos_token_id]
                logits = self.model(torch.tensor([begin + before + known])).logits[0, -1]
            elif self.shape == "t5":
                sentinel = self.tokenizer.convert_tokens_to_ids("<extra_id_0>")
                source = [*before, sentinel, *after, self.tokenizer.eos_token_id]
                written = [self.model.config.decoder_start_token_id, sentinel, *known]
                logits = self._answer(source, written)
            elif self.shape == "bart":
                source = [0, *before, self.tokenizer.mask_token_id, *after, 2]
                written = [self.model.config.decoder_start_token_id, 0, *before, *known]
                logits = self._answer(source, written)
            elif self.shape == "xlnet":
                logits = self._permuted(before + known, open_places, after)
            else:
                masks = [self.tokenizer.mask_token_id] * open_places
                row = torch.tensor([before + known + masks + after])
                logits = self.model(row).logits[0, len(before) + done]
        return logits.log_softmax(-1).numpy()

    def _answer(self, source: list[int], written: list[int]) -> Any:
        import torch

        return self.model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([written])).logits[
            0, -1
        ]

    def _permuted(self, before: list[int], hidden: int, after: list[int]) -> Any:
        import torch

        lead = self.tokenizer(LEAD, add_special_tokens=False)["input_ids"]
        lead = [*lead, self.tokenizer.convert_tokens_to_ids("<eod>")]
        ids = lead + before + [0] * hidden + after
        place = len(lead + before)
        mask = torch.zeros(1, len(ids), len(ids))
        mask[:, :, place : None if self.left else place + hidden] = 1.0
        mapping = torch.zeros(1, 1, len(ids))
        mapping[0, 0, place] = 1.0
        return self.model(torch.tensor([ids]), perm_mask=mask, target_mapping=mapping).logits[0, 0]


FAMILIES = [("gpt2", {}), ("bert", {}), ("roberta", {}), ("albert", {}), ("t5", {}), ("bart", {})]
FAMILIES += [("xlnet", {}), ("xlnet", {"order": "left"}), ("bert", {"pll": "original"})]


@pytest.mark.parametrize(("shape", "policy"), FAMILIES)
def test_fillers_are_the_top_of_the_full_softmax(
    make: Callable[[str], Path], shape: str, policy: dict[str, str]
) -> None:
    direct = Direct(make(shape), shape, left="order" in policy)
    before, _, after = direct.split("it", special=shape in ("bert", "roberta", "albert"))
    logprobs = direct.predict([0], before, after, 0)
    # Two frames at once: the other is longer, so that this one is padded.
    found = open_model(make(shape), **policy).fill([FRAME, "Nobody has seen a bird or a ___."], k=8)
    ours = found.filter(frame=FRAME)
    vocabulary = direct.tokenizer.get_vocab()
    assert ours["rank"].to_list() == list(range(1, 9))
    ids = [vocabulary[token] for token in ours["token"]]
    assert np.allclose(ours["logprob"], logprobs[ids], atol=1e-4)
    for token, filler in zip(ids, ours["filler"], strict=True):
        assert filler == direct.tokenizer.decode([token]).strip() != ""
    higher = [(logprobs > value + 1e-4).sum() for value in ours["logprob"]]
    assert higher == (ours["rank"] - 1 + ours["dropped"]).to_list()


@pytest.mark.parametrize(("shape", "policy"), FAMILIES)
def test_candidates_of_any_number_of_tokens_have_their_exact_probability(
    make: Callable[[str], Path], shape: str, policy: dict[str, str]
) -> None:
    direct = Direct(make(shape), shape, left="order" in policy)
    found = open_model(make(shape), **policy).score_candidates(FRAME, WORDS)
    sizes = set()
    for word, row in zip(WORDS, found.iter_rows(named=True), strict=True):
        before, inside, after = direct.split(word, special=shape in ("bert", "roberta", "albert"))
        expected = sum(
            direct.predict(inside, before, after, done)[token] for done, token in enumerate(inside)
        )
        assert row["candidate"] == word
        assert row["tokens"] == direct.tokenizer.convert_ids_to_tokens(inside)
        assert row["logprob"] == pytest.approx(expected, abs=1e-3)
        sizes.add(len(inside))
    assert len(sizes) > 1


def test_single_tokens_score_as_they_rank(make: Callable[[str], Path]) -> None:
    lm = open_model(make("bert"))
    filled = lm.fill(FRAME, k=200).filter(~lm_piece())
    words = [word for word in filled["filler"] if word.isalpha()][:5]
    scored = lm.score_candidates(FRAME, words)
    expected = [filled.filter(filler=word)["logprob"][0] for word in words]
    assert np.allclose(scored["logprob"], expected, atol=1e-4)


def lm_piece() -> Any:
    import polars as pl

    return pl.col("token").str.starts_with("##") | pl.col("token").str.starts_with("[")


def test_words_of_equal_length_share_the_frame(make: Callable[[str], Path]) -> None:
    lm = open_model(make("bert"))
    read: list[int] = []
    masked_scorer = lm.engine.masked_scorer
    reader = masked_scorer.predictor
    object.__setattr__(
        masked_scorer, "predictor", lambda ids, *rest: read.append(len(ids)) or reader(ids, *rest)
    )
    single = [
        w
        for w in ("cats", "dog", "bird", "tree", "has", "the")
        if len(lm.engine.encoder.tokenizer.tokenize(w)) == 1
    ]
    assert len(single) > 2
    lm.score_candidates(FRAME, single)
    assert sum(read) == 1


def test_tokens_that_are_no_text_are_dropped_and_counted() -> None:
    class Tokenizer:
        words = ("", " a", "\n", "b ")

        def __len__(self) -> int:
            return len(self.words)

        def decode(self, ids: list[int]) -> str:
            return self.words[ids[0]]

        def convert_ids_to_tokens(self, token: int) -> str:
            return f"<{token}>"

    table = rank_fillers("x ___", np.log([0.4, 0.3, 0.2, 0.1]), Tokenizer(), k=5)
    assert table["filler"].to_list() == ["a", "b"]
    assert table["rank"].to_list() == [1, 2]
    assert table["dropped"].to_list() == [1, 2]


def test_a_model_that_reads_from_left_to_right_refuses_words_after_the_blank(
    make: Callable[[str], Path],
) -> None:
    lm = open_model(make("gpt2"))
    for call in (
        lambda: lm.fill("The ___ is here."),
        lambda: lm.score_candidates("The ___ is here.", ["cat"]),
    ):
        with pytest.raises(NotPossible, match="cannot see 'is here.' after the blank"):
            call()


def test_a_blank_at_the_beginning_follows_the_begin_token(make: Callable[[str], Path]) -> None:
    lm = open_model(make("gpt2"))
    first = lm.fill("___", k=1)
    word = lm.score_candidates("___", ["The"])
    assert first["logprob"][0] >= word["logprob"][0] == lm.score("The")["lp"][0]
    with pytest.raises(NotPossible, match="give one with --bos"):
        open_model(make("gpt2"), bos="none").fill("___")


@pytest.mark.parametrize("frame", ["No blank.", "A ___ and a ___."])
def test_a_frame_has_one_blank(make: Callable[[str], Path], frame: str) -> None:
    with pytest.raises(BadInput, match="mark exactly one with ___"):
        open_model(make("bert")).fill(frame)


def test_a_word_that_the_vocabulary_cannot_spell_is_refused(make: Callable[[str], Path]) -> None:
    with pytest.raises(BadInput, match="cannot spell '中'"):
        open_model(make("bert")).score_candidates(FRAME, ["dog", "中"])


def test_a_word_that_grows_together_with_its_neighbour_is_refused(make: Callable[[str], Path]) -> None:
    with pytest.raises(NotPossible, match="put a space between them"):
        open_model(make("bert")).score_candidates("The cat___ annoy Tim.", ["s"])


def test_nothing_to_fill_is_refused(make: Callable[[str], Path]) -> None:
    lm = open_model(make("bert"))
    for call in (lambda: lm.fill(FRAME, k=0), lambda: lm.fill([]), lambda: lm.score_candidates(FRAME, [""])):
        with pytest.raises(BadInput):
            call()
