"""What the answers say about one dataset: accuracy, sensitivity, likelihood of targets, the human ceiling."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.stats import clopper_pearson, cohen_kappa
from felicity.studies.cloze.frames import ClozeSet

TOP = (1, 5, 10, 20)
MAIN = "top5"
SENSITIVITY = "sensitivity"
UNRANKED = 10**6
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
        # Two words that are both impossible are level; their difference would not be a number.
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
            pl.col("right").mean(), pl.len().cast(pl.Int64).alias("n")
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
    """Refuse the first of the human answers that is marked as wrong."""
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
    """Frames to look at: those on which the models disagree most, then those that all of them miss.

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
