"""Two small tokenizers, and the built-in paradigms."""

from collections.abc import Callable, Sequence
from zlib import crc32

import pytest

from felicity.stimuli.grammar import Grammar, read_grammar
from felicity.stimuli.lexicon import ENGLISH, Lexicon, read_lexicon
from felicity.stimuli.pairs import Matching, PairGenerator, Paradigm, read_builtin

CLOSED = {
    word.strip("'")
    for category in ("Det", "Aux", "Pron", "Adv", "Quant")
    for reading in read_lexicon().readings[category]
    for word in reading.text.split()
} | {
    "it's",
    "who",
    "what",
    "which",
    "whose",
    "that",
    "there",
    "only",
    "even",
    "as",
    "than",
    "for",
    "nobody",
    "everyone",
    "somebody",
    "either",
    "too",
}


def _count(text: str, salt: str) -> int:
    """One token for a function word, one or two for another, by chance; and one for a few capitals."""
    tokens = 0
    for word in text.split():
        bare = word.rstrip(".?'").lower()
        chance = crc32((salt + bare).encode())
        tokens += 1 if bare in CLOSED else 1 + chance % 2 + (word[0].isupper() and chance % 5 == 0)
    return tokens


def count_pieces(texts: Sequence[str]) -> list[int]:
    """A tokenizer whose vocabulary is a matter of chance."""
    return [_count(text, "pieces") for text in texts]


def count_letters(texts: Sequence[str]) -> list[int]:
    """Another one."""
    return [_count(text, "letters") for text in texts]


COUNTERS = {"pieces": count_pieces, "letters": count_letters}


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return read_lexicon()


@pytest.fixture(scope="session")
def grammar(lexicon: Lexicon) -> Grammar:
    return read_grammar(lexicon.vocabulary, ENGLISH)


@pytest.fixture(scope="session")
def paradigms(grammar: Grammar) -> dict[str, Paradigm]:
    return read_builtin(grammar, ENGLISH)


@pytest.fixture
def make_generator(lexicon: Lexicon, grammar: Grammar) -> Callable[..., PairGenerator]:
    """A generator under the two small tokenizers."""

    def make(**matching: object) -> PairGenerator:
        return PairGenerator(lexicon, grammar, COUNTERS, matching=Matching(**matching))  # type: ignore[arg-type]

    return make
