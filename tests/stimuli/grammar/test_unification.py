"""Feature structures unify to what they have in common; structures are read, or refused with their line."""

import random

import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stimuli.grammar import (
    Bindings,
    Node,
    Notation,
    Other,
    SourceLine,
    Var,
    read_grammar,
    read_structure,
)
from felicity.stimuli.lexicon import ENGLISH, read_lexicon

NUMBER = frozenset({"sg", "pl"})
CLASSES = frozenset({"person", "animal", "food"})
PLACE = SourceLine("mine.toml", 7)


@pytest.fixture(scope="module")
def vocabulary() -> Notation:
    return read_grammar(read_lexicon().vocabulary, ENGLISH).vocabulary


def test_two_values_unify_to_their_intersection() -> None:
    bindings = Bindings()
    assert bindings.unify(Var("s"), frozenset({"person", "animal"}), CLASSES)
    assert bindings.unify(Var("s"), frozenset({"animal", "food"}), CLASSES)
    assert bindings.resolve(Var("s"), CLASSES) == {"animal"}


def test_values_without_a_common_one_do_not_unify() -> None:
    bindings = Bindings()
    assert bindings.unify(Var("n"), frozenset({"sg"}), NUMBER)
    assert not bindings.unify(Var("n"), frozenset({"pl"}), NUMBER)


def test_linked_variables_narrow_together() -> None:
    bindings = Bindings()
    assert bindings.unify(Var("a"), Var("b"), NUMBER)
    assert bindings.unify(Var("b"), frozenset({"pl"}), NUMBER)
    assert bindings.resolve(Var("a"), NUMBER) == {"pl"}
    assert bindings.resolve(Other("a"), NUMBER) == {"sg"}


def test_a_limited_variable_keeps_to_its_limits() -> None:
    bindings = Bindings()
    limited = Var("s", frozenset({"person", "food"}))
    assert bindings.resolve(limited, CLASSES) == {"person", "food"}
    assert bindings.unify(limited, frozenset({"animal", "food"}), CLASSES)
    assert bindings.resolve(Var("s"), CLASSES) == {"food"}


def test_a_rule_does_not_confuse_its_variables_with_those_of_the_structure(vocabulary: Notation) -> None:
    grammar = read_grammar(read_lexicon().vocabulary, ENGLISH)
    for name in "nksorga":  # every name that the rules use for a variable of another feature
        bindings = Bindings()
        assert bindings.unify(Var(name), frozenset({"sg"}), NUMBER)
        node = Node("VG", None, {"num": Var(name), "frame": frozenset({"trans"})})
        assert grammar.expand(node, "v", bindings, random.Random(0)) is not None


def test_a_structure_is_read_with_labels_features_and_repeats(vocabulary: Notation) -> None:
    noun, word, again = read_structure("noun:N[num=?n, sem=animate] that @noun[num=!?n]", vocabulary, PLACE)
    assert (noun.label, noun.name, noun.features["num"]) == ("noun", "N", Var("n"))
    assert noun.features["sem"] == {"person", "animal"}
    assert not word.is_category
    assert again.repeats
    assert again.features["num"] == Other("n")


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("NN[num=sg]", UnknownName, "no category 'NN' in mine.toml, line 7"),
        ("N[number=sg]", UnknownName, "no feature 'number' in mine.toml, line 7"),
        ("N[tense=past]", UnknownName, "no feature of N 'tense' in mine.toml, line 7"),
        ("N[num=dual]", UnknownName, "no value of num 'dual' in mine.toml, line 7"),
        ("N[num=sg", BadInput, "mine.toml, line 7"),
        ("N[num]", BadInput, "mine.toml, line 7"),
        ("N[num=sg, num=pl]", BadInput, "mine.toml, line 7.*twice"),
        ("N[num=!sg|pl]", BadInput, "mine.toml, line 7.*no value"),
        ("thta N", UnknownName, "no word 'thta' in mine.toml, line 7; did you mean 'that'"),
        ("the[num=sg] N", BadInput, "mine.toml, line 7.*takes no features"),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_and_line(
    text: str, error: type[Exception], says: str, vocabulary: Notation
) -> None:
    with pytest.raises(error, match=says):
        read_structure(text, vocabulary, PLACE)
