"""The rules of the built-in suite `starter`, read straight from its files.

Each test gathers the lines that break one rule, so that a failure names them.
"""

import csv
import re
from collections import Counter
from importlib.resources import files
from itertools import combinations, groupby
from pathlib import Path
from typing import NamedTuple

import pytest

PHENOMENA = (
    "anaphor_agreement",
    "argument_structure",
    "binding",
    "control_raising",
    "determiner_noun_agreement",
    "ellipsis",
    "filler_gap",
    "irregular_forms",
    "island_effects",
    "npi_licensing",
    "quantifiers",
    "subject_verb_agreement",
)
SUITES_PER_PHENOMENON = 4
PAIRS_PER_SUITE = 15
FEWEST_WORDS, MOST_WORDS = 4, 18
LEAST_SHARED = 0.5
MOST_ALIKE = 0.6

# Capital first; single spaces; a comma or semicolon only before a space; straight apostrophes; . or ? last.
WELL_FORMED = re.compile(r"[A-Z][A-Za-z0-9']*(?:[,;]? [A-Za-z0-9']+)*[.?]")


class Pair(NamedTuple):
    """One line of a file."""

    phenomenon: str
    suite: str
    good: str
    bad: str


def read_rows(phenomenon: str) -> list[list[str]]:
    source = files("felicity.data") / "starter" / f"{phenomenon}.tsv"
    lines = source.read_text(encoding="utf-8").splitlines()
    return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return [Pair(name, *row) for name in PHENOMENA for row in read_rows(name)[1:]]


@pytest.fixture(scope="module")
def goods(pairs: list[Pair]) -> dict[str, list[str]]:
    return {suite: [pair.good for pair in group] for suite, group in groupby(pairs, lambda pair: pair.suite)}


def test_there_is_one_file_for_each_phenomenon_and_no_other() -> None:
    folder = files("felicity.data") / "starter"
    assert sorted(entry.name for entry in folder.iterdir()) == [f"{name}.tsv" for name in PHENOMENA]


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_each_file_has_the_header_and_three_full_cells_a_line(phenomenon: str) -> None:
    header, *rows = read_rows(phenomenon)
    assert header == ["suite", "good", "bad"]
    assert [row for row in rows if len(row) != len(header) or not all(cell.strip() for cell in row)] == []


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_each_phenomenon_has_four_suites_of_fifteen_pairs_standing_together(phenomenon: str) -> None:
    blocks = [len(list(group)) for _, group in groupby(read_rows(phenomenon)[1:], lambda row: row[0])]
    assert blocks == [PAIRS_PER_SUITE] * SUITES_PER_PHENOMENON


def test_suite_names_are_snake_case_and_belong_to_one_phenomenon(pairs: list[Pair]) -> None:
    homes = Counter(suite for _, suite in {(pair.phenomenon, pair.suite) for pair in pairs})
    assert len(homes) == len(PHENOMENA) * SUITES_PER_PHENOMENON
    assert [suite for suite, count in homes.items() if count > 1] == []
    assert [suite for suite in homes if not re.fullmatch(r"[a-z]+(?:_[a-z]+)*", suite)] == []


def test_no_sentence_occurs_twice_whether_good_or_bad(pairs: list[Pair]) -> None:
    counts = Counter(" ".join(words(text)) for pair in pairs for text in (pair.good, pair.bad))
    assert [text for text, count in counts.items() if count > 1] == []


def test_every_sentence_is_clean_in_spacing_capital_and_punctuation(pairs: list[Pair]) -> None:
    texts = [text for pair in pairs for text in (pair.good, pair.bad)]
    assert [text for text in texts if not WELL_FORMED.fullmatch(text)] == []


def test_every_sentence_has_four_to_eighteen_words(pairs: list[Pair]) -> None:
    texts = [text for pair in pairs for text in (pair.good, pair.bad)]
    assert [text for text in texts if not FEWEST_WORDS <= len(words(text)) <= MOST_WORDS] == []


def test_the_members_of_a_pair_end_in_the_same_mark(pairs: list[Pair]) -> None:
    assert [pair for pair in pairs if pair.good[-1] != pair.bad[-1]] == []


def test_the_members_of_a_pair_share_at_least_half_their_words(pairs: list[Pair]) -> None:
    def shared(pair: Pair) -> float:
        good, bad = words(pair.good), words(pair.bad)
        return (Counter(good) & Counter(bad)).total() / max(len(good), len(bad))

    assert [pair for pair in pairs if shared(pair) < LEAST_SHARED] == []


def test_no_two_good_sentences_of_a_suite_begin_with_the_same_three_words(
    goods: dict[str, list[str]],
) -> None:
    openings = Counter((suite, *words(text)[:3]) for suite, texts in goods.items() for text in texts)
    assert [opening for opening, count in openings.items() if count > 1] == []


def test_no_two_good_sentences_of_a_suite_are_one_frame_with_a_word_changed(
    goods: dict[str, list[str]],
) -> None:
    def alike(one: str, other: str) -> float:
        mine, theirs = set(words(one)), set(words(other))
        return len(mine & theirs) / len(mine | theirs)

    near = [pair for texts in goods.values() for pair in combinations(texts, 2) if alike(*pair) > MOST_ALIKE]
    assert near == []


# What nobody writes is rarer than what everybody does, however the pairs are chosen.
UNBALANCED = {"overregularized_past", "irregular_plural"}


@pytest.mark.parametrize("shortcut", ["frequency", "length"])
def test_no_shortcut_passes_or_fails_a_whole_suite(shortcut: str, pairs: list[Pair]) -> None:
    wordfreq = pytest.importorskip("wordfreq")

    def value(text: str) -> float:
        if shortcut == "length":
            return -len(text)
        return float(sum(wordfreq.zipf_frequency(word, "en") for word in words(text)) / len(words(text)))

    passed: dict[str, list[float]] = {}
    for pair in pairs:
        difference = value(pair.good) - value(pair.bad)
        passed.setdefault(pair.suite, []).append(0.5 + 0.5 * ((difference > 0) - (difference < 0)))
    shares = {suite: sum(found) / len(found) for suite, found in passed.items()}
    odd = {suite for suite, share in shares.items() if not 0.1 <= share <= 0.9}
    assert odd - UNBALANCED == set()


def test_the_page_about_the_suite_shows_a_pair_of_every_suite(pairs: list[Pair]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "starter.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", page, flags=re.MULTILINE)
    assert [suite for suite, _, _ in rows] == list(dict.fromkeys(pair.suite for pair in pairs))
    assert set(rows) <= {(pair.suite, pair.good, pair.bad) for pair in pairs}
