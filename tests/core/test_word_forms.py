"""Words as a model meets them: where they stand, and what is before and after them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.core.errors import BadInput
from felicity.core.word_forms import WordForm, find_forms


def forms(text: str, context: str | None = None) -> list[WordForm]:
    return [found.word for found in find_forms(text, context=context)]


def test_words_have_their_position_and_punctuation_is_split_off() -> None:
    assert forms("Don't go, she said. Why?") == [
        WordForm("Don't", "opening", closed=True),
        WordForm("go", "inside"),
        WordForm(",", "attached", closed=True),
        WordForm("she", "inside", closed=True),
        WordForm("said", "inside"),
        WordForm(".", "attached", closed=True),
        WordForm("Why", "initial"),
        WordForm("?", "attached"),
    ]


def test_a_word_after_an_opening_quote_knows_it() -> None:
    assert forms('He read "War and Peace"')[2:4] == [
        WordForm('"', "inside"),
        WordForm("War", "inside", '"', closed=True),
    ]


@pytest.mark.parametrize(
    ("context", "start"),
    [
        (None, "opening"),
        ("", "opening"),
        ("It rained.", "initial"),
        ('"No!"', "initial"),
        ("A robin is a", "inside"),
    ],
)
def test_the_first_word_depends_on_what_stands_before_the_text(context: str | None, start: str) -> None:
    assert forms("bird", context)[0].start == start


def test_vowel_signs_belong_to_their_word() -> None:
    # Devanagari: the last character of the first word is a vowel sign, no punctuation.
    assert [word.form for word in forms("यह किताब है।")] == ["यह", "किताब", "है", "।"]


@given(st.text(alphabet="ab.,'\" -(", max_size=30))
def test_words_and_punctuation_are_the_text_without_its_spaces(text: str) -> None:
    found = find_forms(text)
    assert "".join(one.word.form for one in found) == "".join(text.split())
    assert all(text[one.begin : one.end] == one.word.form for one in found)


def test_a_script_without_spaces_is_refused() -> None:
    with pytest.raises(BadInput, match="written without spaces"):
        find_forms("猫が庭で鳴く。")
