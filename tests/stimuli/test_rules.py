"""Rules with reasons: each finds its own fault, and the published sets have those they are known for."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from felicity.core.registry import Registry
from felicity.stimuli.checks import read_wordnet
from felicity.stimuli.extension import (
    FORMS,
    RULES,
    AnswerRule,
    RuleInput,
    Seen,
    check_pair,
    check_sentence,
    check_set,
    count_findings,
    guess_form,
)
from felicity.stimuli.extension.prompts import pair_sentences, split_answer
from felicity.stimuli.items import Pair, read_sentence_pairs

NEGATION, ROLE = FORMS["negation"], FORMS["role"]
needs_words = pytest.mark.skipif(read_wordnet() is None, reason="WordNet is not installed")


def find(
    first: str, second: str, *, form: str = "negation", earlier: tuple[Pair, ...] = ()
) -> tuple[set[str], set[str]]:
    """The rules that reject a pair, and those that flag it."""
    seen = Seen()
    for pair in earlier:
        seen.add(pair, FORMS[form])
    case = RuleInput(form=FORMS[form], seen=seen, words=read_wordnet())
    rejections, flags = check_pair(Pair("new", first, second), case)
    return {one.rule for one in rejections}, {one.rule for one in flags}


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ("A toy is a toy", "A toy is not a tree", "tautology"),
        ("A dog is a pet animal", "A dog is not a tree", "multi-word object"),
        ("A dog is an animal", "A cat is not a tree", "subject mismatch"),
        ("A orange is a fruit", "A orange is not a tool", "wrong article"),
        ("A skates is a vehicle", "A skates is not a tool", "wrong article"),
    ],
)
def test_a_faulty_negation_is_rejected(first: str, second: str, rule: str) -> None:
    assert rule in find(first, second)[0]


@pytest.mark.parametrize(
    "second",
    ["the cook saw which boy the girl had hit", "the cook saw which girl the man had hit"],
)
def test_roles_that_are_not_exchanged_are_rejected(second: str) -> None:
    assert find("the cook saw which boy the girl had met", second, form="role")[0] == {"not a reversal"}


def test_a_clean_pair_passes() -> None:
    assert find("A robin is a bird", "A robin is not a tree") == (set(), set())
    reversed_ = ("the cook saw which boy the girl had met", "the cook saw which girl the boy had hit")
    assert find(*reversed_, form="role") == (set(), set())


def test_a_duplicate_is_found_whatever_its_case_punctuation_and_order() -> None:
    earlier = (Pair("1", "A robin is a bird", "A robin is not a tree"),)
    assert find("a Robin is a bird.", "A robin is not a tree,", earlier=earlier)[0] == {"duplicate"}
    assert find("A robin is not a tree", "A robin is a bird", earlier=earlier)[0] >= {"duplicate"}


def test_a_near_duplicate_and_a_contradiction_are_flagged_not_rejected() -> None:
    earlier = (Pair("1", "A robin is a bird", "A robin is not a tree"),)
    assert find("A robin is a bird", "A robin is not a tool", earlier=earlier) == (set(), {"near-duplicate"})
    flags = find("A robin is an animal", "A robin is not a bird", earlier=earlier)[1]
    assert "contradiction" in flags


@needs_words
def test_spelling_is_flagged_with_the_word_that_was_meant() -> None:
    case = RuleInput(form=NEGATION, seen=Seen(), words=read_wordnet())
    flags = check_pair(Pair("1", "A cantalope is a fruit", "A cantalope is not a tool"), case)[1]
    assert flags[0] == ("spelling variant", "'cantalope', perhaps 'cantaloupe'")


@needs_words
def test_drunk_is_no_offence_and_a_slur_is_flagged_not_rejected() -> None:
    assert find("A drunk is a person", "A drunk is not a tree")[1] == set()
    rejections, flags = find("A darky is a person", "A darky is not a tree")
    assert rejections == set()
    assert flags == {"offensive"}


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("", "empty"),
        ("Generate more sentences like this:", "echo"),
        ("the teacher lectured which student the", "half sentence"),
        ("the teacher lectured which student the cl", "half sentence"),
        ("the doctor treated the patient", "another form"),
    ],
)
def test_a_faulty_sentence_is_rejected(sentence: str, rule: str) -> None:
    case = RuleInput(form=ROLE, seen=Seen(), instruction=ROLE.instruction)
    assert check_sentence(sentence, case)[0].rule == rule


def test_an_answer_is_cut_into_sentences_however_it_is_laid_out() -> None:
    answer = "1. A cat is an animal, A cat is not a tool,\n\n2) An elm is a tree.\nAn elm is not a car\n"
    answer += "A saw is not a pet"
    pairs, alone = pair_sentences([one for one in split_answer(answer) if one.text], NEGATION, name="1")
    assert [pair.sentences for pair, _ in pairs] == [
        ("A cat is an animal", "A cat is not a tool"),
        ("An elm is a tree", "An elm is not a car"),
    ]
    assert [sentence.text for sentence in alone] == ["A saw is not a pet"]


@pytest.fixture
def outside_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that adds a rule."""
    rule = AnswerRule(meaning="mentions a cat", pair=lambda pair, _: "a cat" if "cat" in pair.first else None)
    point = EntryPoint("no cats", "outside:rule", "felicity.stimulus_rule")
    monkeypatch.setattr(EntryPoint, "load", lambda self: rule)
    monkeypatch.setattr(
        "felicity.core.registry.entry_points", lambda group: [point] if group == point.group else []
    )
    fresh: Registry[AnswerRule] = Registry("stimulus_rule")
    for name in RULES:
        fresh.register(name, RULES[name])
    monkeypatch.setattr("felicity.stimuli.extension.rules.RULES", fresh)


def test_an_outside_package_adds_a_rule(outside_rule: None) -> None:
    assert "no cats" in find("A cat is an animal", "A cat is not a tree")[0]


def check_published(published: Callable[[str], Path], name: str) -> tuple[dict[str, int], list[str]]:
    pairs = read_sentence_pairs(published(f"shivagunde2023/data/{name}.txt"))
    found = check_set(pairs, guess_form(pairs), words=read_wordnet())
    return count_findings(found), [finding.reason for _, finding in found]


def test_role_1500_has_30_repeated_sentences_and_9_repeated_pairs(published: Callable[[str], Path]) -> None:
    counts, _ = check_published(published, "ROLE-1500")
    assert (counts["repeated sentence"], counts["duplicate"]) == (30, 9)


@needs_words
def test_the_known_slips_of_the_negation_sets_are_found(published: Callable[[str], Path]) -> None:
    template = " ".join(check_published(published, "NEG-1500-SIMP-TEMP")[1])
    assert "'A orange'" in template
    assert "'A engineer'" in template
    generated = " ".join(check_published(published, "NEG-1500-SIMP-GEN")[1])
    assert "'icecream'" in generated
    assert "'cout'" in generated
