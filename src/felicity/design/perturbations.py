"""Perturbations of context sentences that keep them grammatical, or ungrammatical, as they were.

The insertions are those of Sinha et al. (2023): a one-word adverb, a long adverbial, a dependent clause or a
quotation around the sentence, and all together (with the long adverbial, not the short one). Questions and
orders have their own insertions ("Honestly, who left?", "This time, tell the guests."). `nonsense` replaces
the content words instead.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Protocol

from felicity.core.documents import read_packaged_toml
from felicity.core.errors import BadInput
from felicity.core.registry import Registry
from felicity.core.sweep import UNPERTURBED
from felicity.design.insertion import (
    Ordinary,
    SentenceParts,
    insert_after,
    insert_before,
    insert_in_quotes,
    learn_ordinary,
    read_word_list,
    split_sentence,
)
from felicity.design.nonsense import replace_words

NAME = "NAME"


class Randomness(Protocol):
    """The common interface of numpy's generators and `random.Random`."""

    def random(self) -> float:
        """A number in [0, 1)."""


Perturb = Callable[[str, Randomness], str]
Change = Callable[[str, Randomness, Ordinary], str]

PERTURBATIONS: Registry[Change] = Registry("perturbation")


def perturb(name: str, *, sentences: Iterable[str] = ()) -> Perturb:
    """A function that perturbs one sentence, sampling what it inserts with the given generator.

    `sentences` are all sentences of the study: how they write a word inside shows whether it is a name.

    Raises UnknownName for an unknown perturbation. The function itself raises NotPossible if it needs a
    parser that is not installed.

    >>> from random import Random
    >>> perturb("clause_after")("The cat left.", Random(1))
    'The cat left, no matter what Sebastian says about it.'
    """
    change = PERTURBATIONS[name]
    ordinary = learn_ordinary(sentences)
    return lambda sentence, rng: change(sentence, rng, ordinary)


class _PhraseSampler:
    """Phrases for one sentence: none twice, and no name that is in the sentence or was used before."""

    def __init__(self, sentence: SentenceParts, rng: Randomness) -> None:
        kind = "question" if sentence.question else "imperative" if sentence.imperative else "statement"
        self._lists = read_packaged_toml("felicity.design", "words/insertions.toml")[kind]
        self._rng = rng
        self._body = sentence.body
        self._taken: set[str] = set()

    def phrase(self, kind: str) -> str:
        """A phrase from the list `kind`, with a name if it needs one."""
        phrase = self._draw(self._lists[kind])
        return phrase.replace(NAME, self._draw(read_word_list("names"))) if NAME in phrase else phrase

    def _draw(self, words: Sequence[str]) -> str:
        index = int(self._rng.random() * len(words))
        for word in chain(words[index:], words[:index]):
            if word not in self._taken and word not in self._body:
                self._taken.add(word)
                return word
        raise BadInput(f"'{self._body}' already has every name that could be put around it; shorten it.")


@PERTURBATIONS.add(UNPERTURBED)
def keep(sentence: str, _rng: Randomness, _ordinary: Ordinary) -> str:
    """The sentence unchanged."""
    return sentence


@PERTURBATIONS.add("adverb_before")
def add_adverb_before(sentence: str, rng: Randomness, ordinary: Ordinary) -> str:
    """Luckily, the cat left."""
    parts = split_sentence(sentence)
    return insert_before(parts, _PhraseSampler(parts, rng).phrase("adverbs"), ordinary).text


@PERTURBATIONS.add("adverb_after")
def add_adverb_after(sentence: str, rng: Randomness, _ordinary: Ordinary) -> str:
    """The cat left, luckily."""
    parts = split_sentence(sentence)
    return insert_after(parts, _PhraseSampler(parts, rng).phrase("adverbs")).text


@PERTURBATIONS.add("long_adverbial")
def add_long_adverbial(sentence: str, rng: Randomness, ordinary: Ordinary) -> str:
    """First and foremost, the cat left."""
    parts = split_sentence(sentence)
    return insert_before(parts, _PhraseSampler(parts, rng).phrase("adverbials"), ordinary).text


@PERTURBATIONS.add("clause_before")
def add_clause_before(sentence: str, rng: Randomness, ordinary: Ordinary) -> str:
    """Regardless of what Nora thinks about it, the cat left."""
    parts = split_sentence(sentence)
    return insert_before(parts, _PhraseSampler(parts, rng).phrase("clauses"), ordinary).text


@PERTURBATIONS.add("clause_after")
def add_clause_after(sentence: str, rng: Randomness, _ordinary: Ordinary) -> str:
    """The cat left, regardless of what Nora thinks about it."""
    parts = split_sentence(sentence)
    return insert_after(parts, _PhraseSampler(parts, rng).phrase("clauses")).text


@PERTURBATIONS.add("quotation")
def quote(sentence: str, rng: Randomness, _ordinary: Ordinary) -> str:
    """Yesterday, Nora said, "The cat left." """
    parts = split_sentence(sentence)
    return insert_in_quotes(parts, _PhraseSampler(parts, rng).phrase("speeches")).text


@PERTURBATIONS.add("all")
def add_all(sentence: str, rng: Randomness, ordinary: Ordinary) -> str:
    """Yesterday, Nora said, "First and foremost, whatever Otto may think of it, the cat left, if ..." """
    parts = split_sentence(sentence)
    drawing = _PhraseSampler(parts, rng)
    lead = f"{drawing.phrase('adverbials')}{parts.comma}{drawing.phrase('clauses')}"
    longer = insert_after(insert_before(parts, lead, ordinary), drawing.phrase("clauses"))
    return insert_in_quotes(longer, drawing.phrase("speeches")).text


@PERTURBATIONS.add("nonsense")
def make_nonsense(sentence: str, rng: Randomness, ordinary: Ordinary) -> str:
    """The plimmed dorf left: content words replaced by pseudowords, agreement kept."""
    return replace_words(sentence, rng.random, ordinary)
