"""Repair: equal pairs stay, others get words of the same kind and of the right length, or are dropped."""

from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

import pytest

from felicity.stimuli.lexicon import Lexicon
from felicity.stimuli.pairs import Repairer, Signatures, read_language
from tests.conftest import Answer
from tests.stimuli.pairs.conftest import COUNTERS

Cli = Callable[..., Answer]
STEMS = ("lob", "besuch", "kenn", "lieb", "such", "warn", "weck", "stör")


def count_by_hash(texts: Sequence[str]) -> list[int]:
    """One or two tokens for a word, by chance."""
    return [sum(1 + crc32(word.strip(".").encode()) % 2 for word in text.split()) for text in texts]


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


def test_a_german_set_is_repaired_with_german_words_of_the_same_gender_and_case() -> None:
    german = read_language("german")
    repairer = Repairer(german.lexicon, Signatures({"letters": lambda texts: [len(one) for one in texts]}))
    (answer,) = repairer.repair([("Anna lobte den Koch.", "Anna lobte dem Koch.")])
    assert answer.status == "kept"
    repairer = Repairer(german.lexicon, Signatures({"hash": count_by_hash}))
    proposed = repairer.repair([(f"Anna {verb}t den Koch.", f"Anna {verb}en den Koch.") for verb in STEMS])
    for one in proposed:
        if one.status == "proposed":
            good, bad = one.good.split()[1], one.bad.split()[1]
            forms = {form.text for form in german.lexicon.readings["V"] if form.features["form"] == {"pres"}}
            assert {good, bad} <= forms
            assert good != bad
    assert any(one.status == "proposed" for one in proposed)


def test_the_words_are_those_of_the_language_of_the_set(tmp_path: Path, cli: Cli, tiny_model: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nDer Koch lobt die Frau.,Der Koch loben die Frau.\n", encoding="utf-8")
    refused = cli("stimuli", "repair", pairs, "-m", tiny_model, "-o", tmp_path / "sheet.csv")
    assert refused.code == 2
    assert "no words of the language of" in refused.err
    assert "--lexicon" in refused.err
    answer = cli(
        "stimuli", "repair", pairs, "-m", tiny_model, "--lexicon", "german", "-o", tmp_path / "sheet.csv"
    )
    assert answer.code == 0, answer.err
    assert "not in the lexicon" not in (tmp_path / "sheet.csv").read_text()
