"""Sentences into running text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.design.contexts.sentence_pools import close_sentence, join_sentences, sentence_key


@pytest.mark.parametrize(
    ("sentence", "closed"),
    [
        ("The cat purrs", "The cat purrs."),
        (" The cat purrs. ", "The cat purrs."),
        ("The cat purrs .", "The cat purrs ."),
        ("Who purrs?", "Who purrs?"),
        ("He waits…", "He waits…"),
        ('She said, "It purrs."', 'She said, "It purrs."'),
        ("She said, 'It purrs!'", "She said, 'It purrs!'"),
        ("(It purrs.)", "(It purrs.)"),
        ('He likes "cats"', 'He likes "cats".'),
        ("猫が鳴く。", "猫が鳴く。"),
    ],
)
def test_a_full_stop_is_added_only_where_nothing_ends_the_sentence(sentence: str, closed: str) -> None:
    assert close_sentence(sentence) == closed


@given(st.text())
def test_what_is_closed_stays_as_it_is(sentence: str) -> None:
    closed = close_sentence(sentence)
    assert close_sentence(closed) == closed


@given(st.text(alphabet="ab .?"))
def test_closing_a_sentence_does_not_make_it_another(sentence: str) -> None:
    assert sentence_key(close_sentence(sentence)) == sentence_key(sentence)


def test_sentences_are_joined_by_one_space() -> None:
    assert (
        join_sentences(["Who left? ", "The cat purrs", "It rains."]) == "Who left? The cat purrs. It rains."
    )
