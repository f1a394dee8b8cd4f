"""Replayed scores of stimuli, and region surprisals judged by the formulas of their suites."""

import json
from math import isnan, nan
from pathlib import Path

import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import read_bytes
from felicity.core.schemas import ITEMS, REGIONS, SCORES
from felicity.data import Dataset, Table, read_dataset
from felicity.judge import SURPRISAL, judge_contrasts, judge_formulas
from felicity.papers.replay.replayed import Replayed
from felicity.run import Verdicts

SYNTAXGYM = "syntaxgym"


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
        wanted = known.items.select("item", "condition")
    else:
        contrasts = (_contrast(frame, good, table.path),)
        wanted = (
            frame.select("item")
            .unique(maintain_order=True)
            .join(frame.select("condition").unique(maintain_order=True), how="cross", maintain_order="left")
        )
    _refuse_partial(frame, wanted, table.path)
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


def _refuse_partial(frame: pl.DataFrame, wanted: pl.DataFrame, path: Path) -> None:
    """Refuse an item that lacks one of its conditions, since it would be left out of the accuracy."""
    here = wanted.join(frame, on="item", how="semi", maintain_order="left")
    missing = here.join(frame, on=["item", "condition"], how="anti", maintain_order="left")
    if len(missing):
        raise BadInput(
            f"{path} has item '{missing['item'][0]}' without its condition '{missing['condition'][0]}' "
            f"({missing['item'].n_unique()} such items); add the missing values or remove the items."
        )


def read_numbers(table: Table, column: str) -> list[float]:
    """A column of numbers.

    Raises BadInput naming a line that is not a number.
    """
    found = []
    for row, line in zip(table.rows, table.lines, strict=True):
        try:
            value = float(str(row.get(column)))
        except ValueError:
            value = nan
        if isnan(value):
            raise BadInput(
                f"{table.path}, line {line}: '{column}' is {str(row.get(column))[:60]!r}, not a number."
            )
        found.append(value)
    return found


def _join(frame: pl.DataFrame, known: Dataset, path: Path) -> pl.DataFrame:
    labels = known.items.select("item", "condition", "suite", "phenomenon", "text")
    joined = frame.drop("suite", "phenomenon", "text").join(labels, on=["item", "condition"], how="left")
    strange = joined.filter(pl.col("suite").is_null())
    if len(strange):
        raise BadInput(
            f"{path} has item '{strange['item'][0]}', condition '{strange['condition'][0]}', which "
            f"'{known.name}' lacks; its items look like '{known.items['item'][0]}'."
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


def replay_surprisals(regions: pl.DataFrame, dataset: str, rows: int) -> Replayed:
    """Surprisals of regions, in bits, judged by the formulas of their suites."""
    items = read_dataset(dataset).items
    if "predictions" not in items.columns:
        raise BadInput(f"'{dataset}' has no regions; replaying surprisals needs suites with predictions.")
    known = items.filter(pl.col("item").is_in(regions["item"].unique().to_list()))
    if known.is_empty():
        raise BadInput(f"No item of the file is in '{dataset}', whose items look like '{items['item'][0]}'.")
    _refuse_gaps(known, regions)
    strangers = regions.filter(~pl.col("item").is_in(known["item"].to_list()))
    judged, single = judge_formulas(known, regions, noise_bits={})
    note = (f"rows of items that {dataset} does not have", len(strangers), rows)
    return Replayed(
        form="surprisals",
        dataset=dataset,
        items=known,
        verdicts=Verdicts(judgements=judged, predictions=single, tables={"regions": regions}),
        measures=(SURPRISAL,),
        notes=(note,) if len(strangers) else (),
    )


def _refuse_gaps(items: pl.DataFrame, regions: pl.DataFrame) -> None:
    """Refuse a sum over all regions from which a region is missing."""
    summed = items.filter(
        pl.col("predictions").list.eval(pl.element().str.contains("(*;", literal=True)).list.any()
    )
    wanted = summed.select("item", "condition", pl.col("regions")).explode("regions").unnest("regions")
    found = regions.select("item", "condition", "region")
    lost = wanted.join(found, on=["item", "condition", "region"], how="anti")
    lost = lost.join(
        found.rename({"region": "name"}), on=["item", "condition", "name"], how="anti", maintain_order="left"
    )
    if len(lost):
        item, condition, region = lost.select("item", "condition", "region").row(0)
        raise BadInput(
            f"Item '{item}' has no surprisal for region {region} of condition '{condition}', but a "
            "prediction sums over all regions."
        )


def replay_reference(path: Path) -> Replayed:
    """A JSON file with `region_totals`: by suite, a list of items, each a list of region surprisals.

    Items are in the order of the suite.
    """
    try:
        content = json.loads(read_bytes(path))
        suites = content["region_totals"]
        items = read_dataset(SYNTAXGYM).items
        order = {
            suite: items.filter(pl.col("suite") == suite)["item"].unique(maintain_order=True).to_list()
            for suite in suites
        }
        rows = [
            {
                "item": order[suite][place],
                "suite": suite,
                "condition": str(cell["condition"]),
                "region": str(cell["region"]),
                "surprisal_bits": float(cell["surprisal"]),
            }
            for suite, answers in suites.items()
            for place, cells in enumerate(answers)
            for cell in cells
        ]
    except FelicityError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise BadInput(
            f"{path} is not JSON with 'region_totals': by suite a list of items, each a list of condition, "
            "region and surprisal."
        ) from error
    named = _name_regions(pl.DataFrame(rows), items)
    return replay_surprisals(named, SYNTAXGYM, len(rows))


def read_regions(table: Table) -> pl.DataFrame:
    """Rows of REGIONS from a table with item, condition, region and value in bits.

    Raises BadInput if a value is not a number or a region occurs twice.
    """
    values = read_numbers(table, "value")
    rows = [
        {
            "item": str(row["item"]),
            "suite": str(row.get("suite") or str(row["item"]).rpartition("/")[0]),
            "condition": str(row["condition"]),
            "region": str(row["region"]),
            "surprisal_bits": value,
        }
        for row, value in zip(table.rows, values, strict=True)
    ]
    frame = pl.DataFrame(rows)
    twice = frame.filter(frame.select("item", "condition", "region").is_duplicated())
    if len(twice):
        raise BadInput(f"{table.path} gives a region of item '{twice['item'][0]}' more than once.")
    return frame.with_columns(
        pl.col("region").alias("name"), pl.lit(0, dtype=pl.Int64).alias("n_tokens")
    ).select(list(REGIONS))


def _name_regions(regions: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    names = (
        items.select("suite", pl.col("regions").list.eval(pl.element().struct.with_fields()))
        .explode("regions")
        .unnest("regions")
        .select("suite", "region", "name")
        .unique()
    )
    return (
        regions.join(names, on=["suite", "region"], how="left", maintain_order="left")
        .with_columns(pl.col("name").fill_null(pl.col("region")), pl.lit(0, dtype=pl.Int64).alias("n_tokens"))
        .select(list(REGIONS))
    )
