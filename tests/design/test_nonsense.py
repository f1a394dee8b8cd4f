"""Nonsense sentences: no content word left, no real word put in, every ending and article in its place."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import polars as pl
import pytest

from felicity.design.insertion import learn_ordinary
from felicity.design.nonsense import choose_pseudoword_article, is_content, make_pseudoword, replace_words
from felicity.design.parsing import load_parser, parse_sentence
from felicity.design.perturbations import perturb

PSEUDO = r"[a-z]{4,}"


def make(sentence: str, seed: int = 1) -> str:
    return replace_words(sentence, Random(seed).random, learn_ordinary())


@pytest.mark.parametrize(
    ("sentence", "shape"),
    [
        ("The cats annoy Tim.", rf"The {PSEUDO}s {PSEUDO} Tim\."),
        ("The cat annoys Tim.", rf"The {PSEUDO} {PSEUDO}s Tim\."),
        ("The cat annoyed Tim.", rf"The {PSEUDO} {PSEUDO}ed Tim\."),
        ("The cats are annoying Tim.", rf"The {PSEUDO}s are {PSEUDO}ing Tim\."),
        ("She has hidden the children.", rf"She has {PSEUDO}ed the {PSEUDO}s\."),
        ("The bigger dog slept quietly.", rf"The {PSEUDO}er {PSEUDO} {PSEUDO}ed {PSEUDO}ly\."),
        ("The smallest dog didn't bark.", rf"The {PSEUDO}est {PSEUDO} didn't {PSEUDO}\."),
        ("No girl has ever sung there.", rf"No {PSEUDO} has ever {PSEUDO}ed there\."),
        ("I can't find Larry's ex-husband.", rf"I can't {PSEUDO} Larry's ex-{PSEUDO}\."),
        ("These offspring weren't asleep.", rf"These {PSEUDO}s weren't {PSEUDO}\."),
        ("It means that they like Tim.", rf"It {PSEUDO}s that they {PSEUDO} Tim\."),
        ("They wouldn 't run to Tim .", rf"They wouldn 't {PSEUDO} to Tim \."),
        ("A lot of men bought two axes.", rf"A lot of {PSEUDO}s {PSEUDO}ed two {PSEUDO}s\."),
    ],
)
def test_endings_stay_and_function_words_and_names_too(sentence: str, shape: str) -> None:
    for seed in range(5):
        assert re.fullmatch(shape, make(sentence, seed))


def test_a_violation_stays_one() -> None:
    assert re.fullmatch(rf"The {PSEUDO}s {PSEUDO}s Tim\.", make("The cats annoys Tim."))
    assert re.fullmatch(rf"Ann {PSEUDO}ed these {PSEUDO}(?<!s)\.", make("Ann noticed these book."))


def test_one_lemma_is_one_word_within_a_sentence() -> None:
    _, dog, _, chased, dogs, _, chasing, _, again = make("The dog that chased dogs was chasing a dog").split()
    assert dogs in (f"{dog}s", f"{dog}es")
    assert again == dog
    assert chased.removesuffix("ed") == chasing.removesuffix("ing") != dog


def test_the_article_goes_with_the_new_word() -> None:
    for seed in range(30):
        first, second, third = re.findall(
            r"\b(an?) (\w+)", make("He saw an hour, a university and an apple.", seed)
        )
        assert all(article == choose_pseudoword_article(word) for article, word in (first, second, third))
    assert make("An apple fell.").startswith("An ")


def test_spacing_and_capitals_are_the_sentence_s_own() -> None:
    made = make("Children , she  said , slept .")
    assert re.fullmatch(rf"[A-Z]{PSEUDO}s , she  {PSEUDO}ed , {PSEUDO}ed \.", made)


def test_draws_that_never_change_still_end() -> None:
    made = replace_words("The dog saw the dog and the cat.", lambda: 0.0, learn_ordinary())
    assert len({word for word in made.rstrip(".").split() if len(word) > 3}) == 3


def test_no_invented_word_is_in_the_parser_s_vocabulary_or_in_the_sentences() -> None:
    forbidden = make("The dog slept.", 5).split()[1]
    change = perturb("nonsense", sentences=[f"Ann saw a {forbidden} there."])
    assert forbidden not in change("The dog slept.", Random(5))
    known = load_parser().vocab.strings
    for seed in range(300):
        for word in make("The waiter slept.", seed).rstrip(".").split()[1:]:
            assert word not in known


def test_pseudowords_begin_as_asked() -> None:
    rng = Random(0)
    for syllables in (2, 3):
        assert make_pseudoword(syllables, rng.random, vowel=True)[0] in "aeio"
        assert make_pseudoword(syllables, rng.random, vowel=False)[0] not in "aeiou"


@pytest.mark.data
def test_blimp_keeps_its_names_and_loses_its_content_words(published: Callable[[str], Path]) -> None:
    tables = [pl.read_ndjson(path) for path in sorted(published("blimp/data").glob("*.jsonl.gz"))]
    texts = [text for table in tables for text in table["sentence_good"].to_list()]
    change = perturb("nonsense", sentences=texts)
    ordinary = learn_ordinary(texts)
    rng = Random(3)
    for text in texts[::500]:
        made = change(text, rng)
        tokens = parse_sentence(text)
        replaced = {token.text for i, token in enumerate(tokens) if is_content(tokens, i, ordinary)}
        assert replaced
        assert not replaced & set(re.findall(r"\w+", made))
        capitals = [word for word in re.findall(r"\w+", text)[1:] if word[0].isupper()]
        assert capitals == [word for word in re.findall(r"\w+", made)[1:] if word[0].isupper()]
        assert len(made.split()) == len(text.split())


@pytest.mark.data
def test_invented_words_are_not_in_running_text(published: Callable[[str], Path]) -> None:
    import gzip

    running = gzip.decompress(published("wikitext103/wiki.test.raw.gz").read_bytes()).decode("utf-8")
    real = set(re.findall(r"\b[a-z]+\b", running))
    made = {word for seed in range(1000) for word in make("The waiter was annoyed.", seed)[4:-1].split()} - {
        "was"
    }
    assert len(made) > 1900
    assert not made & real
