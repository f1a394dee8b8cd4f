"""The built-in running text for unrelated contexts."""

import string
from importlib.resources import files
from pathlib import Path

import pytest

from felicity.design.contexts.sentence_pools import read_text_file

PROSE = Path(str(files("felicity.design.contexts").joinpath("prose.txt")))


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return read_text_file(PROSE)


def test_the_text_is_long_enough_for_contexts_of_a_thousand_tokens_many_times_over() -> None:
    assert len(PROSE.read_text(encoding="ascii").split()) >= 8000


def test_no_sentence_is_repeated(sentences: list[str]) -> None:
    plain = [" ".join(sentence.lower().split()) for sentence in sentences]
    assert len(set(plain)) == len(plain)


def test_only_ascii_letters_digits_and_ordinary_punctuation_are_used() -> None:
    allowed = set(string.ascii_letters + string.digits + " \n.,;:'\"-()?!%")
    assert not set(PROSE.read_text(encoding="ascii")) - allowed


def test_splitting_into_sentences_loses_no_word_and_leaves_none_unfinished(sentences: list[str]) -> None:
    assert " ".join(sentences).split() == PROSE.read_text(encoding="ascii").split()
    assert all(
        sentence.lstrip('"')[0].isupper() and sentence.rstrip('"')[-1] in ".?!," for sentence in sentences
    )


def test_paragraphs_are_separated_by_blank_lines_and_have_no_headings() -> None:
    paragraphs = PROSE.read_text(encoding="ascii").strip().split("\n\n")
    assert len(paragraphs) >= 40
    assert all("\n" not in paragraph and len(paragraph.split()) >= 80 for paragraph in paragraphs)


def test_questions_contractions_and_quotations_occur(sentences: list[str]) -> None:
    text = " ".join(sentences)
    assert sum(sentence.endswith("?") for sentence in sentences) >= 7
    assert text.count("n't") >= 20
    assert text.count('"') >= 12


def test_spelling_is_american_as_in_the_stimuli() -> None:
    words = set(PROSE.read_text(encoding="ascii").lower().replace(".", " ").replace(",", " ").split())
    assert words.isdisjoint(
        {"colour", "grey", "metre", "metres", "neighbour", "centre", "fibre", "travellers"}
    )
