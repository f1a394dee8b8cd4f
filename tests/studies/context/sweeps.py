"""Judgements of made-up context studies, small and without chance."""

from collections.abc import Sequence

import polars as pl

from felicity.core.sweep import KINDS
from felicity.studies.context.sweep_tables import STUDY_JUDGEMENTS

LENGTHS = (100, 300, 900)


def judge(
    item: str, passed: float, kind: str = "none", length: int = 0, **other: object
) -> dict[str, object]:
    """One judgement; the suite is the part of the item's name before the slash."""
    suite = item.partition("/")[0]
    draw = other.get("draw", 0)
    return {
        "item": item,
        "suite": suite,
        "phenomenon": f"phenomenon of {suite}",
        "measure": "lp",
        "rule": "pair",
        "passed": passed,
        "margin": passed - 0.5,
        "stable": True,
        "context": None if kind == "none" else f"{item} {kind} {length} {draw}",
        "kind": kind,
        "source": None,
        "perturbation": "none",
        "draw": draw,
        "series": None if kind == "none" else f"{item}/{kind}/{draw}",
        "length": length,
        "n_tokens": length,
        "ppl_margin": None,
        "model": "m",
    } | other


def table(rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=STUDY_JUDGEMENTS)


def spread(*numbers: int) -> float:
    """A number between 0 and 1 that looks like chance and is the same everywhere."""
    state = 17
    for number in numbers:
        state = (state * 7919 + number * 104729 + 12345) % 1000003
    return (state * 48271 % 1000003) / 1000003


def sweep(*, suites: int = 8, items: int = 12, groups: int = 0, tie_every: int = 0) -> pl.DataFrame:
    """Suites two to a phenomenon, all kinds, three lengths; matched contexts work more with length.

    groups: how many contexts the items of a suite share; 0 for contexts of their own.
    """
    rows = []
    for s in range(suites):
        for i in range(items):
            shared = {"phenomenon": f"p{s // 2}", "model": "m"}
            bare = 0.6 + 0.3 * spread(s, 1)
            rows.append(judge(f"s{s}/{i}", float(spread(s, i) < bare), **shared))
            for k, (kind, known) in enumerate(KINDS.items()):
                for step, length in enumerate(LENGTHS):
                    push = 0.07 * (step + 1) if known.matched else 0.02
                    rate = bare + (0 if known.acceptable is None else push if known.acceptable else -2 * push)
                    series = f"s{s}/{i % groups if groups else i}/{kind}/0"
                    passed = float(spread(s, i, k + 1, length) < rate)
                    if tie_every and len(rows) % tie_every == 0:
                        passed = 0.5
                    rows.append(judge(f"s{s}/{i}", passed, kind, length, series=series, **shared))
    return table(rows)
