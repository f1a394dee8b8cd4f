"""A name keeps its capital when something is put before it, and an ordinary word loses it."""

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
