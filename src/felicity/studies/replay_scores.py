"""Scores of stimuli that someone else computed, judged by the contrasts of their dataset."""

from pathlib import Path

import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput
from felicity.core.schemas import ITEMS, SCORES
from felicity.data.catalogue import Dataset, read_dataset
from felicity.data.tables import Table
from felicity.judge.contrasts import judge_contrasts
from felicity.run.rules import Verdicts
from felicity.studies.replay import Replayed


def replay_scores(table: Table, dataset: str | None, good: str) -> Replayed:
    """Scores of stimuli: higher is more acceptable."""
    values = read_numbers(table, "value")
    name = dataset or table.path.name.split(".")[0]
    fixed = {"suite": name, "phenomenon": "", "measure": "value", "text": ""}
    rows = [
        {key: str(row.get(key) or default) for key, default in fixed.items()}
        | {"item": str(row["item"]), "condition": str(row["condition"]), "value": value}
        for row, value in zip(table.rows, values, strict=True)
    ]
    frame = pl.DataFrame(rows).with_columns(
        pl.when(pl.col("phenomenon") == "").then("suite").otherwise("phenomenon").alias("phenomenon")
    )
    contrasts: tuple[Contrast, ...]
    if dataset:
        known = read_dataset(dataset, without=("cloze",))
        frame, contrasts = _join(frame, known, table.path), known.contrasts
    else:
        contrasts = (_contrast(frame, good, table.path),)
    stimuli = frame.unique(["item", "condition"], maintain_order=True).select(list(ITEMS))
    requests = stimuli.select("item", "condition", pl.format("{}/{}", "item", "condition").alias("request"))
    scores = frame.select(
        pl.format("{}/{}", "item", "condition").alias("request"),
        "measure",
        "value",
        pl.lit(0.0).alias("error"),
    )
    _refuse_twice(scores, table.path)
    judged = judge_contrasts(stimuli, requests, scores, contrasts)
    if judged.is_empty():
        raise BadInput(f"No item of {table.path} has all the conditions that a judgement needs.")
    return Replayed(
        form="scores",
        dataset=name,
        items=stimuli,
        verdicts=Verdicts(judgements=judged, predictions=judged if len(contrasts) > 1 else None),
        measures=tuple(frame["measure"].unique(maintain_order=True)),
        scores=scores.select(list(SCORES)),
    )


def read_numbers(table: Table, column: str) -> list[float]:
    """A column of numbers.

    Raises BadInput naming the line of what is none.
    """
    found = []
    for row, line in zip(table.rows, table.lines, strict=True):
        try:
            found.append(float(str(row.get(column))))
        except ValueError as error:
            raise BadInput(
                f"{table.path}, line {line}: '{column}' is {row.get(column)!r}, not a number."
            ) from error
    return found


def _join(frame: pl.DataFrame, known: Dataset, path: Path) -> pl.DataFrame:
    labels = known.items.select("item", "condition", "suite", "phenomenon", "text")
    joined = frame.drop("suite", "phenomenon", "text").join(labels, on=["item", "condition"], how="left")
    strange = joined.filter(pl.col("suite").is_null())
    if len(strange):
        raise BadInput(
            f"{path} has item '{strange['item'][0]}', condition '{strange['condition'][0]}', which "
            f"'{known.name}' has not; its items are like '{known.items['item'][0]}'."
        )
    return joined


def _contrast(frame: pl.DataFrame, good: str, path: Path) -> Contrast:
    conditions = frame["condition"].unique(maintain_order=True).to_list()
    if good not in conditions or len(conditions) < 2:
        raise BadInput(
            f"{path} has the conditions {', '.join(conditions)}; name the one that should score highest "
            "with --good."
        )
    return Contrast(name="replayed", better=good, worse=tuple(c for c in conditions if c != good))


def _refuse_twice(scores: pl.DataFrame, path: Path) -> None:
    twice = scores.filter(scores.select("request", "measure").is_duplicated())
    if len(twice):
        raise BadInput(f"{path} gives '{twice['request'][0]}' more than one value.")
