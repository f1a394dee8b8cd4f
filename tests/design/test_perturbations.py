"""Perturbed sentences keep their words in order and gain what their perturbation says."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from felicity.core.documents import read_packaged_toml
from felicity.core.errors import BadInput, UnknownName
from felicity.design.insertion import read_word_list, split_sentence
from felicity.design.perturbations import PERTURBATIONS, perturb
from felicity.design.similarity import token_f1

INSERTING = (
    "adverb_before",
    "adverb_after",
    "long_adverbial",
    "clause_before",
    "clause_after",
    "quotation",
    "all",
)
INSERTIONS = read_packaged_toml("felicity.design", "words/insertions.toml")
STATEMENTS = INSERTIONS["statement"]


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def is_within(inner: list[str], outer: list[str]) -> bool:
    return any(outer[i : i + len(inner)] == inner for i in range(len(outer) - len(inner) + 1))


def test_the_protocol_s_perturbations_are_all_there() -> None:
    assert set(PERTURBATIONS) == {"none", "nonsense", *INSERTING}


def test_a_misspelt_perturbation_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'quotation'"):
        perturb("quotaton")


def test_unperturbed_is_as_it_was() -> None:
    assert perturb("none")("The cat left.", Random(1)) == "The cat left."


@pytest.mark.parametrize("name", INSERTING)
def test_the_same_seed_gives_the_same_sentence_and_another_one_in_the_end_another(name: str) -> None:
    change = perturb(name)
    drawn = [change("The cat left.", Random(seed)) for seed in range(20)]
    assert drawn == [change("The cat left.", Random(seed)) for seed in range(20)]
    assert len(set(drawn)) > 5


def test_numpy_generators_serve_as_well() -> None:
    change = perturb("clause_before")
    first, again = (change("It rains.", np.random.default_rng(3)) for _ in range(2))
    assert first == again != "It rains."


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("adverb_before", r"^[A-Z][a-z]+, the cat left\.$"),
        ("adverb_after", r"^The cat left, [a-z]+\.$"),
        ("long_adverbial", r"^[A-Z][a-z]+( [a-z]+)+, the cat left\.$"),
        ("clause_before", r"^[A-Z][^,]+, the cat left\.$"),
        ("clause_after", r"^The cat left, [a-z][^,]+\.$"),
        ("quotation", r'^[A-Z][^,]+, [A-Z][a-z]+ [a-z ]+, "The cat left\."$'),
        ("all", r'^[A-Z][^,]+, [A-Z][a-z]+ [a-z ]+, "[A-Z][a-z ]+, [^,]+, the cat left, [a-z][^,]+\."$'),
    ],
)
def test_each_has_its_shape(name: str, shape: str) -> None:
    for seed in range(50):
        assert re.match(shape, perturb(name)("The cat left.", Random(seed)))


def test_questions_get_what_suits_questions() -> None:
    unsuited = set(STATEMENTS["adverbs"]) - set(INSERTIONS["question"]["adverbs"])
    for seed in range(100):
        asked = perturb("adverb_before")("Who left?", Random(seed))
        assert asked.split(",")[0].lower() not in unsuited
        assert asked.endswith(", who left?")


def test_no_name_is_in_the_sentence_already_or_comes_twice() -> None:
    taken = read_word_list("names")[:-4]
    sentence = f"{', '.join(taken)} left."
    made = perturb("all")(sentence, Random(0))
    names = [word for word in re.findall(r"\w+", made) if word in read_word_list("names")]
    assert len(names) == len(set(names)) == len(taken) + 3


def test_a_sentence_with_every_name_is_refused() -> None:
    with pytest.raises(BadInput, match="every name"):
        perturb("quotation")(f"{', '.join(read_word_list('names'))} left.", Random(0))


@pytest.mark.parametrize("kind", ["statement", "question"])
def test_insertions_hold_no_negation_and_at_most_one_name(kind: str) -> None:
    for phrases in INSERTIONS[kind].values():
        assert len(phrases) == len(set(phrases)) >= 6
        for phrase in phrases:
            assert not {"not", "never", "nobody", "ever", "any"} & set(phrase.split())
            assert phrase.count("NAME") <= 1
            assert phrase[0].islower()


def test_more_insertion_is_less_alike() -> None:
    sentence = "The cats have annoyed Tim."
    similar = {name: token_f1(sentence, perturb(name)(sentence, Random(2))) for name in INSERTING}
    # 5 words; one more: 10/11. The adverb is one word before as after.
    assert similar["adverb_before"] == similar["adverb_after"] == pytest.approx(10 / 11)
    assert similar["all"] < min(similar[name] for name in INSERTING if name != "all") < 10 / 11


@pytest.mark.data
@pytest.mark.parametrize("name", INSERTING)
def test_published_sentences_keep_their_words_names_and_ending(
    name: str, published: Callable[[str], Path]
) -> None:
    tables = [pl.read_ndjson(path) for path in sorted(published("blimp/data").glob("*.jsonl.gz"))]
    texts = [text for table in tables for text in table["sentence_good"].to_list()]
    change = perturb(name, sentences=texts)
    rng = Random(7)
    for text in texts[::25]:
        made = change(text, rng)
        assert is_within(words(text), words(made))
        assert made.rstrip('"').endswith(text[-1])
        assert made[0].isupper()
        assert not re.search(r"[,.?!]{2}|\s[,.?!]|\s\s", made)


@pytest.mark.data
def test_the_first_words_of_blimp_are_lowered_unless_they_are_names(published: Callable[[str], Path]) -> None:
    tables = [pl.read_ndjson(path) for path in sorted(published("blimp/data").glob("*.jsonl.gz"))]
    texts = [text for table in tables for text in table["sentence_good"].to_list()]
    change = perturb("adverb_before", sentences=texts)
    kept, lowered = set(), set()
    for text in texts:
        second = change(text, Random(0)).split(", ", 1)[1].split()[0]
        (lowered if second[0].islower() else kept).add(second)
    # BLiMP's vocabulary has some 200 first names; what else keeps its capital are other names.
    assert {"Galileo", "Spain", "Harvard", "Guy", "Rose", "Grace", "Mark"} <= kept
    assert {"the", "who", "it's", "children", "cilantro", "unicycles", "had", "will"} <= lowered
    assert not {word.lower() for word in kept} & lowered


@pytest.mark.parametrize(
    ("sentence", "imperative"),
    [
        ("Tell the guests to wait.", True),
        ("Please return these books today.", True),
        ("Never read a toddler a ghost story.", True),
        ("Never before has the hall been so full.", False),
        ("Help came late.", False),
        ("The guests waited.", False),
        ("Call this a map?", False),
    ],
)
def test_orders_get_phrases_that_fit_orders(sentence: str, imperative: bool) -> None:
    assert split_sentence(sentence).imperative == imperative
    facts = {"fortunately", "luckily", "evidently", "surprisingly", "sadly"}
    drawn = {perturb("adverb_before")(sentence, Random(seed)).split(",")[0].lower() for seed in range(60)}
    if imperative:
        assert not drawn & facts
