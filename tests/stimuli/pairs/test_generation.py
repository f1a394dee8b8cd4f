"""The pairs: equally long, different where declared and only there, distinct, the same for one seed."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from felicity.stimuli.grammar import Grammar, read_grammar
from felicity.stimuli.lexicon import ENGLISH, Lexicon, read_lexicon
from felicity.stimuli.pairs import PairGenerator, Paradigm, Signatures, describe_suites, read_builtin
from felicity.stimuli.pairs.drafts import draft_pair
from felicity.stimuli.pairs.drawing import Drawer, DrawnPair
from tests.stimuli.pairs.conftest import COUNTERS, count_letters, count_pieces

LEXICON = read_lexicon()
GRAMMAR = read_grammar(LEXICON.vocabulary, ENGLISH)
PARADIGMS = read_builtin(GRAMMAR, ENGLISH)
DRAWER = Drawer(LEXICON, GRAMMAR, Signatures(COUNTERS))
EXAMPLES = 4


def draw(paradigm: Paradigm, seed: int) -> DrawnPair | None:
    """One pair of a paradigm, drawn as the generator draws it; None when the tokenizers allow none."""
    rng = random.Random(seed)
    for _ in range(300):
        draft = draft_pair(rng.choice(paradigm.frames), GRAMMAR, rng)
        drawn = DRAWER.draw(draft, rng, matched=True) if draft else None
        if isinstance(drawn, DrawnPair):
            return drawn
    return None


@pytest.mark.parametrize("uid", sorted(PARADIGMS))
def test_every_paradigm_makes_distinct_pairs_of_equal_length(
    uid: str, make_generator: Callable[..., PairGenerator]
) -> None:
    made = make_generator().make(PARADIGMS[uid], 12, seed=3)
    goods, bads = made.pairs["good"].to_list(), made.pairs["bad"].to_list()
    assert len(set(goods)) == len(set(bads)) == 12
    assert not set(goods) & set(bads)
    for count in (count_pieces, count_letters):
        assert count(goods) == count(bads)
    assert made.pairs["tokens_good_pieces"].to_list() == count_pieces(goods)
    for text in (*goods, *bads):
        assert text[0].isupper()
        assert text[-1] in ".?"
        assert "  " not in text


@pytest.mark.parametrize("uid", sorted(PARADIGMS))
@given(seed=st.integers(0, 10**6))
@settings(max_examples=EXAMPLES)
def test_good_and_bad_differ_in_the_declared_slots_alone(uid: str, seed: int) -> None:
    paradigm = PARADIGMS[uid]
    drawn = draw(paradigm, seed)
    assert drawn is not None
    outside = [
        [
            (leaf.slot if leaf.category else leaf.word)
            for leaf in leaves
            if leaf.label.removesuffix("~") not in paradigm.differ
        ]
        for leaves in (drawn.draft.good, [leaf for leaf, _ in drawn.draft.bad])
    ]
    assert outside[0] == outside[1]
    assert drawn.good != drawn.bad


AGREEING = [uid for uid in PARADIGMS if "subject_verb_agreement" in uid and uid.endswith("_2")]
MISREAD_SINGULARS = {"genius", "thesis", "opera", "bus", "oasis", "cactus", "hypothesis", "analysis"}
MISREAD_SINGULARS |= {"diagnosis", "synopsis", "crisis"}
MISREAD_PLURALS = {"schoolchildren", "grandchildren", "stepchildren", "cacti"}
SINGULAR_VERBS = {"has", "is", "was", "does", "hasn't", "isn't", "wasn't", "doesn't"}
PLURAL_VERBS = {"have", "are", "were", "do", "haven't", "aren't", "weren't", "don't"}


def is_singular_verb(word: str) -> bool:
    """By lemminflect, which knows nothing of our lexicon."""
    import lemminflect

    if word in SINGULAR_VERBS | PLURAL_VERBS:
        return word in SINGULAR_VERBS
    return word not in lemminflect.getLemma(word, "VERB")


@cache
def inflect_engine() -> Any:
    import inflect

    return inflect.engine()


def is_singular_noun(word: str) -> bool:
    """By inflect, which takes a few singulars for plurals and a few plurals for singulars."""
    if word in MISREAD_PLURALS:
        return False
    return word in MISREAD_SINGULARS or inflect_engine().singular_noun(word) is False


@pytest.mark.parametrize("uid", AGREEING)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_agreement_holds_in_good_and_fails_in_bad(uid: str, seed: int) -> None:
    pytest.importorskip("lemminflect")
    pytest.importorskip("inflect")
    drawn = draw(PARADIGMS[uid], seed)
    assert drawn is not None
    good, bad = (
        is_singular_noun(words[1]) == is_singular_verb(words[2]) for words in (drawn.good, drawn.bad)
    )
    assert good, drawn.good
    assert not bad, drawn.bad


def test_the_same_seed_gives_the_same_set(make_generator: Callable[..., PairGenerator]) -> None:
    first, again, other = (
        make_generator().make(PARADIGMS["causative"], 30, seed=seed).pairs for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_no_sentence_stands_in_two_suites(make_generator: Callable[..., PairGenerator]) -> None:
    import polars as pl

    generator = make_generator()
    uids = ("determiner_noun_agreement_1", "determiner_noun_agreement_2", "npi_present_1", "npi_present_2")
    pairs = pl.concat([generator.make(PARADIGMS[uid], 60, seed=0).pairs for uid in uids])
    described = describe_suites(pairs)
    assert described["repeated"].sum() == 0
    assert described["identical"].sum() == 0


def test_words_are_used_about_equally(make_generator: Callable[..., PairGenerator]) -> None:
    pairs = make_generator().make(PARADIGMS["principle_A_domain_3"], 300, seed=0).pairs
    described = describe_suites(pairs, function_words={"himself", "herself"})
    assert described["top_share"][0] < 0.25
    assert described["distinct_words"][0] > 200


def test_the_unmatched_twin_keeps_all_but_the_differing_words(
    make_generator: Callable[..., PairGenerator],
) -> None:
    paradigm = PARADIGMS["transitive"]
    matched = make_generator().make(paradigm, 60, seed=5).pairs
    twin = make_generator(length=False).make(paradigm, 60, seed=5).pairs
    assert count_pieces(matched["good"]) == count_pieces(matched["bad"])
    assert count_pieces(twin["good"]) != count_pieces(twin["bad"])
    assert [text.split()[0] for text in matched["good"]] == [text.split()[0] for text in twin["good"]]
    unequal = [len(g.split()) - len(b.split()) for g, b in zip(twin["good"], twin["bad"], strict=True)]
    assert set(unequal) == {0}  # words are replaced, never added


def test_the_redraw_loop_drops_what_signatures_reach(make_generator: Callable[..., PairGenerator]) -> None:
    paradigm = PARADIGMS["determiner_noun_agreement_irregular_1"]
    redrawn = make_generator(method="redraw").make(paradigm, 60, seed=0)
    matched = make_generator().make(paradigm, 60, seed=0)
    for made in (redrawn, matched):
        assert count_pieces(made.pairs["good"]) == count_pieces(made.pairs["bad"])
    assert matched.dropped == 0
    assert redrawn.dropped > 0


def test_frequency_is_matched_within_the_band(lexicon: Lexicon, grammar: Grammar) -> None:
    def zipf(word: str) -> float:
        return len(word) / 2

    generator = PairGenerator(lexicon, grammar, COUNTERS, frequency=zipf)
    pairs = generator.make(PARADIGMS["passive_2"], 80, seed=0).pairs
    differences = (pairs["zipf_good"] - pairs["zipf_bad"]).abs()
    assert differences.max() <= 0.5
