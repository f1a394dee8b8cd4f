"""Texts after shared contexts: spliced tokens are those of the whole, for any tokenizer and any text."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from felicity.data.catalogue import read_starter
from felicity.engines.tokenizing.splicing import (
    LONG,
    TokenizedTexts,
    tokenize_after,
    tokenize_texts,
    works_within_words,
)

CORPUS = [*read_starter()["text"], "«Où est-elle?» – 她在家。 🙂 it's 1,234.50 now…"]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train(tokenizer: Tokenizer, trainer: Any) -> PreTrainedTokenizerFast:
    tokenizer.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


def byte_level(pattern: str | None) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), level])
        if pattern
        else level
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return train(
        tokenizer,
        trainers.BpeTrainer(
            vocab_size=600, initial_alphabet=alphabet, special_tokens=["[UNK]"], show_progress=False
        ),
    )


def word_piece() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return train(
        tokenizer,
        trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[UNK]"], show_progress=False),
    )


def with_prefix_space() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return train(
        tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=["[UNK]"], show_progress=False)
    )


def unigram() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return train(
        tokenizer,
        trainers.UnigramTrainer(
            vocab_size=300, unk_token="[UNK]", special_tokens=["[UNK]"], show_progress=False
        ),
    )


MAKERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "gpt2": lambda: byte_level(None),
    "llama3": lambda: byte_level(LLAMA3),
    "bert": word_piece,
    "prefix space": with_prefix_space,
    "unigram": unigram,
}


@pytest.fixture(scope="module", params=list(MAKERS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]()


def both_ways(
    tokenizer: Any, contexts: Sequence[str], join: str, texts: Sequence[str]
) -> tuple[TokenizedTexts, TokenizedTexts]:
    wholes = [c + join + t if c else t for c, t in zip(contexts, texts, strict=True)]
    spliced = tokenize_after(tokenizer, contexts, join, texts, words=False, itself=False)
    return spliced, tokenize_texts(tokenizer, wholes)


def same(one: TokenizedTexts, other: TokenizedTexts) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("ids", "span", "special", "counts")
    )


LETTERS = st.text(alphabet="ab' .,\n\t1é她🙂’s-", max_size=60)


@given(ends=st.lists(LETTERS, min_size=1, max_size=3), texts=st.lists(LETTERS, min_size=2, max_size=5))
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@pytest.mark.parametrize("join", [" ", "", "\n"])
def test_spliced_tokens_are_those_of_the_whole(
    tokenizer: Any, join: str, ends: list[str], texts: list[str]
) -> None:
    stem = " ".join(CORPUS[:8])
    contexts = [stem + end for end in ends for _ in texts] + [""]
    assert same(*both_ways(tokenizer, contexts, join, [*texts * len(ends), "alone"]))


def test_a_tokenizer_without_words_is_not_spliced() -> None:
    bare = Tokenizer(models.BPE())
    assert not works_within_words(PreTrainedTokenizerFast(tokenizer_object=bare))
    assert not works_within_words(unigram())
    assert works_within_words(byte_level(None))


def test_a_long_context_before_many_texts_is_tokenized_once() -> None:
    class Counting:
        """Hands on to a tokenizer and counts the characters it is given."""

        def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
            self.inner, self.backend_tokenizer, self.characters = tokenizer, tokenizer.backend_tokenizer, 0

        def __call__(self, texts: list[str], **options: Any) -> Any:
            self.characters += sum(map(len, texts))
            return self.inner(texts, **options)

    counting = Counting(byte_level(None))
    context = " ".join(CORPUS[:40])
    assert len(context) > LONG
    tokenize_after(counting, [context] * 100, " ", CORPUS[:100], words=False, itself=False)
    assert counting.characters < len(context) + 2 * sum(map(len, CORPUS[:100])) + 100 * 40
