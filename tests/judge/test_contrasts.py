import polars as pl
import pytest

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput
from felicity.judge.contrasts import judge_contrasts


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
    judged = judge_contrasts(*tables({"a": (-1.0, -2.0), "b": (-2.0, -1.0), "c": (-1.0, -1.0)}))
    assert judged["passed"].to_list() == [1.0, 0.0, 0.5]
    assert judged["margin"].to_list() == [1.0, -1.0, 0.0]


def test_a_margin_within_noise_is_not_stable() -> None:
    judged = judge_contrasts(*tables({"near": (-1.0, -1.00015), "far": (-1.0, -1.00025)}))
    assert judged["passed"].to_list() == [1.0, 1.0]
    assert judged["stable"].to_list() == [False, True]


def test_a_pair_without_both_scores_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'b' lacks a score"):
        judge_contrasts(*tables({"a": (-1.0, -2.0), "b": (-1.0, None)}))


def test_a_score_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'a' has a score that is not a number"):
        judge_contrasts(*tables({"a": (float("nan"), -2.0)}))


def choice(**values: float) -> tuple[pl.DataFrame, ...]:
    """Items, requests and scores of one item with these conditions."""
    names = list(values)
    items = pl.DataFrame({"item": "i", "suite": "s", "phenomenon": "p", "condition": names, "text": "t"})
    requests = items.select("item", "condition", pl.format("i/{}", "condition").alias("request"))
    scores = pl.DataFrame(
        {
            "request": [f"i/{name}" for name in names],
            "measure": "lp",
            "value": list(values.values()),
            "error": [0.1, *[0.2] * (len(names) - 1)],
        }
    )
    return items, requests, scores


THREE = Contrast(name="choice", better="a", worse=("b", "c"))


@pytest.mark.parametrize(
    ("values", "passed", "margin"),
    [
        ({"a": -1.0, "b": -2.0, "c": -3.0}, 1.0, 1.0),
        ({"a": -2.0, "b": -3.0, "c": -1.0}, 0.0, -1.0),
        ({"a": -1.0, "b": -1.0, "c": -3.0}, 1 / 2, 0.0),
        ({"a": -1.0, "b": -1.0, "c": -1.0}, 1 / 3, 0.0),
    ],
)
def test_a_choice_of_three_is_won_over_the_best_of_the_others(
    values: dict[str, float], passed: float, margin: float
) -> None:
    row = judge_contrasts(*choice(**values), (THREE,)).row(0, named=True)
    assert (row["passed"], row["margin"], row["rule"]) == (passed, margin, "choice")


def test_an_item_without_one_of_the_conditions_is_not_judged_by_that_contrast() -> None:
    two = Contrast(name="two", better="a", worse=("b",))
    judged = judge_contrasts(*choice(a=-1.0, b=-2.0), (THREE, two))
    assert judged["rule"].to_list() == ["two"]


def test_a_contrast_of_one_phenomenon_leaves_the_others_alone() -> None:
    elsewhere = Contrast(name="q", better="a", worse=("b",), phenomenon="q")
    assert judge_contrasts(*choice(a=-1.0, b=-2.0), (elsewhere,)).is_empty()


def test_noise_of_the_two_that_decide_is_what_counts() -> None:
    near = judge_contrasts(*choice(a=-1.0, b=-1.25, c=-9.0), (THREE,))
    far = judge_contrasts(*choice(a=-1.0, b=-1.35, c=-9.0), (THREE,))
    assert (near["stable"][0], far["stable"][0]) == (False, True)
    assert near["error"].to_list() == pytest.approx([0.1 + 0.2])


def test_a_worse_condition_that_noise_may_make_the_best_counts_too() -> None:
    items, requests, scores = choice(a=-1.0, b=-2.0, c=-2.1)
    uncertain = scores.with_columns(error=pl.Series([0.1, 0.1, 2.0]))
    judged = judge_contrasts(items, requests, uncertain, (THREE,))
    assert judged["error"].to_list() == pytest.approx([2.1])
    assert judged["stable"].to_list() == [False]
