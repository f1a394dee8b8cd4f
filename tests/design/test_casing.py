"""A name keeps its capital when something is put before it, and an ordinary word loses it."""

from importlib.resources import files

import pytest

from felicity.design.insertion import learn_ordinary, lower_first


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The cat left.", "the cat left."),
        ("It's raining.", "it's raining."),
        ("I left.", "I left."),
        ("I'm late.", "I'm late."),
        ("Anna left.", "Anna left."),
        ("A. Smith left.", "A. Smith left."),
        ("A cat left.", "a cat left."),
        ("US ships left.", "US ships left."),
        ("IT is costly.", "IT is costly."),
        ("42 cats left.", "42 cats left."),
        ('"The cat left," he said.', '"The cat left," he said.'),
        ("", ""),
    ],
)
def test_only_an_ordinary_first_word_is_written_small(sentence: str, expected: str) -> None:
    assert lower_first(sentence, learn_ordinary()) == expected


def test_a_word_written_small_inside_other_sentences_is_ordinary() -> None:
    ordinary = learn_ordinary(["Anna met unicyclists.", "Otters swam."])
    assert lower_first("Unicyclists met Anna.", ordinary) == "unicyclists met Anna."
    assert lower_first("Otters swam.", ordinary) == "Otters swam."


def test_a_word_that_is_also_a_name_inside_stays_capital() -> None:
    ordinary = learn_ordinary(["A guy left.", "Some guy saw Guy.", "This guy slept."])
    assert lower_first("Guy slept.", ordinary) == "Guy slept."


def test_capitals_after_a_quote_or_a_stop_do_not_make_a_name() -> None:
    ordinary = learn_ordinary(['He said, "Otters swim." Otters do.', "I saw otters."])
    assert "otters" in ordinary


def test_will_is_a_verb_in_a_question_and_a_name_elsewhere() -> None:
    ordinary = learn_ordinary(["Anna will leave."])
    assert lower_first("Will Anna leave", ordinary, question=True) == "will Anna leave"
    assert lower_first("Will saw Anna", ordinary) == "Will saw Anna"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Thankfully, none of my teeth hurt.", "thankfully, none of my teeth hurt."),
        ("Stir a little vinegar into the sauce.", "stir a little vinegar into the sauce."),
        ("None of the keys fits.", "none of the keys fits."),
        ("Emily left.", "Emily left."),
        ("Kimberly left.", "Kimberly left."),
        ("Monday was sunny.", "Monday was sunny."),
    ],
)
def test_adverbs_and_orders_are_written_small_and_names_are_not(sentence: str, expected: str) -> None:
    assert lower_first(sentence, learn_ordinary()) == expected


def test_the_plural_of_an_ordinary_word_is_ordinary() -> None:
    ordinary = learn_ordinary(["We saw a walrus and one puffin there."])
    assert lower_first("Puffins dive.", ordinary) == "puffins dive."


def test_no_common_word_of_starter_keeps_its_capital_after_a_phrase() -> None:
    # All first words of starter that are written with a capital anywhere else: names, days, forms of address.
    folder = files("felicity.data").joinpath("starter")
    rows = [
        line.split("\t") for file in folder.iterdir() for line in file.read_text("utf-8").splitlines()[1:]
    ]
    sentences = [text for row in rows for text in row[1:]]
    ordinary = learn_ordinary(sentences)
    kept = {
        text.split()[0].strip(",").removesuffix("'s")
        for text in sentences
        if lower_first(text, ordinary, question=text.endswith("?")) == text
    }
    names = (
        "I Anna Aunt Bruno Carla Carlos Dad Ella Grandad Grandma Grandpa Helen Lucia Marta Monday Monica "
        "Nadia Nina Paul Peter Robert Sam Sofia Tom"
    )
    assert kept <= set(names.split())
