"""Token offsets into cells a person can read."""

from felicity.report.examples import MOST_CELLS, Cell, choose_window, mark_differences, read_cells


def cells_of(text: str, *tokens: tuple[str, int, int, float | None]) -> list[Cell]:
    names, start, end, logprob = zip(*tokens, strict=True)
    return read_cells(text, tokens=names, start=start, end=end, logprob=logprob)


def test_text_is_read_by_offset_whatever_the_pieces_look_like() -> None:
    text = "The cats annoy"
    byte_level = cells_of(
        text, ("The", 0, 3, -1.0), ("Ġcats", 3, 8, -2.0), ("Ġann", 8, 12, -1.0), ("oy", 12, 14, -1.0)
    )
    trimmed = cells_of(
        text, ("▁The", 0, 3, -1.0), ("▁cats", 4, 8, -2.0), ("▁ann", 9, 12, -1.0), ("oy", 12, 14, -1.0)
    )
    for cells in (byte_level, trimmed):
        assert [cell.text for cell in cells] == ["The", "cats", "ann", "oy"]
        assert [cell.gap for cell in cells] == [False, True, True, False]


def test_the_bytes_of_one_character_are_one_cell_with_their_sum() -> None:
    _, emoji = cells_of("I 🍕", ("I", 0, 1, -1.0), ("ĠðŁ", 1, 3, -3.0), ("į", 2, 3, -0.5), ("ķ", 2, 3, -0.25))
    assert (emoji.text, emoji.gap, emoji.pieces) == ("🍕", True, ("ĠðŁ", "į", "ķ"))
    assert emoji.logprob == -3.75


def test_byte_pieces_that_cover_nothing_join_the_character_before() -> None:
    cells = cells_of("🍕", ("<0xF0>", 0, 1, -1.0), ("<0x9F>", 1, 1, -1.0), ("<0x8D>", 1, 1, -1.0))
    assert [cell.text for cell in cells] == ["🍕"]


def test_an_end_token_is_shown_by_name() -> None:
    cells = cells_of("Go", ("Go", 0, 2, -1.0), ("</s>", 2, 2, -0.5))
    assert [(cell.text, cell.special) for cell in cells] == [("Go", False), ("</s>", True)]


def test_white_space_and_joiners_are_made_visible() -> None:
    cells = cells_of(
        "a \n\u200db",
        ("a", 0, 1, -1.0),
        ("Ġ", 1, 2, -1.0),
        ("Ċ", 2, 3, -1.0),
        ("x", 3, 4, -1.0),
        ("b", 4, 5, -1.0),
    )
    assert [cell.text for cell in cells] == ["a", "␣", "⏎", "U+200D", "b"]


def test_a_cell_with_an_unscored_token_has_no_cost() -> None:
    (cell,) = cells_of("🍕", ("a", 0, 1, None), ("b", 0, 1, -1.0))
    assert cell.logprob is None


def test_only_what_the_other_side_lacks_is_marked() -> None:
    good = cells_of(
        "The cat who sees",
        ("The", 0, 3, -1.0),
        ("Ġcat", 3, 7, -1.0),
        ("Ġwho", 7, 11, -1.0),
        ("Ġsees", 11, 16, -1.0),
    )
    bad = cells_of("The cat sees", ("The", 0, 3, -1.0), ("Ġcat", 3, 7, -1.0), ("Ġsees", 7, 12, -1.0))
    first, second = mark_differences(good, bad)
    assert [cell.text for cell in first if cell.differs] == ["who"]
    assert [cell.text for cell in second if cell.differs] == []


def test_equal_sides_differ_nowhere() -> None:
    cells = cells_of("Go", ("Go", 0, 2, -1.0))
    assert mark_differences(cells, cells) == (cells, cells)


def test_a_long_sentence_is_cut_about_its_first_difference() -> None:
    plain = Cell(text="a", gap=True, special=False, pieces=("a",), logprobs=(-1.0,))
    cells = (
        [plain] * 500
        + [Cell(text="b", gap=True, special=False, pieces=("b",), logprobs=(-1.0,), differs=True)]
        + [plain] * 500
    )
    start, stop = choose_window(cells)
    assert start < 500 < stop
    assert stop - start == MOST_CELLS
