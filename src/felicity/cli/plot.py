"""felicity plot: means with intervals from your own table, by region and by factor."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import format_numbers, out, print_json, print_rows


def plot(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv or .parquet file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The figure: a .svg or .png file.")],
    y: Annotated[str, typer.Option("--y", help="Column to average.")] = "surprisal",
    x: Annotated[str, typer.Option("--x", help="Column along the axis, as ordered in the table.")] = "place",
    by: Annotated[
        list[str] | None, typer.Option(help="A factor; one line per combination; repeatable.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Only these rows; repeatable.")
    ] = None,
    item: Annotated[
        str, typer.Option(help="Column of the items, within which two factors may be crossed.")
    ] = "item",
    json: Json = False,
) -> None:
    """Draw means with 95% intervals, one line per combination of factors.

    The interval is Student's t over the rows of a point. If two factors of two levels are crossed within
    items, their interaction is printed: a difference of differences, with Cohen's d over items.

    \b
    Examples:
      felicity surprisal stimuli.csv --by region -o regions.csv
      felicity plot regions.csv --by ambiguity --by comma -o regions.svg
      felicity plot regions.csv --x comma --by ambiguity --where place=3 -o interaction.svg
    """
    from felicity.api import means
    from felicity.report.charts import write_figure

    found = means(table, y=y, x=x, by=by or [], where=where or [], item=item)
    write_figure(found.figure(), output)
    if json:
        print_json({"means": found.table.to_dicts(), "interaction": found.interaction})
        return
    print_rows(format_numbers(found.table), right=("n", "mean", "low", "high"))
    out.print(f"\nFigure: {output}", soft_wrap=True, markup=False)
    if found.interaction:
        out.print(found.summary(), soft_wrap=True, markup=False)
    elif by and len(by) == 1 and not found.has_items:
        out.print(
            f"No interaction is printed, since the table has no column '{item}'; name that of the items with "
            "--item.",
            soft_wrap=True,
            markup=False,
        )
