"""Sentences into running text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.design.contexts.sentence_pools import (
    AT_THE_END,
    CLOSERS,
    TERMINAL,
    close_sentence,
    join_sentences,
    sentence_identity,
)


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


@given(st.text(), st.sampled_from(["", *TERMINAL]), st.text(alphabet=CLOSERS + " "))
def test_what_ends_in_a_mark_stays_and_nothing_else_does(words: str, mark: str, behind: str) -> None:
    sentence = words.rstrip(AT_THE_END) + mark + behind
    expected = sentence.strip() if mark else f"{sentence.strip()}."
    assert close_sentence(sentence) == expected
    assert close_sentence(expected) == expected


@given(st.text(alphabet="ab .?"))
def test_closing_a_sentence_does_not_make_it_another(sentence: str) -> None:
    assert sentence_identity(close_sentence(sentence)) == sentence_identity(sentence)


def test_sentences_are_joined_by_one_space() -> None:
    assert (
        join_sentences(["Who left? ", "The cat purrs", "It rains."]) == "Who left? The cat purrs. It rains."
    )
