"""Running text into sentences."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.design.contexts.sentence_pools import read_text_file, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rains. It pours.", ["It rains.", "It pours."]),
        ("Who left? Nobody! Fine.", ["Who left?", "Nobody!", "Fine."]),
        (
            "Mr. Smith met Dr. Jones in St. Louis. They ate.",
            ["Mr. Smith met Dr. Jones in St. Louis.", "They ate."],
        ),
        ("J. R. R. Tolkien wrote. We read.", ["J. R. R. Tolkien wrote.", "We read."]),
        ("She lives in the U.S. The house is old.", ["She lives in the U.S.", "The house is old."]),
        ("The U.S. Army came. It left.", ["The U.S. Army came.", "It left."]),
        ("She said no. Then she left.", ["She said no.", "Then she left."]),
        ("It is on p. 7, no. 3. Look there.", ["It is on p. 7, no. 3.", "Look there."]),
        ("He waited ... and left. We stayed.", ["He waited ... and left.", "We stayed."]),
        ("It cost 3.5 pounds. We paid.", ["It cost 3.5 pounds.", "We paid."]),
        ('"Go!" she said. He went.', ['"Go!" she said.', "He went."]),
        ('He said, "Stay." Then he left.', ['He said, "Stay."', "Then he left."]),
        ("(He left.) We stayed.", ["(He left.)", "We stayed."]),
    ],
)
def test_a_mark_ends_a_sentence_unless_an_abbreviation_or_what_follows_says_otherwise(
    text: str, sentences: list[str]
) -> None:
    assert split_sentences(text) == sentences


def test_wikitext_keeps_its_spacing_and_loses_its_headings() -> None:
    text = (
        " \n = Robert Boulter = \n \n Boulter acts . "
        'He said , " I act . " He had a guest @-@ starring role . \n'
        " = = Career = = \n \n CD single \n In 2004 he left . \n"
    )
    assert split_sentences(text) == [
        "Boulter acts .",
        'He said , " I act . "',
        "He had a guest @-@ starring role .",
        "In 2004 he left .",
    ]


def test_a_detached_quote_opens_where_none_is_open() -> None:
    assert split_sentences('He acts . " Kiss You " is a song .') == ["He acts .", '" Kiss You " is a song .']


def test_lines_cut_at_a_width_are_put_together_within_paragraphs() -> None:
    text = "The train to\nParis was late, and\nwe waited. It\ncame at last.\n\nNobody\nspoke."
    assert split_sentences(text) == [
        "The train to Paris was late, and we waited.",
        "It came at last.",
        "Nobody spoke.",
    ]


def test_a_file_of_sentences_without_marks_keeps_its_lines() -> None:
    assert split_sentences("The cat purrs\nThe dog barks\n--\n") == ["The cat purrs", "The dog barks"]


def test_a_gzipped_file_reads_like_the_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "text.txt", tmp_path / "text.gz"
    plain.write_text("It rains. It pours.", encoding="utf-8")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_text_file(plain) == read_text_file(packed) == ["It rains.", "It pours."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text.txt has no sentence"),
        (b" = Heading = \n\n", "text.txt has no sentence"),
        (b"It rains.\n\xff\xfa", "text.txt, line 2: not UTF-8"),
        (gzip.compress(b"It rains. " * 99, mtime=0)[:-9], "text.txt is not a complete gzip file"),
    ],
)
def test_a_file_that_holds_no_text_is_refused_in_a_sentence(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_text_file(path)


def test_a_missing_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Cannot read .*nowhere.txt: no such file"):
        read_text_file(tmp_path / "nowhere.txt")


def test_the_published_wikitext_falls_into_whole_sentences(published: Callable[[str], Path]) -> None:
    sentences = read_text_file(published("wikitext103/wiki.test.raw.gz"))
    # zgrep -oE ' [.!?]( |$)' finds 8,958 marks that stand apart; 1% covers quotations and list entries.
    assert len(sentences) == pytest.approx(8_958, rel=0.01)
    assert not [
        sentence for sentence in sentences if sentence.startswith("=") or sentence != sentence.strip()
    ]
    lower = [sentence for sentence in sentences if sentence[0].islower()]
    assert len(lower) < len(sentences) / 1000
    # Sentence boundaries left inside: a lone full stop between a lower-case and a capitalized word.
    assert not [sentence for sentence in sentences if " . The " in sentence]
