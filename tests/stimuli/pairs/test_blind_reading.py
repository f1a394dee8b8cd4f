"""What three blind readings found (docs/studies/pairs/reading_blind*.tsv) is not generated again."""

import re
from collections.abc import Callable, Sequence

import polars as pl
import pytest

from felicity.stimuli.lexicon import Lexicon
from felicity.stimuli.pairs import PairGenerator, Paradigm, read_language

GERMAN = read_language("german")
GERMAN_PARADIGMS = GERMAN.read_paradigms()

# Bad sentences that somebody says, or good ones that nobody does, by paradigm and what they had in common.
SAID = [
    ("anaphor_number_agreement", r"themselves", "singular they"),
    ("principle_A_domain_1", r"themselves", "singular they"),
    ("principle_A_domain_2", r"themselves", "singular they"),
    ("animate_subject_passive", r"n't\b", "a bracelet does not criticize, which is true"),
    ("animate_subject_trans", r"n't\b", "noodles can't hug, which is true"),
    ("animate_subject_passive", r"\b(found|seen|recognized|insulted) by", "by a place or a means"),
    ("embedded_inversion", r"\b(who|what) (has|have|had) ", "who had the niece warned: a causative"),
    (
        "ellipsis_n_bar_1",
        r"\b(rich|poor|young|old|warm|small|new|cheap)\.$",
        "a few rich: people; bought new",
    ),
    ("left_branch_island_simple_question", r"^What \w+ .* taught ", "taught travelers what: two objects"),
    ("locative_onto", r"doused", "doused milk onto"),
    ("tough_vs_raising_2", r"annoying|pleasant", "annoying to pack, like silly to pack"),
    ("irregular_past_participle_adjectives", r"^The (broke|stole|wrote|drew) ", "a broke laptop; vacuous"),
    ("past_adverb", r"\bbore\b", "bore is also the past of bear"),
    (
        "comparative_complement",
        r"less .* as (an?|the|this|that|some) ",
        "less cheerful as a cowboy: in that role",
    ),
    ("sluicing_correlate", r"something, .* who\.$", "who did it"),
    ("superlative_quantifiers_1", r"^No ", "no ... at least: many accept it"),
    ("superlative_quantifiers_2", r"^No ", "no ... at most: some accept it"),
    ("principle_A_reconstruction", r"^It's", "it's himself that left: Irish English"),
    (
        "principle_A_c_command",
        r"who .*\b(heard|saw|watched|helped|hear|see|watch|help) ",
        "heard him criticize",
    ),
]
ODD = [
    ("sentential_subject_island", r"s' ", "several jurors' pampering"),
    (
        "wh_questions_subject_gap_long_distance",
        r"\bthat (the|some|an?|this|these|those) .*\bthat ",
        "two relative clauses in a row",
    ),
    ("wh_island", r"^(Who|What) (has|had) ", "who had a waiter known he taught"),
    (
        "wh_vs_that_with_gap_long_distance",
        r"\b(who|what) .*\bwho\b",
        "who a professor who doesn't rise avoids",
    ),
    ("wh_island", r"\b(understand|determine|guess)\b", "what did she determine she would startle"),
    ("complex_NP_island", r"'s \w+ who ", "Nancy's husband who"),
    ("principle_A_domain_3", r"\b(should|might|could)\b", "could swear that she should"),
    ("temporal_clause_tense", r"\bdies?\b", "swim before the twins die"),
    ("only_npi_scope", r"\bever \w+\.$", "only a lawyer will ever blush"),
    ("npi_present_1", r"\balways\b", "even a burglar has always sneezed"),
]
GERMAN_SAID = [
    (
        "verb_second",
        r"^(Bestimmt|Offenbar|Vermutlich|Vielleicht|Wahrscheinlich) ",
        "perhaps many: one phrase",
    ),
    ("verb_second_auxiliary", r"^(Bestimmt|Offenbar|Vermutlich|Vielleicht|Anscheinend) ", "the same"),
    (
        "infinitive_after_modal",
        r"\b(will|wollen|wollte|wollten|wird|werden)\b",
        "wants it painted; a passive",
    ),
    ("reflexive_person", r"bedankt", "jemanden bedanken is said in the south"),
    ("preposition_case", r"\bohne\b", "ohne with a dative is said in the south"),
    ("determiner_gender_with_adjective", r"\bTaube\b", "der Taube: a deaf man"),
    ("determiner_gender", r"^Die \w+ \w+\.$", "die Koch: a woman of that name"),
]
GERMAN_ODD = [
    ("subject_verb_agreement_pp", r"\b(kam|kamen|reist|reisen|verreist|verreisen)\b", "came beside somebody"),
    ("adjective_after_indefinite", r"putz.* Kissen", "to polish a cushion"),
    ("relative_pronoun_gender", r"\bkrank.*\berkrank", "ill, falls ill"),
]


def count_words(texts: Sequence[str]) -> list[int]:
    """All words are as long as another."""
    return [len(text.split()) for text in texts]


