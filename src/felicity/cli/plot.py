"""felicity plot: means with intervals from your own table, by region and by factor."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    import polars as pl


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
    from felicity.core.files import read_frame
    from felicity.report.charts import SLIDE, Point, chart_lines, write_figure
    from felicity.stats import average_cells, filter_rows, measure_interaction

    frame = filter_rows(read_frame(table), where or [])
    means = average_cells(frame, y=y, x=x, by=by or [])
    labels = means["x"].unique(maintain_order=True).to_list()
    points = [
        Point(row["series"], labels.index(row["x"]), row["mean"], row["low"], row["high"])
        for row in means.iter_rows(named=True)
    ]
    spec = chart_lines(
        points,
        canvas=SLIDE,
        x_title=x,
        y_title=y,
        labels=labels,
        title=f"Mean {y}",
        subtitle="95% intervals",
    )
    write_figure(spec, output)
    crossed = measure_interaction(frame, y=y, x=x, by=by[0], unit=item) if by and len(by) == 1 else None
    if json:
        print_json({"means": means.to_dicts(), "interaction": crossed})
        return
    _print(means, output)
    if crossed:
        size = "" if crossed["d"] is None else f", d = {crossed['d']:.2f}"
        out.print(
            f"Interaction over {crossed['n']} items: {crossed['estimate']:.3f}, 95% interval "
            f"{crossed['low']:.3f} to {crossed['high']:.3f}{size}; {crossed['contrast']}.",
            soft_wrap=True,
            markup=False,
        )
    elif by and len(by) == 1 and item not in frame.columns:
        out.print(
            f"No interaction is printed, since the table has no column '{item}'; name that of the items with "
            "--item.",
            soft_wrap=True,
            markup=False,
        )


def _print(means: "pl.DataFrame", output: Path) -> None:
    rows = [
        {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in row.items()}
        for row in means.to_dicts()
    ]
    print_rows(rows, right=("n", "mean", "low", "high"))
    out.print(f"\nFigure: {output}", soft_wrap=True, markup=False)
