"""Texts longer than the window: direct forward passes over windows with a stated left context."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import felicity as fe
from felicity.core.errors import FelicityError, NotPossible, UnknownName
from felicity.core.policy import Policy
from tests.conftest import TINY_WINDOW, Answer

Cli = Callable[..., Answer]
# Every word is one token of the tiny tokenizer, after a space.
WORDS = ("cats", "annoy", "Tim.", "cat", "annoys", "dog", "barked", "saw")
# Two tokens of a window are kept free for the begin token and the like.
ROOM = TINY_WINDOW - 2


@pytest.fixture(scope="module")
def parts(tiny_model: Path) -> tuple[Any, Any]:
    from transformers import AutoTokenizer, GPT2LMHeadModel

    return AutoTokenizer.from_pretrained(tiny_model), GPT2LMHeadModel.from_pretrained(tiny_model).eval()


def make_text(tokenizer: Any, n: int) -> tuple[str, list[int]]:
    """A text of n tokens, one a word."""
    single = [word for word in WORDS if len(tokenizer(f" {word}")["input_ids"]) == 1]
    assert len(single) > 2
    text = "The " + " ".join(single[k * k % len(single)] for k in range(n - 1))
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == n
    return text, ids


def score_directly(model: Any, begin: int, before: list[int], ids: list[int]) -> list[float]:
    """Log-probability of ids after a begin token and others, in one forward pass."""
    whole = torch.tensor([[begin, *before, *ids]])
    with torch.inference_mode():
        logprobs = model(whole).logits[0].double().log_softmax(-1)
    first = 1 + len(before)
    return [float(logprobs[first + k - 1, token]) for k, token in enumerate(ids)]


@pytest.mark.parametrize(("overflow", "stride"), [("slide", TINY_WINDOW // 2), ("slide:10", 10)])
def test_windows_are_direct_forward_passes_with_the_stated_left_context(
    tiny_model: Path, parts: tuple[Any, Any], overflow: str, stride: int
) -> None:
    tokenizer, model = parts
    text, ids = make_text(tokenizer, 150)
    expected = score_directly(model, tokenizer.bos_token_id, [], ids[:ROOM])
    while len(expected) < len(ids):
        done = len(expected)
        # As many of the words before as take no more than the rest of the window, tokenized as a text.
        before = next(
            window
            for first in range(done)
            if len(window := tokenizer(" ".join(text.split()[first:done]))["input_ids"]) <= ROOM - stride
        )
        piece = ids[done : done + ROOM - len(before)]
        expected += score_directly(model, tokenizer.bos_token_id, before, piece)
    lm = fe.model(str(tiny_model), policy=Policy(overflow=overflow), cache=False)
    tokens = lm.tokens(text)
    assert tokens["logprob"].item().to_list() == pytest.approx(expected, abs=1e-4)
    assert lm.score(text)["lp"].item() == pytest.approx(sum(expected), abs=1e-3)
    starts, ends = tokens["start"].item().to_list(), tokens["end"].item().to_list()
    pieces = [text[a:b].strip() for a, b in zip(starts, ends, strict=True)]
    assert pieces == text.split()
    ranked = lm.tokens(text, rank=True)
    assert ranked["logprob"].item().to_list() == pytest.approx(expected, abs=1e-4)
    assert len(ranked["rank"].item()) == len(ids)


def test_words_of_a_long_text_sum_to_it_and_short_texts_are_as_ever(
    tiny_model: Path, parts: tuple[Any, Any]
) -> None:
    text, _ = make_text(parts[0], 150)
    lm = fe.model(str(tiny_model), policy=Policy(overflow="slide"), cache=False)
    words = lm.words(["The cat annoys Tim.", f"  {text} "])
    assert words.filter(row=2)["word"].to_list() == text.split()
    sums = words.group_by("text", maintain_order=True).agg(pl.col("lp").sum())["lp"].to_list()
    assert sums == pytest.approx(lm.score(["The cat annoys Tim.", f"  {text} "])["lp"].to_list(), abs=1e-4)
    plain = fe.model(str(tiny_model), cache=False)
    assert words.filter(row=1).equals(plain.words("The cat annoys Tim."))


def test_a_given_context_is_the_left_context_of_the_first_window(
    tiny_model: Path, parts: tuple[Any, Any]
) -> None:
    tokenizer, model = parts
    text, ids = make_text(tokenizer, 100)
    context, before = " ".join(text.split()[:8]), ids[:8]
    lm = fe.model(str(tiny_model), policy=Policy(overflow="slide"), cache=False)
    found = lm.tokens("cats " + text, context=context)["logprob"].item().to_list()
    own = [tokenizer(" cats")["input_ids"][0], tokenizer(" The")["input_ids"], *ids[1:]]
    if isinstance(own[1], list):
        own[1:2] = own[1]
    fits = ROOM - len(before)
    assert found[:fits] == pytest.approx(
        score_directly(model, tokenizer.bos_token_id, before, own[:fits]), abs=1e-4
    )


def test_surprisal_says_how_a_long_text_was_scored(
    cli: Cli, tmp_path: Path, tiny_model: Path, parts: tuple[Any, Any]
) -> None:
    text, _ = make_text(parts[0], 150)
    path = tmp_path / "long.txt"
    path.write_text(text + "\nThe cat saw Tim.\n", encoding="utf-8")
    refused = cli("surprisal", path, "-m", tiny_model)
    assert refused.code == 2
    assert "score it in windows with --overflow slide" in refused.err
    answer = cli("surprisal", path, "-m", tiny_model, "--overflow", "slide:16")
    assert answer.code == 0, answer.err
    assert (
        "over-long inputs: 1 of 2 (longer than the window of 64 tokens, scored in windows that advance by 16 "
        "tokens: beyond the first window a word has about 48 tokens before it, or more)" in answer.err
    )
    rows = json.loads(cli("surprisal", path, "-m", tiny_model, "--overflow", "slide:16", "--json").out)
    assert [row["word"] for row in rows if row["row"] == 1] == text.split()


def test_what_cannot_slide_is_refused(tiny_model: Path, parts: tuple[Any, Any]) -> None:
    with pytest.raises(UnknownName, match="overflow"):
        Policy(overflow="slide:0")
    with pytest.raises(FelicityError, match="advances by more than the model's window of 64"):
        fe.model(str(tiny_model), policy=Policy(overflow="slide:64"), cache=False).score("The cat.")
    with pytest.raises(NotPossible, match="without an end token"):
        fe.model(str(tiny_model), policy=Policy(overflow="slide", eos="auto"), cache=False).score("The cat.")
    with pytest.raises(FelicityError, match="without a single space to cut at"):
        fe.model(str(tiny_model), policy=Policy(overflow="slide"), cache=False).score("x" * 200)
    assert Policy().key == Policy(overflow="error").key
