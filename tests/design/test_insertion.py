"""Punctuation and quotes come out right, whatever a sentence ends in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.design.insertion import (
    insert_after,
    insert_before,
    insert_in_quotes,
    learn_ordinary,
    split_sentence,
)

ORDINARY = learn_ordinary()


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The cat left.", "The cat left, luckily."),
        ("The cat left", "The cat left, luckily"),
        ("The cat left!", "The cat left, luckily!"),
        ("Who left?!", "Who left, luckily?!"),
        ("The cat left…", "The cat left, luckily…"),
        ("He lives in the U.S.", "He lives in the U.S., luckily."),
        ("He saw cats, etc.", "He saw cats, etc., luckily."),
        ('He said, "Go."', 'He said, "Go," luckily.'),
        ('He asked, "Why?"', 'He asked, "Why?" luckily.'),
        ("He said, “Go.”", "He said, “Go,” luckily."),
        ("(The cat left.)", "(The cat left, luckily.)"),
        ("The cat left .", "The cat left , luckily ."),
        ('He said , " Go . "', 'He said , " Go , " luckily .'),
        ("Ann saw the patients'.", "Ann saw the patients', luckily."),
    ],
)
def test_what_is_put_after_stands_before_the_ending(sentence: str, expected: str) -> None:
    assert insert_after(split_sentence(sentence), "luckily").text == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The cat left.", "Luckily, the cat left."),
        ("Anna left", "Luckily, Anna left"),
        ("(The cat left.)", "(Luckily, the cat left.)"),
        ("The cat left .", "Luckily , the cat left ."),
        ("Will Anna leave?", "Luckily, will Anna leave?"),
    ],
)
def test_what_is_put_before_opens_the_sentence(sentence: str, expected: str) -> None:
    assert insert_before(split_sentence(sentence), "luckily", ORDINARY).text == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The cat left.", 'Today, Nora said, "The cat left."'),
        ("The cat left", 'Today, Nora said, "The cat left."'),
        ("Who left?", 'Today, Nora said, "Who left?"'),
        ('He said, "Go."', "Today, Nora said, \"He said, 'Go.'\""),
        ("He said, “Go.”", "Today, Nora said, “He said, ‘Go.’”"),
        ("He said, \"I'm 'late'.\"", 'Today, Nora said, "He said, \'I\'m "late".\'"'),
        ("The patients' cat didn't go.", "Today, Nora said, \"The patients' cat didn't go.\""),
        ('He said, "Go', 'Today, Nora said, "He said, \'Go."'),
        ("(The cat left.)", '(Today, Nora said, "The cat left.")'),
        ("The cat left .", 'Today , Nora said , " The cat left . "'),
    ],
)
def test_quotes_nest(sentence: str, expected: str) -> None:
    assert insert_in_quotes(split_sentence(sentence), "today, Nora said").text == expected


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("Who left?", True),
        ("Who could those children' watching Ann scare.", True),
        ("It rains.", False),
        ('He asked, "Why?"', False),
        ("What he ate was the meal", False),
    ],
)
def test_questions_are_told_from_statements(sentence: str, question: bool) -> None:
    assert split_sentence(sentence).question is question


@given(st.text(alphabet="aZ .,?!…\"'()“”", max_size=20))
def test_a_sentence_taken_apart_is_put_together_again(text: str) -> None:
    assert split_sentence(text).text.replace(" ", "") == text.replace(" ", "")
