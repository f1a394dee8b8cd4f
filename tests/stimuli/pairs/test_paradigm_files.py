"""Paradigm files: those that come with felicity, one written from the docs, and those that are refused."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.api.pairs import PairsPlan, make_pairs
from felicity.core.errors import FelicityError, UnknownName
from felicity.stimuli.grammar import Grammar
from felicity.stimuli.lexicon import Lexicon
from felicity.stimuli.pairs import PairGenerator, Paradigm, read_paradigms
from tests.stimuli.pairs.conftest import COUNTERS

FINE = """
phenomenon = "agreement"

[clause_agreement]
about = "The verb of a clause after that agrees with its subject."
good = "subj:NP[num=?m, sem=person] main:VG[num=?m, frame=that] that NOUN VERB ."
bad = "@subj @main that @noun @verb[num=!?n] ."
differ = "verb"
""".replace("NOUN", "noun:NP[num=?n, sem=?s, np=plain]").replace(
    "VERB", "verb:V[form=pres, num=?n, frame=intrans, subj=?s]"
)


@pytest.mark.data
def test_the_paradigms_are_those_of_blimp(
    paradigms: dict[str, Paradigm], published: Callable[[str], Path]
) -> None:
    terms = {}
    for path in sorted(published("blimp/data").glob("*.jsonl.gz")):
        row = json.loads(gzip.decompress(path.read_bytes()).split(b"\n")[0])
        terms[row["UID"]] = row["linguistics_term"].replace("s-selection", "argument_structure")
    blimp = {uid: one.phenomenon for uid, one in paradigms.items() if one.collection == "blimp"}
    assert blimp == terms


def test_every_paradigm_beyond_blimp_has_a_source(paradigms: dict[str, Paradigm]) -> None:
    beyond = [one for one in paradigms.values() if one.collection != "blimp"]
    assert len(beyond) >= 25
    assert all(one.source and one.about and one.collection == "beyond" for one in beyond)


def test_a_paradigm_of_a_few_lines_works(tmp_path: Path, lexicon: Lexicon, grammar: Grammar) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FINE)
    (paradigm,) = read_paradigms(path, grammar)
    made = PairGenerator(lexicon, grammar, COUNTERS).make(paradigm, 40, seed=0)
    assert len(made.pairs) == 40
    assert made.pairs["phenomenon"].unique().to_list() == ["agreement"]


@pytest.mark.parametrize(("place", "uids"), [(1, ["clause_agreement"]), (2, ["count_mass", "possessor"])])
def test_the_paradigms_of_the_docs_work_as_they_stand(
    place: int, uids: list[str], tmp_path: Path, lexicon: Lexicon, grammar: Grammar
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "studies" / "pairs.md").read_text(encoding="utf-8")
    written = page.split("```toml\n")[place].split("```")[0]
    assert len(written.splitlines()) < 30
    path = tmp_path / "my_paradigm.toml"
    path.write_text(written)
    paradigms = read_paradigms(path, grammar)
    assert [one.uid for one in paradigms] == uids
    counters = {"words": lambda texts: [len(text.split()) for text in texts]}
    for paradigm in paradigms:
        assert len(PairGenerator(lexicon, grammar, counters).make(paradigm, 20, seed=0).pairs) == 20


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("noun:NP[num=?n,", "noun:NP[num=?n, gender=?n,", "contradict|no word"),
        ("sem=?s, np=plain]", "sem=contest, np=name]", "mine.toml, line 7: the features .* contradict"),
        (
            "frame=intrans, subj=?s]",
            "frame=intrans, subj=vessel, aspect=state]",
            "line 7: no word of the lexicon",
        ),
        ("@main that @noun", "@main thta @noun", "no word 'thta' in mine.toml, line 7; did you mean 'that'"),
        ("frame=intrans", "frame=intransitive", "no value of frame 'intransitive' in mine.toml, line 6"),
        ("@verb[num=!?n]", "@verv[num=!?n]", "no part 'verv' in mine.toml, line 7; did you mean 'verb'"),
        ("@verb[num=!?n]", "@verb[case=acc]", "no feature of V 'case' in mine.toml, line 7"),
        ("@noun @verb", "@noun[num=!?n] @verb", "line 7: '@noun' changes the features of a phrase"),
        ('differ = "verb"', 'differ = "noun"', "mine.toml, line 7: good and bad differ in @verb"),
        ('differ = "verb"', 'differ = "vreb"', "no part 'vreb' in mine.toml, line 8"),
        ('differ = "verb"', 'diffre = "verb"', "no key 'diffre' in mine.toml, line 8; did you mean 'differ'"),
        ("@verb[num=!?n] .", "verb:V[form=past, frame=intrans] ever .", "differ in 'ever'"),
        ('bad = "', 'worse = "', "no key 'worse' in mine.toml, line 7"),
        ("[clause_agreement]", "[clause_agreement", "mine.toml.*line 4"),
    ],
)
def test_what_is_wrong_is_refused_with_file_and_line(
    old: str, new: str, says: str, tmp_path: Path, lexicon: Lexicon, grammar: Grammar
) -> None:
    path = tmp_path / "mine.toml"
    assert old in FINE
    path.write_text(FINE.replace(old, new))
    with pytest.raises(FelicityError, match=says):
        for paradigm in read_paradigms(path, grammar):
            PairGenerator(lexicon, grammar, COUNTERS).make(paradigm, 5, seed=0)


def test_a_length_that_cannot_be_reached_is_refused(
    tmp_path: Path, lexicon: Lexicon, grammar: Grammar
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        FINE.replace("@verb[num=!?n] .", "@verb[num=!?n] mark:that mark:that .").replace(
            'differ = "verb"', 'differ = ["verb", "mark"]'
        )
    )
    (paradigm,) = read_paradigms(path, grammar)
    with pytest.raises(FelicityError, match="mine.toml, line 7: no V.*equally long under all tokenizers"):
        PairGenerator(lexicon, grammar, {"words": lambda texts: [len(t.split()) for t in texts]}).make(
            paradigm, 5, seed=0
        )


def test_given_words_of_unequal_length_are_refused_at_once(
    tmp_path: Path, lexicon: Lexicon, grammar: Grammar
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        FINE.replace("that NOUN", "link:that NOUN")
        .replace("that noun", "link:that noun")
        .replace("that @noun @verb[num=!?n] .", "link:more link:than @noun @verb .")
        .replace('differ = "verb"', 'differ = "link"')
    )
    (paradigm,) = read_paradigms(path, grammar)
    with pytest.raises(
        FelicityError, match="mine.toml, line 7: no pair of 'clause_agreement' is equally long"
    ):
        PairGenerator(lexicon, grammar, {"words": lambda texts: [len(t.split()) for t in texts]}).make(
            paradigm, 5, seed=0
        )


def test_a_paradigm_may_declare_that_it_cannot_be_equal(
    tmp_path: Path, lexicon: Lexicon, grammar: Grammar
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        FINE.replace("@noun @verb[num=!?n]", "@noun not:not @verb[num=!?n]").replace(
            'differ = "verb"', 'differ = ["verb", "not"]\nunequal = "the bad sentence has one more word"'
        )
    )
    (paradigm,) = read_paradigms(path, grammar)
    made = PairGenerator(lexicon, grammar, {"words": lambda texts: [len(t.split()) for t in texts]}).make(
        paradigm, 20, seed=0
    )
    assert set(made.pairs["tokens_bad_words"] - made.pairs["tokens_good_words"]) == {1}


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        # Found odd by an independent reader of 402 generated pairs.
        ("Each boy didn't leave.", "universal under negation"),
        ("What can't some victims tame?", "some under negation"),
        ("The nun doesn't hope that Ann left.", "negated bet or hope"),
        ("Who hadn't the witness liked?", "negated wh-question"),
        ("The king didn't say that she doesn't sing.", "two negations"),
        ("Some boys don't sing.", None),
        ("The nun hopes that every boy sings.", None),
    ],
)
def test_the_grammar_avoids_what_is_odd_with_any_words(
    sentence: str, name: str | None, grammar: Grammar
) -> None:
    assert grammar.find_avoided(sentence) == name
    if name:
        allowed = [one.name for one in grammar.avoid]
        assert grammar.find_avoided(sentence, allowed) is None


def test_no_generated_good_sentence_has_what_is_avoided(
    paradigms: dict[str, Paradigm], lexicon: Lexicon, grammar: Grammar
) -> None:
    generator = PairGenerator(lexicon, grammar, COUNTERS)
    for uid in ("causative", "principle_A_domain_1", "complex_NP_island"):
        goods = generator.make(paradigms[uid], 60, seed=2).pairs["good"].to_list()
        assert [text for text in goods if grammar.find_avoided(text, paradigms[uid].allow)] == []


def test_an_unknown_name_in_allow_is_refused(tmp_path: Path, grammar: Grammar) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FINE + 'allow = ["two negatons"]\n')
    with pytest.raises(FelicityError, match="did you mean 'two negations'"):
        read_paradigms(path, grammar)


def test_paradigms_are_chosen_by_name_phenomenon_or_collection() -> None:
    plan = PairsPlan(
        paradigms=["gapping_direction", "verb_alternations", "gapping_direction"], n=1, match=["length"]
    )
    made = make_pairs(plan, counters=COUNTERS).account
    assert made["suite"].to_list() == [
        "gapping_direction",
        "dative_double_object",
        "locative_with",
        "locative_onto",
        "particle_pronoun",
    ]
    with pytest.raises(UnknownName, match="did you mean 'gapping_direction'"):
        make_pairs(PairsPlan(paradigms=["gaping_direction"], match=["length"]), counters=COUNTERS)


def test_suites_with_and_without_exchanged_words_are_joined(
    lexicon: Lexicon, grammar: Grammar, paradigms: dict[str, Paradigm]
) -> None:
    generator = PairGenerator(lexicon, grammar, COUNTERS, frequency=lambda _: 4.0)
    uids = ("gapping_direction", "dative_double_object")
    joined = pl.concat([generator.make(paradigms[uid], 2, seed=0).pairs for uid in uids])
    assert joined["zipf_good"].null_count() == 2
