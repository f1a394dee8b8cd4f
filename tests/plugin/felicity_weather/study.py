"""A study: it plans what is scored, hands the plan to the pipeline, and says what came out."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from felicity.data import read_dataset
from felicity.run import RunFolder, carry_out, open_model, plan_run, read_run


def repetition(
    dataset: Annotated[str, typer.Argument(help="A dataset's name or file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run.")],
    model: Annotated[str, typer.Option("--model", "-m", help="Model name.")] = "smollm2",
) -> None:
    """Judge every sentence said twice in a row."""
    data = read_dataset(dataset)
    twice = data.items.with_columns(pl.format("{} {}", "text", "text").alias("text"))
    lm = open_model(model)
    carry_out(lm, plan_run(data, twice, lm), RunFolder(output))
    overall = read_run(output).accuracy().row(0, named=True)
    typer.echo(f"{data.name} said twice: accuracy {overall['accuracy']:.2f} on {overall['n']} items")
