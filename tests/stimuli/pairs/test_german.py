"""The German grammar: its words, agreement in good sentences, and pairs of equal length."""

from collections.abc import Sequence

import pytest

from felicity.stimuli.pairs import PairGenerator, list_languages, read_language

GERMAN = read_language("german")
PARADIGMS = GERMAN.read_paradigms()
GENDERS = {
    one.text: one.features["gender"] for one in GERMAN.lexicon.readings["N"] if one.features["num"] == {"sg"}
}


def count_words(texts: Sequence[str]) -> list[int]:
    """Words, and one more for a long one."""
    return [sum(1 + (len(word) > 12) for word in text.split()) for text in texts]


@pytest.fixture(scope="module")
def generator() -> PairGenerator:
    return PairGenerator(GERMAN.lexicon, GERMAN.grammar, {"words": count_words})


def test_german_comes_with_felicity() -> None:
    assert {"english", "german"} <= set(list_languages())
    assert GERMAN.lexicon.language == "de"
    assert len(PARADIGMS) >= 12
    assert all(paradigm.about and paradigm.source for paradigm in PARADIGMS.values())


@pytest.mark.parametrize("uid", sorted(PARADIGMS))
def test_every_german_paradigm_makes_distinct_pairs_of_equal_length(
    uid: str, generator: PairGenerator
) -> None:
    made = generator.make(PARADIGMS[uid], 10, seed=4).pairs
    goods, bads = made["good"].to_list(), made["bad"].to_list()
    assert len(set(goods)) == len(set(bads)) == 10
    assert not set(goods) & set(bads)
    assert count_words(goods) == count_words(bads)
    assert all(text[0].isupper() and text[-1] in ".?" for text in (*goods, *bads))


def test_the_definite_article_has_the_gender_of_its_noun_in_good_sentences_alone(
    generator: PairGenerator,
) -> None:
    articles = {"m": {"Der", "Dieser"}, "f": {"Die", "Diese"}, "n": {"Das", "Dieses"}}
    pairs = generator.make(PARADIGMS["determiner_gender"], 60, seed=1).pairs
    checked = 0
    for good, bad in pairs.select("good", "bad").iter_rows():
        article, noun = good.split()[:2]
        if (
            article not in {"Der", "Die", "Das", "Dieser", "Diese", "Dieses"}
            or good.split()[0] == bad.split()[0]
        ):
            continue
        (gender,) = GENDERS[noun]
        assert article in articles[gender]
        assert bad.split()[0] not in articles[gender]
        checked += 1
    assert checked > 10


def test_prepositions_and_articles_contract() -> None:
    realize = GERMAN.grammar.vocabulary.realization.realize
    assert realize(["er", "kommt", "bei", "dem", "Bäcker", "an", "."]) == "Er kommt beim Bäcker an."
    assert realize(["er", "kommt", "zu", "der", "Schule", "."]) == "Er kommt zur Schule."


def test_an_accusative_that_is_a_dative_plural_is_never_called_bad(generator: PairGenerator) -> None:
    """*Sie drohen den Piloten* is good: weak nouns have one form for both."""
    weak = {one.text for one in GERMAN.lexicon.readings["N"] if one.features["weak"] == {"yes"}}
    for uid in ("dative_object", "preposition_case"):
        for bad in generator.make(PARADIGMS[uid], 80, seed=2).pairs["bad"]:
            *_, determiner, noun = bad.rstrip(".").split()
            assert not (determiner in {"den", "diesen"} and noun in weak), bad
