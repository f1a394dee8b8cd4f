"""Models compared on a small set and on its extension: what the small set could show, and what holds."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.wording import NO_DIFFERENCE, is_detected
from felicity.stats import (
    fit_glmm,
    mcnemar_p,
    pair_answers,
    permute_pairs,
    power_of_pairs,
    smallest_difference,
    wilson_interval,
)
from felicity.stats.mixed import FittedModel
from felicity.studies.cloze.answers import MAIN, Answers, Sets, judge_answers

# Scale of the prior on the SDs of random effects, in log-odds, where a fit without it is degenerate.
PENALTY = 2.0


def compare_sizes(
    answers: Answers, sets: Sets, extensions: Sequence[tuple[str, str]], *, figures: Sequence[str] = (MAIN,)
) -> pl.DataFrame:
    """Two models on a small set and on its extension: does the conclusion hold?

    For every pair of models, figure and size: accuracies, their difference, McNemar's exact p, the
    permutation test's p (pairs of frames swapped together), power if the truth were as observed, and the
    smallest difference that as many items show with 80% power at the observed disagreement.
    """
    rows = []
    for small, large in extensions:
        models = [model for dataset, model in answers if dataset == small and (large, model) in answers]
        for first, second in combinations(models, 2):
            for figure in figures:
                sizes = {
                    size: _compare(answers, sets, dataset, first, second, figure)
                    for size, dataset in (("small", small), ("large", large))
                }
                row = {"small": small, "large": large, "first": first, "second": second, "figure": figure}
                row |= {
                    f"{name}_{size}": value for size, told in sizes.items() for name, value in told.items()
                }
                rows.append(row | {"conclusion": conclude(sizes["small"], sizes["large"])})
    return pl.DataFrame(rows, infer_schema_length=None)


def _compare(
    answers: Answers, sets: Sets, dataset: str, first: str, second: str, figure: str
) -> dict[str, Any]:
    judged = [
        judge_answers(answers[dataset, one], sets[dataset]).filter(figure=figure) for one in (first, second)
    ]
    pairs = pair_answers(*judged, on="unit", cluster="item")
    only_first, only_second = pairs.discordant
    try:
        power: float | None = power_of_pairs(pairs, test="exact").power
    except BadInput:
        power = None
    share = (only_first + only_second) / pairs.n
    try:
        smallest: float | None = (
            smallest_difference(pairs.n, share, test="exact").difference if share else None
        )
    except NotPossible:
        smallest = None
    return {
        "n": pairs.n,
        "share_first": float(pairs.first.mean()),
        "share_second": float(pairs.second.mean()),
        "difference": float(pairs.differences.mean()),
        "p": mcnemar_p(only_first, only_second),
        "p_permutation": permute_pairs(pairs).p,
        "power": power,
        "smallest": smallest,
    }


def conclude(small: Mapping[str, Any], large: Mapping[str, Any]) -> str:
    """In words, at which size the difference between two models is detected, and in which direction."""
    detected = [is_detected(told["p"]) for told in (small, large)]
    opposite = small["difference"] * large["difference"] < 0
    if all(detected):
        return f"detected at both sizes, in {'opposite directions' if opposite else 'the same direction'}"
    if detected[0]:
        return "detected on the small set only"
    if detected[1]:
        return "detected on the extension only" + (", against the small set's direction" if opposite else "")
    return f"{NO_DIFFERENCE} at either size"


def compare_accuracies(accuracy: pl.DataFrame, extensions: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """How far each model's figures move from a small set to its extension, with Newcombe's 95% interval.

    Columns small, large, model, figure, share_small, share_large, change, low, high. The items differ, so
    the interval is that of two independent proportions.
    """
    rows = []
    for small, large in extensions:
        both = accuracy.filter(dataset=small).join(accuracy.filter(dataset=large), on=["model", "figure"])
        for row in both.iter_rows(named=True):
            (p1, n1), (p2, n2) = (row["share"], row["n"]), (row["share_right"], row["n_right"])
            (l1, u1), (l2, u2) = (wilson_interval(p * n, n) for p, n in ((p1, n1), (p2, n2)))
            change = p2 - p1
            low = change - sqrt((p2 - l2) ** 2 + (u1 - p1) ** 2)
            high = change + sqrt((u2 - p2) ** 2 + (p1 - l1) ** 2)
            rows.append((small, large, row["model"], row["figure"], p1, p2, change, low, high))
    names = ["small", "large", "model", "figure", "share_small", "share_large", "change", "low", "high"]
    return pl.DataFrame(rows, schema=names, orient="row")


def fit_regressions(
    answers: Answers, sets: Sets, extensions: Sequence[tuple[str, str]], *, figure: str = MAIN
) -> tuple[pl.DataFrame, list[str]]:
    """A mixed logistic regression per small set: right ~ model * size, items and frames as random effects.

    Gives one row per fixed term and random effect, and notes on what could not be fitted. Frames are left out
    if every item has one frame, since the two effects are then the same.
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for small in dict.fromkeys(small for small, _ in extensions):
        larges = [large for one, large in extensions if one == small]
        table, dropped = _drop_constant(_stack(answers, sets, [small, *larges], figure))
        notes += [
            f"{small}: {model} is always right or always wrong, so no regression has it." for model in dropped
        ]
        fit, formula, said = _fit_simplest(table)
        notes += [f"{small}: {note}" for note in said]
        if fit is None:
            continue
        for term in fit.fixed.iter_rows(named=True):
            told = {name: term[name] for name in ("estimate", "se", "statistic", "p", "low", "high")}
            rows.append({"small": small, "formula": formula, "kind": "fixed", "term": term["term"]} | told)
        for effect in fit.random.iter_rows(named=True):
            name = f"SD of {effect['group']}"
            rows.append(
                {"small": small, "formula": formula, "kind": "random", "term": name, "estimate": effect["sd"]}
            )
    return pl.DataFrame(rows, infer_schema_length=None), notes


