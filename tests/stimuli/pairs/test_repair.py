"""Repair: equal pairs stay, others get words of the same kind and of the right length, or are dropped."""

import pytest

from felicity.stimuli.lexicon import Lexicon
from felicity.stimuli.pairs import Repairer, Signatures
from tests.stimuli.pairs.conftest import COUNTERS


@pytest.fixture(scope="module")
def repairer(lexicon: Lexicon) -> Repairer:
    return Repairer(lexicon, Signatures(COUNTERS))


def unequal(repairer: Repairer, frame: str, words: list[tuple[str, str]]) -> tuple[str, str]:
    """The first pair of these words that the tokenizers find unequal."""
    for good, bad in words:
        pair = (frame.format(good), frame.format(bad))
        first, second = repairer.signatures.count(list(pair))
        if first != second:
            return pair
    raise AssertionError("all pairs are equally long")


def test_an_equal_pair_is_kept(repairer: Repairer) -> None:
    (answer,) = repairer.repair([("She saw himself.", "She saw herself.")])
    assert answer.status == "kept"


def test_forms_of_one_word_are_replaced_by_the_same_forms_of_another(repairer: Repairer) -> None:
    verbs = [("praise", "praises"), ("hug", "hugs"), ("greet", "greets"), ("thank", "thanks")]
    pair = unequal(repairer, "The nurses {} Anna.", verbs)
    (answer,) = repairer.repair([pair])
    assert answer.status == "proposed"
    good, bad = answer.good.split()[2], answer.bad.split()[2]
    assert bad in (good + "s", good + "es", good[:-1] + "ies")
    first, second = repairer.signatures.count([answer.good, answer.bad])
    assert first == second


def test_another_word_is_replaced_in_the_bad_sentence_alone(repairer: Repairer) -> None:
    verbs = [("praised", "smiled"), ("praised", "sneezed"), ("praised", "giggled"), ("hugged", "smiled")]
    pair = unequal(repairer, "The nurses {} Anna.", verbs)
    (answer,) = repairer.repair([pair])
    assert answer.status == "proposed"
    assert answer.good == pair[0]
    assert answer.bad != pair[1]


def test_what_the_lexicon_does_not_know_is_dropped_with_a_reason(repairer: Repairer) -> None:
    pair = unequal(
        repairer, "The nurses {} Anna.", [("zorp", word) for word in ("blik", "blok", "blak", "bluk")]
    )
    (answer,) = repairer.repair([pair])
    assert answer.status == "dropped"
    assert "not in the lexicon" in answer.reason


def test_a_verb_in_both_sentences_takes_all_that_the_old_one_took(
    repairer: Repairer, lexicon: Lexicon
) -> None:
    """steals the cereal never becomes lifts the cereal: lift takes tools but no food."""
    takes: dict[str, frozenset[str]] = {}
    for one in lexicon.readings["V"]:
        if one.features["form"] == {"base"}:
            takes[one.text] = takes.get(one.text, frozenset()) | one.features["obj"]
    for old in ("steal", "sell", "repair", "admire", "describe"):
        pair = (f"They {old}s it.", f"They {old} it.")
        for _, new in repairer._options(pair[0].split()[1], pair[1].split()[1], {}):
            assert takes[old] <= takes[new], (old, new)