@pytest.mark.parametrize(("uid", "pattern", "why"), SAID)
def test_a_bad_sentence_that_is_said_is_not_generated(
    uid: str,
    pattern: str,
    why: str,
    make_generator: Callable[..., PairGenerator],
    paradigms: dict[str, Paradigm],
) -> None:
    bads = make_generator().make(paradigms[uid], 120, seed=8).pairs["bad"]
    assert [bad for bad in bads if re.search(pattern, bad)] == [], why


@pytest.mark.parametrize(("uid", "pattern", "why"), ODD)
def test_a_good_sentence_that_is_odd_is_not_generated(
    uid: str,
    pattern: str,
    why: str,
    make_generator: Callable[..., PairGenerator],
    paradigms: dict[str, Paradigm],
) -> None:
    goods = make_generator().make(paradigms[uid], 120, seed=8).pairs["good"]
    assert [good for good in goods if re.search(pattern, good)] == [], why


@pytest.mark.parametrize(("uid", "pattern", "why"), GERMAN_SAID)
def test_a_bad_german_sentence_that_is_said_is_not_generated(uid: str, pattern: str, why: str) -> None:
    bads = _generate_german(uid)["bad"]
    assert [bad for bad in bads if re.search(pattern, bad)] == [], why


@pytest.mark.parametrize(("uid", "pattern", "why"), GERMAN_ODD)
def test_a_good_german_sentence_that_is_odd_is_not_generated(uid: str, pattern: str, why: str) -> None:
    goods = _generate_german(uid)["good"]
    assert [good for good in goods if re.search(pattern, good)] == [], why


@pytest.mark.parametrize("uid", ["relative_pronoun_case", "dative_object"])
def test_a_name_never_stands_where_its_case_would_matter(uid: str) -> None:
    """*Die Ärztin, die Karl schmeichelt*, *Julian vertraut diese Frau*: the name could be a dative."""
    names = {one.text for one in GERMAN.lexicon.readings["Name"]}
    for bad in _generate_german(uid)["bad"]:
        assert not names & set(re.findall(r"\w+", bad)), bad


def test_a_verb_without_agreement_in_its_past_tells_nothing_about_agreement(
    make_generator: Callable[..., PairGenerator], paradigms: dict[str, Paradigm], lexicon: Lexicon
) -> None:
    """*Her niece proofread the book* is good: the form is also the past."""
    forms = [one for one in lexicon.readings["V"] if one.features["morph"] == {"invariant"}]
    invariant = {one.text for one in forms if one.features["form"] == {"past"}}
    assert invariant >= {"read", "upset", "proofread"}
    for uid in paradigms:
        if "subject_verb_agreement" in uid or "distractor_agreement" in uid:
            for good, bad in (
                make_generator().make(paradigms[uid], 80, seed=8).pairs.select("good", "bad").iter_rows()
            ):
                changed = set(bad.rstrip(".").split()) - set(good.rstrip(".").split())
                assert not changed & invariant, bad


def test_the_times_of_future_and_past_differ_in_one_word(
    make_generator: Callable[..., PairGenerator], paradigms: dict[str, Paradigm]
) -> None:
    """*next Monday* beside *last Friday* is not a minimal pair."""
    for good, bad in (
        make_generator().make(paradigms["future_adverb"], 60, seed=8).pairs.select("good", "bad").rows()
    ):
        assert {word for word in bad.split() if word not in good.split()} in ({"last"}, {"next"})


@pytest.mark.parametrize("verb", ["arrest", "endorse", "enjoy", "nominate", "oppose", "schedule", "sponsor"])
def test_what_can_leave_its_object_out_is_not_strictly_transitive(verb: str, lexicon: Lexicon) -> None:
    frames = {
        frame
        for one in lexicon.readings["V"]
        if one.features["form"] == {"base"} and one.text == verb
        for frame in one.features["frame"]
    }
    assert frames
    assert "trans" not in frames


def test_a_word_that_is_there_twice_has_a_frequency_and_the_set_its_language() -> None:
    """*Die Witwe gratuliert die Diebin*: the other sentence has *die* too, but only once."""
    generator = PairGenerator(GERMAN.lexicon, GERMAN.grammar, {"words": count_words}, frequency=lambda _: 5.0)
    pairs = generator.make(GERMAN_PARADIGMS["dative_object"], 120, seed=8).pairs
    assert any(len(set(bad.lower().split())) < len(bad.split()) for bad in pairs["bad"])
    assert pairs["zipf_good"].to_list() == pairs["zipf_bad"].to_list() == [5.0] * 120
    assert pairs["language"].unique().to_list() == ["de"]


def _generate_german(uid: str) -> pl.DataFrame:
    generator = PairGenerator(GERMAN.lexicon, GERMAN.grammar, {"words": count_words})
    return generator.make(GERMAN_PARADIGMS[uid], 120, seed=8).pairs
