"""Cloze: whether the target is among a model's likeliest words, and whether a change of frame is felt.

Works on predictions from anywhere: an engine that fills frames, or a file that someone else published.
"""

from collections.abc import Sequence

import polars as pl

from felicity.core.schemas import JUDGEMENTS

MEASURE = "cloze"
TOP = (1, 5, 10, 20)
MAIN = "top5"


def judge_cloze(
    frames: pl.DataFrame,
    *,
    targets: Sequence[str],
    change: Sequence[str] = (),
    tops: Sequence[int] = TOP,
) -> pl.DataFrame:
    """One judgement per frame and k (`top1`, `top5`, ...), and per item one of `sensitivity`.

    `frames` has item, suite, phenomenon, condition, target and the list `predictions`, likeliest first.
    Top-k is judged of the conditions in `targets`. Sensitivity is whether the likeliest word differs
    between the two conditions in `change`. The margin of top-k is k less the target's rank, plus one
    half; it is not a number where the target is not among the predictions at all. Matching is exact.
    """
    labels = ("item", "suite", "phenomenon")
    judged: list[dict[str, object]] = []
    firsts: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rank_targets(frames).iter_rows(named=True):
        of = tuple(row[name] for name in labels)
        if row["condition"] in change:
            words = row["predictions"]
            firsts.setdefault(of, {})[row["condition"]] = words[0] if words else ""
        if row["condition"] in targets:
            rank = row["rank"]
            margins = [float("nan") if rank is None else k + 0.5 - rank for k in tops]
            judged += [
                _row(of, f"top{k}", margin > 0, margin) for k, margin in zip(tops, margins, strict=True)
            ]
    for of, seen in firsts.items():
        if len(seen) == 2:
            first, second = seen.values()
            judged.append(_row(of, "sensitivity", first != second, float("nan")))
    return pl.DataFrame(judged, schema=JUDGEMENTS)


def _row(of: tuple[str, ...], rule: str, passed: bool, margin: float) -> dict[str, object]:
    item, suite, phenomenon = of
    return {
        "item": item,
        "suite": suite,
        "phenomenon": phenomenon,
        "measure": MEASURE,
        "rule": rule,
        "passed": float(passed),
        "margin": margin,
        "stable": True,
    }


def rank_targets(frames: pl.DataFrame) -> pl.DataFrame:
    """The rank of each frame's target among its predictions, null where it is not among them."""
    ranks = [
        words.index(target) + 1 if target in words else None
        for target, words in zip(frames["target"].to_list(), frames["predictions"].to_list(), strict=True)
    ]
    return frames.with_columns(pl.Series("rank", ranks, dtype=pl.UInt32))
