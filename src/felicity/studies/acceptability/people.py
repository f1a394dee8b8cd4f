"""What context does to people's ratings: the human side of the study, from any ratings.

The figures of Lau et al. (2020, section 2): correlations between settings, Wilcoxon's test of one context
against another, the regression of in-context ratings on those without, and how far good and bad sentences
move.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import FelicityError
from felicity.core.schemas import Schema
from felicity.stats import (
    bootstrap_mean,
    compare_lines,
    correlate,
    find_ceilings,
    fit_clmm,
    fit_ols,
    signed_rank,
)
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import RatedSentences

TRIALS = 1_000
# Shares of the rating scale from which a sentence counts as good, and up to which as bad: 3.5 and 1.5 of 1
# to 4.
GOOD, BAD = 5 / 6, 1 / 6
BINS = 12

PAIRS: Schema = {
    "first": pl.String(),
    "second": pl.String(),
    "n": pl.Int64(),
    "r": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "spearman": pl.Float64(),
    "kendall": pl.Float64(),
    "difference": pl.Float64(),
    "w": pl.Float64(),
    "p_greater": pl.Float64(),
    "p_two_sided": pl.Float64(),
    "effect": pl.Float64(),
}
LINES: Schema = {
    "setting": pl.String(),
    "intercept": pl.Float64(),
    "slope": pl.Float64(),
    "slope_low": pl.Float64(),
    "slope_high": pl.Float64(),
    "sd_ratio": pl.Float64(),
}
LINE_TESTS: Schema = {
    "first": pl.String(),
    "second": pl.String(),
    "term": pl.String(),
    "estimate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "statistic": pl.Float64(),
    "df": pl.Float64(),
    "p": pl.Float64(),
}
SHIFTS: Schema = {
    "setting": pl.String(),
    "sentences": pl.String(),
    "bound": pl.Float64(),
    "n": pl.Int64(),
    "shift": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
CEILINGS: Schema = {
    "setting": pl.String(),
    "bound": pl.String(),
    "r": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "items": pl.Int64(),
    "trials": pl.Int64(),
}
ORDINAL: Schema = {
    "formula": pl.String(),
    "term": pl.String(),
    "estimate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "n": pl.Int64(),
}


def correlate_settings(ratings: RatedSentences, *, seed: int = 0) -> pl.DataFrame:
    """Rows of PAIRS: every two settings, their correlation and Wilcoxon's test of their difference.

    p_greater is that of the one-sided test that the first setting is rated higher.
    """
    rows = []
    for first, second in combinations(ratings.settings, 2):
        x, y = ratings.mean(first), ratings.mean(second)
        found = correlate(x, y, interval="bootstrap", seed=seed).row(0, named=True)
        row: dict[str, Any] = {"first": first, "second": second} | {
            name: found[name] for name in ("n", "r", "low", "high")
        }
        for method in ("spearman", "kendall"):
            row[method] = correlate(x, y, method=method).row(0, named=True)["r"]
        row["difference"] = float((x - y).mean())
        if (x != y).any():
            tested = signed_rank(x, y, alternative="greater").row(0, named=True)
            row |= {"w": tested["w"], "p_greater": tested["p"], "effect": tested["effect"]}
            row["p_two_sided"] = signed_rank(x, y).row(0, named=True)["p"]
        rows.append(row)
    return pl.DataFrame(rows, schema=PAIRS)


def fit_lines(ratings: RatedSentences) -> pl.DataFrame:
    """Rows of LINES: the in-context ratings regressed on those without.

    sd_ratio compares the spread of the two directly: measurement error alone makes a slope smaller than 1,
    but leaves the ratio of standard deviations near 1.
    """
    if NONE not in ratings.settings:
        return pl.DataFrame(schema=LINES)
    x = ratings.mean(NONE)
    rows = [describe_line(setting, x, ratings.mean(setting)) for setting in ratings.in_context]
    return pl.DataFrame(rows, schema=LINES)


def describe_line(setting: str, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """One row of LINES: y regressed on x."""
    fitted = fit_ols("y ~ x", pl.DataFrame({"x": x, "y": y})).fixed
    slope = fitted.filter(term="x").row(0, named=True)
    intercept = fitted.filter(term="(Intercept)")["estimate"].item()
    ratio = float(np.std(y) / np.std(x))
    return {
        "setting": setting,
        "intercept": intercept,
        "slope": slope["estimate"],
        "slope_low": slope["low"],
        "slope_high": slope["high"],
        "sd_ratio": ratio,
    }


def compare_contexts(ratings: RatedSentences) -> pl.DataFrame:
    """Rows of LINE_TESTS: do the lines of two contexts differ in offset (ctx) or slope (x:ctx)?

    y ~ x + ctx + x:ctx over both contexts, x without a context, ctx being 1 for the first.
    """
    rows = []
    for first, second in combinations(ratings.in_context, 2) if NONE in ratings.settings else ():
        fitted = compare_lines(ratings.mean(NONE), ratings.mean(first), ratings.mean(second)).fixed
        rows += [
            {"first": first, "second": second} | {name: row[name] for name in list(LINE_TESTS)[2:]}
            for row in fitted.iter_rows(named=True)
        ]
    return pl.DataFrame(rows, schema=LINE_TESTS)


def find_ends(ratings: RatedSentences) -> dict[str, tuple[float, np.ndarray]]:
    """The bound and the choice of good and of bad sentences, by their ratings without a context."""
    if NONE not in ratings.settings:
        return {}
    low, high = ratings.scale
    means = ratings.mean(NONE)
    good, bad = low + GOOD * (high - low), low + BAD * (high - low)
    return {"good": (good, means >= good), "bad": (bad, means <= bad)}


def measure_shifts(ratings: RatedSentences, *, seed: int = 0) -> pl.DataFrame:
    """Rows of SHIFTS: how far good and bad sentences move in each context, with bootstrap intervals."""
    rows = []
    for setting in ratings.in_context:
        for sentences, (bound, chosen) in find_ends(ratings).items():
            moved = (ratings.mean(setting) - ratings.mean(NONE))[chosen]
            row: dict[str, Any] = {
                "setting": setting,
                "sentences": sentences,
                "bound": bound,
                "n": len(moved),
            }
            if len(moved):
                row["shift"] = float(moved.mean())
            if len(moved) > 1:
                found = bootstrap_mean(moved, seed=seed)
                row |= {"low": found.low, "high": found.high}
            rows.append(row)
    return pl.DataFrame(rows, schema=SHIFTS)


def bound_correlations(
    ratings: RatedSentences, *, trials: int = TRIALS, seed: int = 0
) -> tuple[pl.DataFrame, list[str]]:
    """Rows of CEILINGS: UB1 (one rating against the rest) and UB2 (random halves), and what has none.

    low and high hold 95% of the trials.
    """
    rows, notes = [], []
    for setting in ratings.settings:
        single = ratings.single(setting)
        if single is None:
            notes.append("Only mean ratings are known, so there are no upper bounds UB1 and UB2.")
            break
        if min(map(len, single)) < 2:
            notes.append(
                f"A sentence has a single rating in the setting '{setting}', so it has no upper bounds."
            )
            continue
        found, missing = find_ceilings(single, trials=trials, seed=seed)
        notes += [f"In the setting '{setting}', {one}" for one in missing]
        names = [name for name in CEILINGS if name != "setting"]
        rows += [{"setting": setting} | row for row in found.select(names).to_dicts()] if len(found) else []
    return pl.DataFrame(rows, schema=CEILINGS), notes


def count_ratings(ratings: RatedSentences) -> pl.DataFrame:
    """The distribution of mean ratings: setting, from, to, n, share; equal bins over the scale."""
    low, high = ratings.scale
    edges = np.linspace(low, high, BINS + 1)
    rows = []
    for setting in ratings.settings:
        counted, _ = np.histogram(ratings.mean(setting), bins=edges)
        rows += [
            {
                "setting": setting,
                "from": edges[k],
                "to": edges[k + 1],
                "n": int(n),
                "share": n / counted.sum(),
            }
            for k, n in enumerate(counted)
        ]
    return pl.DataFrame(rows)


def fit_ordinal(
    ratings: RatedSentences, scores: Mapping[str, pl.DataFrame] | None = None
) -> tuple[pl.DataFrame, list[str]]:
    """Rows of ORDINAL: cumulative mixed models with random intercepts of raters and sentences, if known.

    rating ~ setting, and for each of `scores` (columns item, setting, value) rating ~ score, the score in
    standard deviations. Answers are used as they were given: a rater's own level is a random effect. If items
    have several sentences, items and stimuli both have random intercepts.
    """
    if ratings.answers is None or not ratings.has_raters:
        return pl.DataFrame(schema=ORDINAL), ["Raters are not known, so no ordinal mixed models were fitted."]
    table = ratings.answers.select(
        "item", "setting", "rater", pl.col("answer").cast(pl.Int64).alias("rating")
    )
    if (table["rating"] != ratings.answers["answer"]).any():
        return pl.DataFrame(schema=ORDINAL), [
            "Ratings are not whole numbers, so no ordinal models were fitted."
        ]
    random = "(1 | rater) + (1 | item)"
    if ratings.has_stimuli:
        random += " + (1 | stimulus)"
    plans: list[tuple[str, str, pl.DataFrame]] = []
    if len(ratings.settings) > 1:
        plans.append(("", f"rating ~ setting + {random}", table))
    for name, values in (scores or {}).items():
        spread = (pl.col("value") - pl.col("value").mean()) / pl.col("value").std()
        joined = table.join(values.with_columns(spread.alias("score")), on=["item", "setting"])
        plans.append((name, f"rating ~ score + {random}", joined))
    rows, notes = [], []
    for name, formula, data in plans:
        written = formula.replace("score", f"score of {name}") if name else formula
        try:
            fitted = fit_clmm(formula, ratings.add_conditions(data))
        except FelicityError as error:
            notes.append(f"{written} was not fitted: {error}")
            continue
        notes += [f"{written}: {note}" for note in fitted.notes]
        rows += [
            {"formula": written, "n": fitted.n}
            | {one: term[one] for one in ("term", "estimate", "low", "high", "p")}
            for term in fitted.fixed.iter_rows(named=True)
        ]
    return pl.DataFrame(rows, schema=ORDINAL), notes
