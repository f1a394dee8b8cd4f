"""Lower case keeps the number of characters, so that offsets into a text stay right."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import felicity as fe
from felicity.core.casing import apply_casing


@given(text=st.text(max_size=40), casing=st.sampled_from(["keep", "lower", "lower:tr"]))
def test_casing_keeps_the_number_of_characters(text: str, casing: str) -> None:
    assert len(apply_casing(text, casing)) == len(text)


@pytest.mark.parametrize(
    ("text", "casing", "expected"),
    [
        ("IŞIK İLE", "lower:tr", "ışık ile"),
        ("IŞIK İLE", "lower", "işik ile"),
        # The final sigma of SpecialCasing.txt.
        ("Ο ΟΔΥΣΣΕΥΣ.", "lower", "ο οδυσσευς."),
        ("שלום", "lower", "שלום"),
    ],
)
def test_letters_are_lowered_as_unicode_says(text: str, casing: str, expected: str) -> None:
    assert apply_casing(text, casing) == expected


def test_offsets_of_a_lowered_text_are_those_of_the_text(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), policy=fe.Policy(casing="lower"))
    text = "İzmir and İzmit."
    row = lm.tokens([text]).row(0, named=True)
    assert max(row["end"]) == len(text)
    words = lm.words([text])
    assert words["word"].to_list() == ["İzmir", "and", "İzmit."]
    assert words["lp"].sum() == pytest.approx(lm.score([text])["lp"][0], abs=1e-4)
