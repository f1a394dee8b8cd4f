import math

import polars as pl

from felicity.judge.cloze import judge_cloze

FRAMES = pl.DataFrame(
    {
        "item": ["1", "1", "2", "2"],
        "suite": "s",
        "phenomenon": "p",
        "condition": ["aff", "neg", "aff", "neg"],
        "target": ["fish", "tool", "bird", "tree"],
        "predictions": [["trout", "fish"], ["trout", "fish"], ["a", "b", "c", "d", "e", "bird"], ["x"]],
    }
)


def passed(rule: str, targets: list[str]) -> list[float]:
    return judge_cloze(FRAMES, targets=targets, change=["aff", "neg"]).filter(rule=rule)["passed"].to_list()


def test_top_k_looks_for_the_target_among_the_first_k() -> None:
    assert passed("top1", ["aff"]) == [0.0, 0.0]
    assert passed("top5", ["aff"]) == [1.0, 0.0]
    assert passed("top10", ["aff"]) == [1.0, 1.0]
    assert passed("top20", ["aff", "neg"]) == [1.0, 0.0, 1.0, 0.0]


def test_sensitivity_is_whether_the_first_word_changes() -> None:
    assert passed("sensitivity", ["aff"]) == [0.0, 1.0]


def test_matching_is_exact() -> None:
    frames = FRAMES.with_columns(pl.col("target").str.to_titlecase())
    assert judge_cloze(frames, targets=["aff"])["passed"].sum() == 0


def test_the_margin_counts_ranks_and_is_unknown_where_the_target_is() -> None:
    judged = judge_cloze(FRAMES, targets=["aff", "neg"], windows={"top5": (0, 5)})
    assert judged["margin"].to_list()[0] == 3.5  # rank 2 of 5
    assert math.isnan(judged["margin"].to_list()[1])


def test_windows_may_begin_behind_the_first_prediction() -> None:
    judged = judge_cloze(FRAMES, targets=["aff"], change=["aff", "neg"], windows={"top1": (1, 2)}, first=1)
    assert judged.filter(rule="top1")["passed"].to_list() == [1.0, 0.0]
    assert judged.filter(rule="sensitivity")["passed"].to_list() == [0.0, 1.0]
