"""Neutral contexts: drawn reproducibly, cut between words, and what is put into them."""

from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.core.word_forms import WordForm
from felicity.design.neutral import MOST_BEFORE, NeutralContext, draw_neutral, list_prompts, place_word

CONTEXT = NeutralContext("The clerk sorts the letters.", "The clerk", "sorts")


def test_contexts_are_beginnings_of_their_sentences_and_fewer_are_the_first_of_more() -> None:
    few, many = draw_neutral(None, size=8, seed=3), draw_neutral(None, size=40, seed=3)
    assert many[:8] == few
    assert all(one.sentence.startswith(one.beginning) for one in many)
    assert all(2 <= len(one.beginning.split()) <= MOST_BEFORE for one in many)
    assert len({one.sentence for one in many}) == 40
    assert draw_neutral(None, size=8, seed=4) != few


def test_contexts_come_from_a_text_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("Il gatto dorme sul tetto rosso. La pioggia cade piano sulle case. Sì.\n")
    assert {one.sentence.split()[0] for one in draw_neutral(path, size=2, seed=0)} == {"Il", "La"}
    with pytest.raises(BadInput, match="has 2 sentences that can be cut, but 3"):
        draw_neutral(path, size=3, seed=0)


def test_one_context_is_too_few_for_an_error() -> None:
    with pytest.raises(BadInput, match="at least 2"):
        draw_neutral(None, size=1, seed=0)


@pytest.mark.parametrize(
    ("word", "context", "text"),
    [
        (WordForm("Cats", "opening", closed=True), "The clerk sorts the letters.", "\nCats and"),
        (WordForm("Cats", "initial"), "The clerk sorts the letters.", "Cats"),
        (WordForm("cats", "inside", closed=True), "The clerk sorts", "cats and"),
        (WordForm("cats", "inside", "(", closed=False), "The clerk sorts", "(cats"),
        (WordForm("!", "attached", closed=True), "The clerk", "sorts! and"),
    ],
)
def test_a_word_stands_where_it_stands_in_its_sentence(word: WordForm, context: str, text: str) -> None:
    placed = place_word(word, CONTEXT, opening="\n", closing=True, both_sides=False)
    assert (placed.context, placed.text) == (context, text)
    assert placed.text[placed.begin : placed.end] == word.form


def test_a_model_that_reads_both_sides_sees_a_full_stop() -> None:
    placed = [
        place_word(
            WordForm("cats", "inside", closed=closed), CONTEXT, opening="", closing=False, both_sides=True
        )
        for closed in (True, False)
    ]
    assert [one.text for one in placed] == ["cats.", "cats."]
    assert len(list_prompts(placed)) == 1
