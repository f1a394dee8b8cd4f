"""What the answers say: accuracy, sensitivity, likelihood of targets, and what small sets could show."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.stats import (
    clopper_pearson,
    cohen_kappa,
    fit_glmm,
    mcnemar_p,
    pair_answers,
    permute_pairs,
    power_of_pairs,
    smallest_difference,
    wilson_interval,
)
from felicity.stats.mixed import FittedModel
from felicity.studies.cloze.plan import ClozeSet

TOP = (1, 5, 10, 20)
MAIN = "top5"
SENSITIVITY = "sensitivity"
ALPHA = 0.05
UNRANKED = 10**6
# An SD of random effects, in log-odds, beyond which a logistic regression is as good as separated.
WIDEST = 10.0
Answers = Mapping[tuple[str, str], pl.DataFrame]  # by dataset and model
Sets = Mapping[str, ClozeSet]


def judge_answers(answers: pl.DataFrame, data: ClozeSet) -> pl.DataFrame:
    """Columns unit, item, frame, figure, passed: top-k per frame with a target, sensitivity per pair.

    The target of a frame is matched exactly, case and all; a pair is sensitive when the likeliest word
    differs between its members.
    """
    wanted = answers.filter(pl.col("condition").is_in(list(data.targets)))
    unit = pl.concat_str("item", "condition", separator="#")
    parts = [
        wanted.select(
            unit.alias("unit"),
            "item",
            "frame",
            pl.lit(f"top{k}").alias("figure"),
            (pl.col("rank") <= k).fill_null(False).cast(pl.Float64).alias("passed"),
        )
        for k in TOP
    ]
    if len(data.change) == 2:
        firsts = answers.filter(pl.col("condition").is_in(list(data.change))).select(
            "item", "condition", pl.col("predictions").list.first().alias("word")
        )
        both = firsts.group_by("item", maintain_order=True).agg("word").filter(pl.col("word").list.len() == 2)
        changed = pl.col("word").list.get(0) != pl.col("word").list.get(1)
        parts.append(
            both.select(
                pl.col("item").alias("unit"),
                "item",
                pl.col("item").alias("frame"),
                pl.lit(SENSITIVITY).alias("figure"),
                changed.cast(pl.Float64).alias("passed"),
            )
        )
    return pl.concat(parts)


def tabulate_accuracy(answers: Answers, sets: Sets) -> pl.DataFrame:
    """Columns dataset, model, figure, n, share, low, high (exact 95% intervals)."""
    rows = []
    for (dataset, model), table in answers.items():
        judged = judge_answers(table, sets[dataset])
        for (figure,), part in judged.group_by("figure", maintain_order=True):
            right, n = int(part["passed"].sum()), len(part)
            low, high = clopper_pearson(right, n)
            rows.append((dataset, model, figure, n, right / n, low, high))
    schema = ["dataset", "model", "figure", "n", "share", "low", "high"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def describe_targets(answers: Answers, sets: Sets) -> pl.DataFrame:
    """How likely targets are: one row per dataset and model.

    probability: mean p(target), where the model can spell it. ranked: targets among the 20 likeliest.
    median_rank: of all targets, null if half of them or more are not ranked. log_odds: mean
    log p(target) - log p(contrast) in nats; preferred: share above 0.
    several_tokens, unknown: targets that can never be the likeliest token.
    """
    rows = []
    for (dataset, model), table in answers.items():
        part = table.filter(pl.col("condition").is_in(list(sets[dataset].targets)))
        # Two words that are both impossible are level; their difference would be no number.
        level = pl.col("logprob") == pl.col("contrast_logprob")
        difference = pl.when(level).then(0.0).otherwise(pl.col("logprob") - pl.col("contrast_logprob"))
        odds = part.select(difference).to_series().drop_nulls()
        known = part["logprob"].drop_nulls()
        rows.append(
            {
                "dataset": dataset,
                "model": model,
                "n": len(part),
                "probability": _mean(known.exp()),
                "logprob": _mean(known),
                "ranked": int(part["rank"].is_not_null().sum()),
                "median_rank": _median_rank(part["rank"]),
                "log_odds": _mean(odds),
                "preferred": _mean((odds > 0).cast(pl.Float64)),
                "contrasts": len(odds),
                "several_tokens": int((part["n_tokens"] > 1).sum()),
                "unknown": int(part["logprob"].is_null().sum()),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _median_rank(ranks: pl.Series) -> float | None:
    """The median of all ranks, of which the missing ones are beyond the last place that is looked at."""
    median = ranks.fill_null(UNRANKED).median()
    return None if median is None or float(str(median)) > max(TOP) else float(str(median))


def _mean(values: pl.Series) -> float | None:
    return _number(values.mean()) if len(values) else None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


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
        power: float | None = power_of_pairs(pairs).power
    except BadInput:
        power = None
    share = (only_first + only_second) / pairs.n
    try:
        smallest: float | None = smallest_difference(pairs.n, share).difference if share else None
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
    """In words, what the small set would have told and whether the large one agrees."""
    sure = [told["p"] <= ALPHA for told in (small, large)]
    same = np.sign(small["difference"]) == np.sign(large["difference"])
    if all(sure):
        return "holds" if same else "is reversed"
    if sure[0]:
        return "does not hold on the extension"
    if sure[1]:
        return "was out of reach of the small set" if same else "is reversed, where the small set was unsure"
    return "stays open at both sizes"


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

    Gives a row per fixed term and random effect, and notes on what could not be fitted. Frames are left
    out where every item has one frame, for then the two effects are the same.
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
        widest = float(fit.random["sd"].max() or 0.0) if fit.random.height else 0.0  # type: ignore[arg-type]
        if widest > WIDEST:
            notes.append(
                f"{small}: a random effect has an SD of {widest:.0f} in log-odds, as where a model is almost "
                "always wrong; the estimates of this regression are hardly bounded by the data."
            )
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
    """The fullest formula that can be fitted, with what was said of fuller ones."""
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
        return fit, formula, [*said, *fit.notes]
    return None, "", said


def rate_humans(given: pl.DataFrame, sets: Sets) -> pl.DataFrame:
    """The human ceiling: per dataset the accuracy of each annotator, their mean, and Cohen's kappa.

    `given` has dataset, item, condition, annotator, answer; answers are matched without case.

    Raises BadInput if a column is missing or nothing fits the datasets.
    """
    keys = ["dataset", "item", "condition", "annotator"]
    for name in (*keys, "answer"):
        if name not in given.columns:
            raise BadInput(f"The human answers lack a column '{name}'.")
    empty = pl.any_horizontal(pl.col(*keys, "answer").is_null())
    _refuse_answers(given, given.select(empty), "has an empty cell; fill it in or remove the row")
    twice = "occurs twice; keep one answer of each annotator to each item"
    _refuse_answers(given, given.select(pl.struct(keys).is_duplicated()), twice)
    rows = []
    for (dataset,), part in given.with_columns(pl.col("item").cast(pl.String)).group_by(
        "dataset", maintain_order=True
    ):
        if dataset not in sets:
            continue
        own = sets[str(dataset)].items.with_columns(pl.col("item").str.split("/").list.last())
        unknown = part.join(own, on=["item", "condition"], how="anti", maintain_order="left")
        if unknown.height:
            first = unknown.row(0, named=True)
            raise BadInput(
                f"The human answers name item '{first['item']}', {first['condition']}, of {dataset}, "
                "which it does not have; correct or remove them."
            )
        joined = part.join(own, on=["item", "condition"], how="inner", maintain_order="left")
        right = pl.col("answer").str.strip_chars().str.to_lowercase() == pl.col("target").str.to_lowercase()
        judged = joined.with_columns(right.alias("right"))
        shares = judged.group_by("annotator", maintain_order=True).agg(
            pl.col("right").mean(), pl.len().alias("n")
        )
        row: dict[str, Any] = {
            "dataset": dataset,
            "annotators": len(shares),
            "n": min(shares["n"].to_list(), default=0),
        }
        row |= {"accuracy": _number(shares["right"].mean()), "kappa": None}
        if len(shares) == 2:
            row["kappa"] = _kappa(judged)
        rows.append(row)
    if not rows:
        raise BadInput("None of the human answers is about a dataset of this study.")
    return pl.DataFrame(rows, infer_schema_length=None)


def _refuse_answers(given: pl.DataFrame, wrong: pl.DataFrame, what: str) -> None:
    """Stop at the first of the human answers that is marked as wrong."""
    found = given.filter(wrong.to_series())
    if found.height:
        row = found.row(0, named=True)
        raise BadInput(
            f"The answer of annotator '{row['annotator']}' to item '{row['item']}', {row['condition']}, of "
            f"{row['dataset']} {what}."
        )


def _kappa(judged: pl.DataFrame) -> float | None:
    said = judged.with_columns(pl.col("answer").str.strip_chars().str.to_lowercase())
    wide = said.pivot(on="annotator", index=["item", "condition"], values="answer").drop_nulls()
    one, two = wide.columns[-2:]
    try:
        return float(cohen_kappa(wide[one], wide[two])["kappa"][0])
    except BadInput:
        return None


def pick_items(answers: Answers, sets: Sets, dataset: str, *, most: int = 12) -> pl.DataFrame:
    """Frames to look at: those on which the models part ways most, then those that all of them miss.

    Columns frame, target, and per model its likeliest word and the target's rank.
    """
    models = [model for one, model in answers if one == dataset]
    data = sets[dataset]
    wide: pl.DataFrame | None = None
    for model in models:
        own = answers[dataset, model].filter(pl.col("condition").is_in(list(data.targets)))
        shown = own.select(
            "item",
            "condition",
            "frame",
            "target",
            pl.col("predictions").list.first().alias(f"{model} first"),
            pl.col("rank").alias(f"{model} rank"),
        )
        keys = ["item", "condition", "frame", "target"]
        wide = shown if wide is None else wide.join(shown, on=keys, maintain_order="left")
    if wide is None:
        raise BadInput(f"No model was asked about {dataset}.")
    hits = [(pl.col(f"{model} rank") <= TOP[1]).fill_null(False).cast(pl.Int64) for model in models]
    number = pl.sum_horizontal(hits)
    order = wide.with_columns((number * (len(models) - number)).alias("parted"), number.alias("hits"))
    return (
        order.sort(["parted", "hits"], descending=[True, False], maintain_order=True)
        .head(most)
        .drop("parted", "hits")
    )


def count_targets(sets: Sets, *, most: int = 20) -> pl.DataFrame:
    """The most frequent targets of each dataset, as in figures 2 to 6 of the paper.

    Columns dataset, target, n, different (targets in the dataset) and share: of the frames, how many have
    this target or a more frequent one. The share in place k is the top-k accuracy of always answering the k
    most frequent targets, whatever the frame.
    """
    parts = []
    for name, data in sets.items():
        wanted = data.items.filter(pl.col("condition").is_in(list(data.targets)))
        counts = wanted.group_by("target").len("n").sort("n", "target", descending=[True, False])
        counts = counts.select(
            pl.lit(name).alias("dataset"),
            "target",
            pl.col("n").cast(pl.Int64),
            pl.lit(len(counts)).cast(pl.Int64).alias("different"),
            (pl.col("n").cum_sum() / len(wanted)).alias("share"),
        )
        parts.append(counts.head(most))
    return pl.concat(parts)
