"""Words by character offsets, with the end of a word counted to the word."""

from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, UnknownName
from felicity.measures.words import find_words, sum_spans

HARD = [
    "The cat didn't see the cat.",
    "“No,” she said — “never!”",
    "I 😀 中文  yes",
    "中文句子",
    "cats",
    " The cats ",
]


def table(
    text: str, cuts: list[int], logprob: list[float | None], boundary: list[float | None]
) -> pl.DataFrame:
    starts = [0, *cuts]
    return pl.DataFrame(
        {
            "start": [starts],
            "end": [[*cuts, len(text)]],
            "logprob": [logprob],
            "boundary": [boundary],
        }
    )


def test_a_worked_example() -> None:
    # "the cat sat": the | _ca | t | _sat. The end of "the" is the chance -0.1 of a space before "_ca",
    # taken from "cat"; that of "cat" is -0.4. So: -2 - 0.1, -3 - 0.5 + 0.1 - 0.4, -4 + 0.4.
    text = "the cat sat"
    tokens = table(text, [3, 6, 7], [-2.0, -3.0, -0.5, -4.0], [-0.7, -0.1, -2.0, -0.4])
    corrected = sum_spans(tokens, [text], [find_words(text)])
    assert corrected["lp"].to_list() == pytest.approx([-2.1, -3.8, -3.6])
    plain = sum_spans(tokens, [text], [find_words(text)], boundary="plain")
    assert plain["lp"].to_list() == pytest.approx([-2.0, -3.5, -4.0])
    assert plain["n_tokens"].to_list() == [1, 2, 1]


def test_an_end_token_ends_the_last_word_and_stands_by_itself() -> None:
    text = "a b"
    tokens = pl.DataFrame(
        {
            "start": [[0, 1, 3]],
            "end": [[1, 3, 3]],
            "logprob": [[-1.0, -2.0, -3.0]],
            "boundary": [[-9.0, -0.5, -0.25]],
        }
    )
    words = sum_spans(tokens, [text], [find_words(text)])
    assert words["word"].to_list() == ["a", "b", ""]
    assert words["lp"].to_list() == pytest.approx([-1.5, -2.0 + 0.5 - 0.25, -3.0 + 0.25])


def test_a_region_that_ends_within_a_word_is_not_corrected_there() -> None:
    text = "cat."
    tokens = table(text, [3], [-1.0, -2.0], [-0.5, -0.5])
    regions = sum_spans(tokens, [text], [[(0, 3), (3, 4)]])
    assert regions["lp"].to_list() == [-1.0, -2.0]


@pytest.mark.parametrize("policy", [{}, {"eos": "auto"}, {"bos": "none"}], ids=["begin", "end", "bare"])
@pytest.mark.parametrize("boundary", ["corrected", "plain"])
def test_words_sum_to_the_sentence(tiny_model: Path, policy: dict[str, str], boundary: str) -> None:
    lm = fe.model(str(tiny_model), policy=fe.Policy(**policy), cache=False)
    words = lm.words(HARD, boundary=boundary)
    sums = words.group_by("text", maintain_order=True).agg(pl.col("lp").sum())["lp"]
    assert sums.to_list() == pytest.approx(lm.score(HARD)["lp"].to_list(), abs=1e-4)


def test_a_repeated_word_is_told_apart_by_where_it_stands(tiny_model: Path) -> None:
    words = fe.model(str(tiny_model), cache=False).words("The cat saw the cat.")
    assert words["word"].to_list() == ["The", "cat", "saw", "the", "cat."]
    assert [
        ("The cat saw the cat."[start:end]) for start, end in words.select("start", "end").iter_rows()
    ] == [*words["word"]]
    assert words["n_tokens"].sum() == len(
        fe.model(str(tiny_model)).tokens("The cat saw the cat.")["tokens"][0]
    )


def test_correction_changes_words_but_not_behind_the_last(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    corrected, plain = (
        lm.words("The cats annoy", boundary=way)["lp"].to_list() for way in ("corrected", "plain")
    )
    assert corrected[0] < plain[0]
    assert corrected[2] > plain[2]


def test_words_behind_a_context_sum_to_the_conditional_score(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    words = lm.words("The cats annoy", context="No dog.")
    assert words["lp"].sum() == pytest.approx(
        lm.score("The cats annoy", context="No dog.")["lp"][0], abs=1e-4
    )


def test_regions_that_overlap_are_refused(tiny_model: Path) -> None:
    with pytest.raises(BadInput, match="region 1 to 5"):
        fe.model(str(tiny_model), cache=False).words("The cats", regions=[[(0, 3), (1, 5)]])


def test_an_unknown_boundary_is_refused(tiny_model: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'corrected'"):
        fe.model(str(tiny_model), cache=False).words("The cats", boundary="corected")
