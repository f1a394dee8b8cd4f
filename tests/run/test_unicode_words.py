"""Words by Unicode's rules in scripts with and without spaces; every letter belongs to one word."""

from pathlib import Path

import pytest

import felicity as fe
from felicity.core.errors import BadInput
from felicity.measures import find_unicode_words
from felicity.report.examples import read_cells
from felicity.run.surprisal import measure_surprisal, take_lines

# Worked out by hand from the rules of UAX 29 (WB5 to WB13b; WB999 between ideographs).
DIVIDED = {
    "It's raining, isn't it?": ["It's", "raining", ",", "isn't", "it", "?"],
    "小明把王姨表扬了。": ["小", "明", "把", "王", "姨", "表", "扬", "了", "。"],
    "ה מלצר רוקד": ["ה", "מלצר", "רוקד"],
    "ராமா யார் யாரையோ": ["ராமா", "யார்", "யாரையோ"],
    "İstanbul'da üç": ["İstanbul'da", "üç"],
}


@pytest.mark.parametrize("text", DIVIDED)
def test_words_are_those_of_unicode(text: str) -> None:
    assert [text[start:end] for start, end in find_unicode_words(text)] == DIVIDED[text]


def test_words_that_need_a_dictionary_are_refused() -> None:
    with pytest.raises(BadInput, match="need a dictionary"):
        find_unicode_words("แมวกินปลา")


def test_surprisal_of_unicode_words_sums_to_that_of_the_text(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model))
    text = "小明走了。"
    table = measure_surprisal(lm, take_lines(text), by="unicode", unit="nats")
    assert table["word"].to_list() == ["小", "明", "走", "了", "。"]
    assert table["surprisal"].sum() == pytest.approx(-lm.score([text])["lp"][0], abs=1e-3)


def test_a_combining_mark_is_shown_with_its_letter() -> None:
    text = "ரா மா"
    cells = read_cells(
        text,
        tokens=list(text),
        start=list(range(len(text))),
        end=list(range(1, len(text) + 1)),
        logprob=[-1.0] * len(text),
    )
    assert (cells[0].text, cells[-1].text) == ("ரா", "மா")
    assert cells[0].logprob == -2.0