def _stack(answers: Answers, sets: Sets, datasets: Sequence[str], figure: str) -> pl.DataFrame:
    parts = []
    for (dataset, model), table in answers.items():
        if dataset in datasets:
            judged = judge_answers(table, sets[dataset]).filter(figure=figure)
            parts.append(
                judged.select(
                    pl.col("passed").cast(pl.Int64),
                    pl.lit(model).alias("model"),
                    pl.lit(dataset).alias("set"),
                    pl.format("{}/{}", pl.lit(dataset), "item").alias("item"),
                    "frame",
                )
            )
    return pl.concat(parts)


def _drop_constant(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Without the models whose answers are all right or all wrong, whose log-odds would be infinite."""
    spread = table.group_by("model", maintain_order=True).agg(pl.col("passed").n_unique())
    constant = spread.filter(pl.col("passed") < 2)["model"].to_list()
    return table.filter(~pl.col("model").is_in(constant)), constant


def _fit_simplest(table: pl.DataFrame) -> tuple[FittedModel | None, str, list[str]]:
    """The fullest formula that can be fitted, with what was said about fuller ones."""
    several = [name for name in ("model", "set") if table.height and table[name].n_unique() > 1]
    if not several:
        return None, "", ["nothing is left to compare in a regression."]
    if table["item"].n_unique() == table.height:
        return None, "", ["there is one answer per item; items as random effects need two models that vary."]
    frames = table.select("item", "frame").n_unique()
    groups = "(1 | item)" if frames == table["item"].n_unique() else "(1 | item) + (1 | frame)"
    said: list[str] = []
    for fixed in dict.fromkeys((" * ".join(several), " + ".join(several), several[-1])):
        formula = f"passed ~ {fixed} + {groups}"
        try:
            fit = fit_glmm(formula, table)
        except FelicityError as error:
            said.append(f"{formula} was not fitted: {error}")
            continue
        if fit.degenerate:
            said += [f"{formula} without a penalty: {note}" for note in fit.notes]
            fit = fit_glmm(formula, table, penalty=PENALTY)
        return fit, formula, [*said, *fit.notes]
    return None, "", said
