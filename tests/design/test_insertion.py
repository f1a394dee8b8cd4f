"""Punctuation and quotes come out right, whatever a sentence ends in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.design.casing import learn_ordinary
from felicity.design.insertion import put_after, put_before, put_in_quotes, take_apart

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
    assert put_after(take_apart(sentence), "luckily").text == expected


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
    assert put_before(take_apart(sentence), "luckily", ORDINARY).text == expected


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
    assert put_in_quotes(take_apart(sentence), "today, Nora said").text == expected


@pytest.mark.parametrize(
    ("sentence", "asking"),
    [
        ("Who left?", True),
        ("Who could those children' watching Ann scare.", True),
        ("It rains.", False),
        ('He asked, "Why?"', False),
        ("What he ate was the meal", False),
    ],
)
def test_questions_are_told_from_statements(sentence: str, asking: bool) -> None:
    assert take_apart(sentence).asking is asking


@given(st.text(alphabet="aZ .,?!…\"'()“”", max_size=20))
def test_a_sentence_taken_apart_is_put_together_again(text: str) -> None:
    assert take_apart(text).text.replace(" ", "") == text.replace(" ", "")
