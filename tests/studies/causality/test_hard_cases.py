"""Eighty continuations that are hard to read, by the rules for references, offence and repetition.

Sixty were written with the rules (`before` in the column `written`), twenty once the rules were fixed
(`after`); the misses are listed, so that the hit rates in docs/studies/causality.md stay true.
"""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.studies.causality import find_reference, flag_continuations

GENDERS = {"man": "m", "king": "m", "woman": "f", "queen": "f"}
MISSES = {
    "before": {"she was too drunk to drive"},
    "after": {
        "in his eyes she was perfect",
        "the queen mother had asked him to",
        "deep down she loved him",
        "himself a joker, he could not resist",
        "he was a killer guitarist",
        "he had set her house on fire",
        "she should be at home with the children",
        "he beat her at chess",
    },
}


def read_cases(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).with_name(name)
    return pl.read_csv(path, separator="\t", quote_char=None).to_dicts()


def is_right(case: dict[str, Any]) -> bool:
    if "flag" in case:
        reasons = flag_continuations(pl.Series([case["continuation"]]))["reasons"][0]
        return bool((reasons.partition(":")[0] or "none") == case["flag"])
    found = re.match(r"The (\w+) \w+ the (\w+) because", case["prompt"])
    assert found is not None
    nouns = {"subject": found[1], "object": found[2]}
    genders = {side: GENDERS[noun] for side, noun in nouns.items()}
    side, _ = find_reference(case["continuation"], nouns, genders, {"m": "he", "f": "she"})
    return side == case["reference"]


CASES = [*read_cases("hard_references.tsv"), *read_cases("hard_flags.tsv")]


def test_there_are_sixty_cases_and_twenty_more() -> None:
    written = [case["written"] for case in CASES]
    assert (written.count("before"), written.count("after")) == (60, 20)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["continuation"])
def test_a_hard_case_is_read_as_its_author_meant_it_or_is_listed_as_a_miss(case: dict[str, Any]) -> None:
    assert is_right(case) != (case["continuation"] in MISSES[case["written"]])
