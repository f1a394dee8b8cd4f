"""Cloze judgements: whether the target is among the most probable words, and sensitivity to the frame.

The predictions may come from an engine that fills frames or from a published file.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from felicity.core.schemas import JUDGEMENTS

CLOZE = "cloze"
MAIN = "top5"
# The range of ranks that each rule covers: from, and up to but excluding.
Windows = Mapping[str, tuple[int, int]]
TOP: Windows = {"top1": (0, 1), "top5": (0, 5), "top10": (0, 10), "top20": (0, 20)}


def judge_cloze(
    frames: pl.DataFrame,
    *,
    targets: Sequence[str],
    change: Sequence[str] = (),
    windows: Windows = TOP,
    first: int = 0,
) -> pl.DataFrame:
    """One judgement per frame and window (`top1`, `top5`, ...), and one of `sensitivity` per item.

    `frames` has item, suite, phenomenon, condition, target and the list `predictions`, most probable first.
    Top-k applies to the conditions in `targets`. Sensitivity is whether the most probable word, at index
    `first`, differs between the two conditions in `change`. The margin of top-k is k minus the target's
    rank plus one half; NaN if the target is not found. Matching is exact.
    """
    labels = ("item", "suite", "phenomenon")
    judged: list[dict[str, object]] = []
    firsts: dict[tuple[str, ...], dict[str, str]] = {}
    for row in frames.iter_rows(named=True):
        of = tuple(row[name] for name in labels)
        words = row["predictions"]
        if row["condition"] in change:
            firsts.setdefault(of, {})[row["condition"]] = words[first] if len(words) > first else ""
        if row["condition"] in targets:
            for rule, (start, stop) in windows.items():
                hit = row["target"] in words[start:stop]
                margin = stop - words.index(row["target"], start) - 0.5 if hit else float("nan")
                judged.append(_row(of, rule, hit, margin))
    for of, seen in firsts.items():
        if len(seen) == 2:
            one, other = seen.values()
            judged.append(_row(of, "sensitivity", one != other, float("nan")))
    return pl.DataFrame(judged, schema=JUDGEMENTS)


def _row(of: tuple[str, ...], rule: str, passed: bool, margin: float) -> dict[str, object]:
    item, suite, phenomenon = of
    return {
        "item": item,
        "suite": suite,
        "phenomenon": phenomenon,
        "measure": CLOZE,
        "rule": rule,
        "passed": float(passed),
        "margin": margin,
        "stable": True,
    }
