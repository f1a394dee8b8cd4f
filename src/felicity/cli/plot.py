"""felicity plot: means with intervals from your own table, by region and by factor."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import format_numbers, out, print_json, print_rows
from felicity.core.errors import BadInput

SMALLEST, LARGEST = 200, 4000


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
    within: Annotated[
        bool,
        typer.Option(
            "--within", help="Intervals within items, without the differences between them (Morey 2008)."
        ),
    ] = False,
    regions: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,...", help="Names of the places along the axis, in their order."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Unit of the column.  [default: that of `surprisal`, or what its name ends in]"),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the figure.  [default: Mean and the column]")] = "",
    size: Annotated[
        str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Of the figure, in points, such as 640x300.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw means with 95% intervals, one line per combination of factors.

    The interval is Student's t over the rows of a point, or with --within over items whose own level is
    taken out. If two factors of two levels are crossed within items, their interaction is drawn beside them
    and printed: a difference of differences, with Cohen's d over items.

    \b
    Examples:
      felicity surprisal stimuli.csv --by region -o regions.csv
      felicity plot regions.csv --by ambiguity --by comma -o regions.svg
      felicity plot regions.csv --by comma --within --regions "clause,noun,verb,end" -o regions.svg
      felicity plot regions.csv --x comma --by ambiguity --where place=3 -o interaction.svg
    """
    from felicity.api import means
    from felicity.report.charts import write_figure

    names = [name.strip() for name in regions.split(",")] if regions else []
    extent = _read_size(size)
    found = means(
        table,
        y=y,
        x=x,
        by=by or [],
        where=where or [],
        item=item,
        within=within,
        regions=names,
        unit=unit,
    )
    write_figure(found.figure(title=title, size=extent), output)
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


def _read_size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    width, _, height = text.lower().partition("x")
    ends = [int(end) if end.isdecimal() else 0 for end in (width, height)]
    if not all(SMALLEST <= end <= LARGEST for end in ends):
        raise BadInput(
            f"--size {text} is not WIDTHxHEIGHT in points from {SMALLEST} to {LARGEST}; write for instance "
            "640x300."
        )
    return ends[0], ends[1]
