"""Region surprisals that someone else computed, judged by the formulas of their suites."""

import json
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, FelicityError
from felicity.core.schemas import REGIONS
from felicity.data.catalogue import read_dataset
from felicity.data.locate import read_content
from felicity.data.tables import Table
from felicity.judge.formulas import MEASURE, judge_formulas
from felicity.run.rules import Verdicts
from felicity.studies.replay import Replayed
from felicity.studies.replay_scores import read_numbers

SYNTAXGYM = "syntaxgym"


def replay_surprisals(regions: pl.DataFrame, dataset: str, rows: int) -> Replayed:
    """Surprisals of regions, in bits, judged by the formulas of their suites."""
    items = read_dataset(dataset).items
    if "predictions" not in items.columns:
        raise BadInput(
            f"'{dataset}' has no regions; surprisals are replayed against suites with predictions."
        )
    known = items.filter(pl.col("item").is_in(regions["item"].unique().to_list()))
    if known.is_empty():
        raise BadInput(
            f"No item of the file is one of '{dataset}', whose items are like '{items['item'][0]}'."
        )
    strangers = regions.filter(~pl.col("item").is_in(known["item"].to_list()))
    judged, single = judge_formulas(known, regions, noise_bits=0.0)
    note = (f"rows of items that {dataset} does not have", len(strangers), rows)
    return Replayed(
        form="surprisals",
        dataset=dataset,
        items=known,
        verdicts=Verdicts(judgements=judged, predictions=single, tables={"regions": regions}),
        measures=(MEASURE,),
        notes=(note,) if len(strangers) else (),
    )


def replay_reference(path: Path) -> Replayed:
    """A JSON file with `region_totals`: by suite, a list of items, each a list of region surprisals.

    Items are in the order of the suite.
    """
    try:
        content = json.loads(read_content(path))
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

    Raises BadInput where a value is no number or a region stands twice.
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
        pl.col("region").alias("name"), pl.lit(0, dtype=pl.UInt32).alias("n_tokens")
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
        .with_columns(
            pl.col("name").fill_null(pl.col("region")), pl.lit(0, dtype=pl.UInt32).alias("n_tokens")
        )
        .select(list(REGIONS))
    )
