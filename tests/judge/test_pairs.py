import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.judge.pairs import judge_pairs


def tables(values: dict[str, tuple[float | None, float | None]]) -> tuple[pl.DataFrame, ...]:
    """Items, requests and scores of pairs given as item: (good, bad)."""
    rows = [(item, c, v) for item, pair in values.items() for c, v in zip(("good", "bad"), pair, strict=True)]
    items = pl.DataFrame(
        {
            "item": [r[0] for r in rows],
            "suite": "s",
            "phenomenon": "p",
            "condition": [r[1] for r in rows],
            "text": "t",
        }
    )
    requests = items.select("item", "condition", pl.format("{}/{}", "item", "condition").alias("request"))
    scores = pl.DataFrame(
        {
            "request": [f"{r[0]}/{r[1]}" for r in rows if r[2] is not None],
            "measure": "lp",
            "value": [r[2] for r in rows if r[2] is not None],
            "error": 1e-4,
        }
    )
    return items, requests, scores


def test_pass_fail_and_tie() -> None:
    judged = judge_pairs(*tables({"a": (-1.0, -2.0), "b": (-2.0, -1.0), "c": (-1.0, -1.0)}))
    assert judged["passed"].to_list() == [1.0, 0.0, 0.5]
    assert judged["margin"].to_list() == [1.0, -1.0, 0.0]


def test_a_margin_within_noise_is_not_stable() -> None:
    judged = judge_pairs(*tables({"near": (-1.0, -1.00015), "far": (-1.0, -1.00025)}))
    assert judged["passed"].to_list() == [1.0, 1.0]
    assert judged["stable"].to_list() == [False, True]


def test_a_pair_without_both_scores_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'b' lacks a score"):
        judge_pairs(*tables({"a": (-1.0, -2.0), "b": (-1.0, None)}))


def test_a_score_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'a' has a score that is not a number"):
        judge_pairs(*tables({"a": (float("nan"), -2.0)}))
