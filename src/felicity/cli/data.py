"""felicity data: datasets by name, what is in them, and what is wrong with a file."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Bad, Good, Json, Phenomenon, Suite, build_columns
from felicity.cli.terminal import out, print_json, print_rows

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at datasets, and check your own.")
Name = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's name or a file of pairs.")]


@app.command("ls")
def ls(json: Json = False) -> None:
    """List the datasets that have a name.

    \b
    Examples:
      felicity data ls
    """
    from felicity.data.catalogue import DATASETS

    rows = [
        {"name": name, "title": entry.title, "licence": entry.licence, "origin": entry.origin}
        for name, entry in DATASETS.items()
    ]
    print_json(rows) if json else print_rows(rows)


@app.command()
def show(
    name: Name,
    rows: Annotated[int, typer.Option(help="How many pairs to show.")] = 5,
    good: Good = "good",
    bad: Bad = "bad",
    suite: Suite = None,
    phenomenon: Phenomenon = None,
    json: Json = False,
) -> None:
    """Show what a dataset holds: sizes, suites, and some of its pairs.

    \b
    Examples:
      felicity data show starter
      felicity data show blimp --suite adjunct_island --rows 20
      felicity data show my_pairs.csv --good right --bad wrong
    """
    from felicity.data.catalogue import describe_items, read_items

    items = read_items(name, build_columns(good, bad, suite, phenomenon))
    described = describe_items(name, items, rows=rows)
    if json:
        print_json(described)
        return
    out.print(
        f"[bold]{name}[/]: {described['items']:,} items, {described['stimuli']:,} stimuli, "
        f"{len(described['suites'])} suites, {len(described['phenomena'])} phenomena. "
        f"Licence: {described['licence']}."
    )
    print_rows(
        [
            {"suite": s["name"], "phenomenon": s["phenomenon"], "items": s["items"]}
            for s in described["suites"]
        ],
        right=("items",),
    )
    for pair in described["examples"]:
        out.print(f"\n{pair['item']}", style="dim", markup=False)
        for condition in ("good", "bad"):
            out.print(f"  {condition:5}{pair[condition]}", markup=False)


@app.command()
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .tsv, .jsonl or .parquet file of pairs.")
    ],
    good: Good = "good",
    bad: Bad = "bad",
    json: Json = False,
) -> None:
    """Report duplicates, identical pairs, stray spaces and empty cells, by line.

    Exits with 1 where there is something to mend.

    \b
    Examples:
      felicity data check my_pairs.csv
      felicity data check my_pairs.tsv --good right --bad wrong --json
    """
    from felicity.data.check import check_pairs
    from felicity.data.tables import read_table

    table = read_table(file)
    problems = check_pairs(table, build_columns(good, bad, None, None)).to_dicts()
    if json:
        print_json({"file": str(file), "pairs": len(table.rows), "problems": problems})
    elif problems:
        print_rows(problems, right=("line",))
        out.print(f"\n{len(problems)} problems in {len(table.rows):,} pairs.")
    else:
        out.print(f"{len(table.rows):,} pairs, nothing to mend.")
    if problems:
        raise typer.Exit(1)
