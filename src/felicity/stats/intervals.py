"""Accuracy with intervals that respect suites.

The items of a suite are variations on one theme, so their answers are dependent. Within a suite the
interval is Wilson's over its items; above it, the same over suites (`felicity.stats.inference`), since other
suites of the same kind are what one would like to generalize to.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.core.schemas import ESTIMATES
from felicity.stats.frames import Vector, numbers
from felicity.stats.inference import share_interval, spread_clusters
from felicity.stats.paired_tests import Ties

# What is taken as independent, and generalized over.
Units = Literal["suites", "items"]
UNITS: tuple[Units, ...] = ("suites", "items")


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion (Clopper & Pearson 1934): never too narrow, often too wide.

    >>> tuple(round(end, 4) for end in clopper_pearson(8, 10))
    (0.4439, 0.9748)

    Raises BadInput for impossible counts.
    """
    if n < 1 or not 0 <= successes <= n:
        raise BadInput(f"{successes} successes in {n} trials is not a proportion.")
    alpha = 1.0 - level
    low = float(stats.beta.ppf(alpha / 2.0, successes, n - successes + 1)) if successes else 0.0
    high = float(stats.beta.ppf(1.0 - alpha / 2.0, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


def proportion_right(
    answers: Sequence[float] | pl.Series | Vector, *, ties: Ties = "half", level: float = 0.95
) -> pl.DataFrame:
    """One row: n, ties, the share of correct answers with its exact interval.

    ties: an answer between 0 and 1 counts as 'half', that is as it is (the interval is then that
        of the rounded number of successes), as 'wrong', or 'drop'ped.
    """
    values = numbers(answers, "answers")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise BadInput("An answer must be 1 (right), 0 (wrong) or between them (a tie).")
    if ties not in ("wrong", "half", "drop"):
        raise UnknownName("treatment of ties", str(ties), ("wrong", "half", "drop"))
    tied = (values > 0.0) & (values < 1.0)
    kept = values[~tied] if ties == "drop" else values
    if not len(kept):
        raise BadInput("Every answer is a tie, so dropping ties leaves nothing.")
    right = float(kept.sum()) if ties == "half" else float((kept == 1.0).sum())
    low, high = clopper_pearson(round(right), len(kept), level=level)
    row = {"n": len(kept), "ties": int(tied.sum()), "share": right / len(kept), "low": low, "high": high}
    return pl.DataFrame([row])


def wilson_interval(successes: float, n: int) -> tuple[float, float]:
    """Wilson's 95% score interval for a proportion (Wilson 1927); half successes are ties.

    >>> tuple(round(x, 4) for x in wilson_interval(8, 10))
    (0.4902, 0.9433)
    """
    if n == 0:
        return (float("nan"), float("nan"))
    low, high = share_interval(np.array([successes / n]), np.array([float(n)]))
    return float(low[0]), float(high[0])


def estimate_suites(
    shares: Vector, sizes: Vector, *, macro: bool = False, units: Units = "suites"
) -> dict[str, object]:
    """Accuracy of several suites together, with its 95% interval: one entry per suite.

    macro: every suite counts alike, not every item. units: generalize over suites (if there are several), or
        over the items of these suites.
    """
    count = len(shares)
    weights = np.ones(count) if macro else sizes.astype(np.float64)
    centre = float(weights @ shares / weights.sum())
    # Of independent answers: the number that would give this mean its variance.
    answers = weights.sum() ** 2 / float(weights**2 @ (1.0 / sizes))
    over_suites = count > 1 and units == "suites"
    spread = [spread_clusters(np.zeros(count, dtype=np.int64), weights * shares, weights, 1)]
    low, high = share_interval(np.array([centre]), np.array([answers]), spread if over_suites else ())
    return {
        "n": int(sizes.sum()),
        "suites": count,
        "accuracy": centre,
        "low": float(low[0]),
        "high": float(high[0]),
        "interval": f"Wilson over {'suites' if over_suites else 'items'}",
    }


def estimate_accuracy(judgements: pl.DataFrame, *, units: Units = "suites") -> pl.DataFrame:
    """Accuracy overall (over items), macro (over suites), by phenomenon and by suite: rows of ESTIMATES.

    Judgements of several languages (a column `language`) are never pooled: each language has a row of its
    own, and overall and macro are the plain means of those rows, with intervals over languages.

    Raises UnknownName for units other than suites and items.
    """
    if units not in UNITS:
        raise UnknownName("unit", str(units), UNITS)
    rows: list[dict[str, object]] = []
    for (measure,), judged in judgements.group_by("measure", maintain_order=True):
        parts = [("overall", "all", judged), ("macro", "all", judged)]
        if "language" in judged.columns and judged["language"].n_unique() > 1:
            by_language = judged.group_by("language", maintain_order=True)
            parts = [("language", str(tag), part) for (tag,), part in by_language]
            rows += _average_languages(judged, str(measure), units=units)
        for level in ("phenomenon", "suite"):
            parts += [
                (level, str(name), part) for (name,), part in judged.group_by(level, maintain_order=True)
            ]
        rows += [
            {"measure": str(measure), "level": level, "name": name}
            | _estimate(part, macro=level == "macro", units=units)
            for level, name, part in parts
        ]
    return pl.DataFrame(rows, schema=ESTIMATES)


def _average_languages(judged: pl.DataFrame, measure: str, *, units: Units) -> list[dict[str, object]]:
    """Overall and macro as plain means over languages, each of which is averaged over its items or suites."""
    rows = []
    for level in ("overall", "macro"):
        inner = pl.col("passed") if level == "overall" else pl.col("passed").mean().over("suite")
        weights = pl.lit(1.0) if level == "overall" else 1.0 / pl.len().over("suite")
        weighed = judged.with_columns(inner=inner, weight=weights)
        shares = weighed.group_by("language", maintain_order=True).agg(
            share=(pl.col("inner") * pl.col("weight")).sum() / pl.col("weight").sum(), n=pl.len()
        )
        found = estimate_suites(
            shares["share"].to_numpy(), shares["n"].to_numpy().astype(np.float64), macro=True, units=units
        )
        found |= {
            "suites": judged["suite"].n_unique(),
            "interval": str(found["interval"]).replace("suites", "languages"),
        }
        rows.append({"measure": measure, "level": level, "name": "all"} | found | _count(judged))
    return rows


def estimate_judged(
    judged: pl.DataFrame, *, macro: bool = False, units: Units = "suites"
) -> dict[str, object]:
    """`estimate_suites` of judgements: columns `suite` and `passed`."""
    suites = judged.group_by("suite", maintain_order=True).agg(pl.col("passed").mean(), pl.len())
    shares, sizes = suites["passed"].to_numpy(), suites["len"].to_numpy().astype(np.float64)
    return estimate_suites(shares, sizes, macro=macro, units=units)


def _estimate(judged: pl.DataFrame, *, macro: bool, units: Units) -> dict[str, object]:
    return estimate_judged(judged, macro=macro, units=units) | _count(judged)


def _count(judged: pl.DataFrame) -> dict[str, object]:
    return {"ties": int((judged["passed"] == 0.5).sum()), "unstable": int((~judged["stable"]).sum())}


def add_people(estimates: pl.DataFrame, judgements: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Estimates with a column `people`: how often people chose the right sentence.

    people: one row per suite. Above suites it is the plain mean over those suites that both were judged on;
    null if people judged none of them.
    """
    known = judgements.select("suite", "phenomenon", *_language(judgements)).unique().join(people, on="suite")
    levels = {"suite": "suite", "phenomenon": "phenomenon"} | dict.fromkeys(_language(judgements), "language")
    parts = [
        known.group_by(name=column)
        .agg(pl.col("people").mean())
        .select(pl.lit(level).alias("level"), "name", "people")
        for level, column in levels.items()
    ]
    whole = known["people"]
    if "language" in known.columns:
        whole = known.group_by("language").agg(pl.col("people").mean())["people"]
    rows = {"level": ["overall", "macro"], "name": ["all"] * 2, "people": [whole.mean()] * 2}
    parts.append(pl.DataFrame(rows, schema=parts[0].schema))
    return estimates.join(pl.concat(parts), on=["level", "name"], how="left", maintain_order="left")


def _language(judgements: pl.DataFrame) -> list[str]:
    return [name for name in ("language",) if name in judgements.columns]
