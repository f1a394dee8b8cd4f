"""Words become a sentence as English spells it."""

import pytest

from felicity.stimuli.lexicon import read_lexicon


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("the waiter left .", "The waiter left."),
        ("will n't Anna sing ?", "Won't Anna sing?"),
        ("Anna can n't sing .", "Anna can't sing."),
        ("the guests ' visit annoyed Chris 's friend .", "The guests' visit annoyed Chris's friend."),
        ("it 's herself that Anna praised .", "It's herself that Anna praised."),
        (
            "a actor saw a university and a honest engineer .",
            "An actor saw a university and an honest engineer.",
        ),
    ],
)
def test_clitics_articles_marks_and_capitals(words: str, sentence: str) -> None:
    assert read_lexicon().vocabulary.realization.realize(words.split()) == sentence


def test_the_article_agrees_with_the_inflect_library() -> None:
    inflect = pytest.importorskip("inflect").engine()
    words = read_lexicon().readings
    forms = {one.text for one in words["N"] + words["Adj"] if one.features.get("num", {"sg"}) == {"sg"}}
    realize = read_lexicon().vocabulary.realization.realize
    wrong = {form for form in forms if realize(["x", "a", form]) != f"X {inflect.a(form)}"}
    assert wrong == set()
