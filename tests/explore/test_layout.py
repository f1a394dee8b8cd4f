"""Sentences in columns: by hand, and what must hold for any text and any tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.explore.layout import ScoredText, Sentence, align_words, find_units, lay_out, run_margin


def score(*pieces: tuple[str, int, int, float | None]) -> ScoredText:
    tokens, start, end, logprob = zip(*pieces, strict=True)
    return ScoredText(tokens=tokens, start=start, end=end, logprob=logprob)


GOOD = Sentence(
    condition="good",
    text="The cats annoy Tim.",
    scored={
        "a": score(
            ("The", 0, 3, -1.0),
            ("cats", 3, 8, -2.0),
            ("annoy", 8, 14, -3.0),
            ("Tim", 14, 18, -1.0),
            (".", 18, 19, -0.5),
        ),
        "b": score(("The", 0, 3, None), ("cats", 4, 8, -4.0), ("annoy", 9, 14, -4.0), ("Tim.", 15, 19, -2.0)),
    },
)
BAD = Sentence(
    condition="bad",
    text="The cats annoys Tim.",
    scored={
        "a": score(
            ("The", 0, 3, -1.0),
            ("cats", 3, 8, -2.0),
            ("ann", 8, 12, -4.0),
            ("oys", 12, 15, -1.0),
            ("Tim", 15, 19, -0.5),
            (".", 19, 20, -0.5),
        ),
        "b": score(
            ("The", 0, 3, None), ("cats", 4, 8, -4.0), ("annoys", 9, 15, -3.0), ("Tim.", 16, 20, -2.0)
        ),
    },
)


def test_replaced_words_share_a_column_and_tokens_stand_at_their_characters() -> None:
    laid = lay_out([GOOD, BAD])
    assert laid.widths == (3, 4, 6, 4)
    assert laid.words == (("The", "cats", "annoy", "Tim."), ("The", "cats", "annoys", "Tim."))
    bad = [(cell.column, cell.at, cell.span, cell.text) for cell in laid.cells[1, "a"]]
    assert bad[2:] == [(2, 0, 3, "ann"), (2, 3, 3, "oys"), (3, 0, 3, "Tim"), (3, 3, 1, ".")]


def test_the_running_margin_ends_at_the_difference_and_says_where_the_decision_falls() -> None:
    laid = lay_out([GOOD, BAD])
    assert laid.running[0, 1, "a"].margins == pytest.approx((0.0, 0.0, 2.0, 1.5))
    assert laid.running[0, 1, "a"].decided == 2
    assert laid.running[0, 1, "b"].margins == pytest.approx((0.0, 0.0, -1.0, -1.0))
    assert laid.total(0, "a") - laid.total(1, "a") == pytest.approx(1.5)


def test_a_tie_is_decided_nowhere_and_a_change_of_sign_moves_the_decision() -> None:
    assert run_margin([-1.0, -1.0], [-2.0, 0.0]).decided is None
    assert run_margin([-1.0, -1.0, -1.0], [-2.0, -1.0, 2.0]).decided == 2


def test_a_sentence_alone_and_no_sentence_are_laid_out() -> None:
    assert lay_out([GOOD]).running == {}
    assert lay_out([]).widths == ()


def test_tokens_that_divide_a_character_are_one_cell_with_their_sum() -> None:
    text = "A 👩 B"
    scored = score(("A", 0, 1, -1.0), (" \ud83d", 1, 3, -2.0), ("\udc69", 2, 3, -3.0), (" B", 3, 5, -1.0))
    cells = lay_out([Sentence(condition="x", text=text, scored={"m": scored})]).cells[0, "m"]
    assert [(cell.text, cell.logprob) for cell in cells] == [("A", -1.0), ("👩", -5.0), ("B", -1.0)]


def test_white_space_and_an_end_token_keep_their_log_probability() -> None:
    scored = score(("A", 0, 1, -1.0), (" ", 1, 3, -2.0), ("B", 3, 4, -1.0), ("</s>", 4, 4, -0.5))
    laid = lay_out([Sentence(condition="x", text="A  B", scored={"m": scored})])
    assert [(cell.column, cell.text, cell.logprob) for cell in laid.cells[0, "m"]] == [
        (0, "A", -1.0),
        (1, "␣B", -3.0),
        (2, "</s>", -0.5),
    ]


def test_words_that_one_token_covers_are_one_column() -> None:
    scored = score(("in spite", 0, 8, -1.0), ("of", 8, 11, -1.0))
    assert find_units(Sentence(condition="", text="in spite of", scored={"m": scored})) == [(0, 8), (9, 11)]


def test_characters_without_spaces_between_them_are_columns_of_their_own() -> None:
    assert find_units(Sentence(condition="", text="猫が 眠る", scored={})) == [(0, 1), (1, 2), (3, 4), (4, 5)]


def test_every_word_of_many_conditions_has_a_column_in_order() -> None:
    texts = ["a b c d", "a x c d", "b c", "a b c d e", "z"]
    for own in align_words([text.split() for text in texts]):
        assert own == sorted(set(own))


@st.composite
def scored_texts(draw: st.DrawFn) -> Sentence:
    text = draw(st.text(alphabet="ab 猫é👩", min_size=1, max_size=14).filter(str.strip))
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=6))})
    values = draw(st.lists(st.floats(-9, 0), min_size=len(cuts), max_size=len(cuts)))
    pieces = [
        (text[one:other], one, other, value)
        for one, other, value in zip(cuts, cuts[1:], values, strict=False)
    ]
    return Sentence(condition="x", text=text, scored={"m": score(*pieces)})


@given(st.lists(scored_texts(), min_size=1, max_size=3))
def test_no_log_probability_is_lost_whatever_the_text(sentences: list[Sentence]) -> None:
    laid = lay_out(sentences)
    for number, sentence in enumerate(sentences):
        assert laid.total(number, "m") == pytest.approx(sum(sentence.scored["m"].logprob))  # type: ignore[arg-type]
        places = [(cell.column, cell.at) for cell in laid.cells[number, "m"]]
        assert places == sorted(places)
        assert all(cell.at + cell.span <= laid.widths[cell.column] for cell in laid.cells[number, "m"])
    for (first, second, model), running in laid.running.items():
        assert running.margins[-1] == pytest.approx(laid.total(first, model) - laid.total(second, model))
