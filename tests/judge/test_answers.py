"""Answers to prompts as scores: Yes against No, and options named in either order."""

import polars as pl
import pytest

from felicity.core.schemas import SCORES
from felicity.judge import COUNTER, SWAPPED, combine_answers, keep_conditions, name_variant


def combine(values: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Scores of the conditions of one item, from the log-probabilities of its requests."""
    requests = pl.DataFrame(
        {"request": [f"1/{name}" for name in values], "item": "1", "condition": list(values)}
    )
    scores = pl.DataFrame(
        {"request": requests["request"], "measure": "lp", "value": list(values.values()), "error": 0.25},
        schema=SCORES,
    )
    combined = combine_answers(requests, scores)
    assert combined["request"].to_list() == keep_conditions(requests)["request"].to_list()
    return {row["request"]: (row["value"], row["error"]) for row in combined.iter_rows(named=True)}


def test_the_answer_against_a_sentence_is_subtracted() -> None:
    found = combine(
        {"good": -1.0, name_variant("good", COUNTER): -3.0, "bad": -2.0, name_variant("bad", COUNTER): -0.5}
    )
    assert found == {"1/good": (2.0, 0.5), "1/bad": (-1.5, 0.5)}


def test_both_orders_of_a_question_are_averaged() -> None:
    found = combine(
        {"good": -1.0, name_variant("good", SWAPPED): -2.0, "bad": -0.5, name_variant("bad", SWAPPED): -4.0}
    )
    assert found["1/good"][0] == pytest.approx(-1.5)
    assert found["1/bad"][0] == pytest.approx(-2.25)
