"""felicity data: datasets by name, what is in them, and what is wrong with a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from felicity.cli.groups import takes_groups
from felicity.cli.opening import DataOptions
from felicity.cli.options import Bad, From, Good, Json, RuleName
from felicity.cli.terminal import out, print_json, print_rows

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at datasets, and check your own.")
Name = Annotated[
    str, typer.Argument(metavar="DATASET", help="A dataset's name, or a file of pairs or a suite.")
]
Known = Annotated[str, typer.Argument(metavar="NAME", help="A dataset's name (see `felicity data ls`).")]


@app.command("ls")
def ls(json: Json = False) -> None:
    """List the datasets that have a name.

    \b
    Examples:
      felicity data ls
    """
    from felicity.data.catalogue import list_datasets

    rows = list_datasets()
    shown = [{"name": row["name"], "title": row["title"]} for row in rows]
    print_json(rows) if json else print_rows(shown)


@app.command()
def get(name: Known, source: From = None, json: Json = False) -> None:
    """Fetch a dataset into the cache, or say where it is already.

    What is fetched is checked against the published version. A copy of your own (--from) is put into
    the cache; where it differs from the published version that is said, not refused.

    \b
    Examples:
      felicity data get blimp
      felicity data get crows_pairs --from ~/Downloads
    """
    from felicity.data.catalogue import find_entry
    from felicity.data.fetch import get_copy, keep_copy

    entry = find_entry(name)
    copy = keep_copy(entry, source) if source else get_copy(entry)
    told = {
        "name": name,
        "folder": str(copy.paths[0].parent),
        "files": [path.name for path in copy.paths],
        "checksum": copy.checksum,
        "licence": entry.licence,
    }
    if json:
        print_json(told)
        return
    checksums = {
        "published": "the published version",
        "another version": "not the published version felicity knows",
        "unknown": "no published checksum to compare with",
    }
    out.print(
        f"{name}: {len(copy.paths)} files in {told['folder']}, {checksums[copy.checksum]}. "
        f"Licence: {entry.licence}.",
        soft_wrap=True,
        markup=False,
    )


@app.command()
def cite(name: Known) -> None:
    """Print the BibTeX entries to cite a dataset by.

    \b
    Examples:
      felicity data cite blimp
    """
    from felicity.data.catalogue import find_entry

    out.print(find_entry(name).citation.strip(), markup=False, soft_wrap=True)


@app.command()
@takes_groups
def show(
    name: Name,
    rows: Annotated[int, typer.Option(min=0, help="How many items to show.")] = 5,
    rule: RuleName = None,
    *,
    data: DataOptions,
    json: Json = False,
) -> None:
    """Show what a dataset holds: sizes, suites, rules, quirks, and some of its items.

    \b
    Examples:
      felicity data show starter
      felicity data show blimp --suite adjunct_island --rows 20
      felicity data show my_pairs.csv --good right --bad wrong
      felicity data show syntaxgym --json
    """
    from felicity.data.catalogue import read_dataset
    from felicity.data.describe import describe_dataset

    dataset = read_dataset(name, data.columns, rule=rule, folder=data.source)
    described = describe_dataset(dataset, rows=rows)
    if json:
        print_json(described)
    else:
        _print_dataset(described)


def _print_dataset(described: dict[str, Any]) -> None:
    from rich.markup import escape

    out.print(
        f"[bold]{escape(described['name'])}[/]: {described['items']:,} items, "
        f"{described['stimuli']:,} stimuli, {len(described['suites'])} suites, "
        f"{len(described['phenomena'])} phenomena. "
        f"Licence: {escape(described['licence'])}.",
        soft_wrap=True,
    )
    for rule, meaning in described["rules"].items():
        default = " (default)" if rule == described["rule"] else ""
        out.print(f"Rule {rule}{default}: {meaning}.", soft_wrap=True, markup=False)
    for quirk in described["quirks"] + described["notes"]:
        out.print(f"- {quirk}", soft_wrap=True, markup=False)
    for left in described["left_out"]:
        out.print(f"{left['rows']:,} rows left out: {left['reason']}.", soft_wrap=True, markup=False)
    print_rows(
        [
            {"suite": s["name"], "phenomenon": s["phenomenon"], "items": s["items"]}
            for s in described["suites"]
        ],
        right=("items",),
    )
    for item in described["examples"]:
        out.print(f"\n{item['item']}", style="dim", markup=False)
        width = max(len(condition) for condition in item)
        for condition in [name for name in item if name != "item"]:
            out.print(f"  {condition:{width}} {item[condition]}", markup=False)


@app.command()
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A .csv, .tsv, .jsonl or .parquet file of pairs, or a .toml or .json suite.",
        ),
    ],
    good: Good = "good",
    bad: Bad = "bad",
    json: Json = False,
) -> None:
    """Report duplicates, identical pairs, stray spaces and empty cells, by line; validate a suite.

    Exits with 1 where there is something to mend.

    \b
    Examples:
      felicity data check my_pairs.csv
      felicity data check my_pairs.tsv --good right --bad wrong --json
      felicity data check my_suite.toml
    """
    from felicity.data.catalogue import read_dataset
    from felicity.data.check import check_pairs
    from felicity.data.document import is_document
    from felicity.data.long_table import is_long
    from felicity.data.pairs import Columns
    from felicity.data.tables import read_table

    if is_document(file) or is_long(table := read_table(file)):
        found = read_dataset(str(file), Columns(good=good, bad=bad))
        told = {"file": str(file), "items": found.items["item"].n_unique(), "problems": []}
        say = f"{told['items']:,} items in {len(found.items):,} stimuli, nothing to mend."
        print_json(told) if json else out.print(say)
        return
    problems = check_pairs(table, Columns(good=good, bad=bad)).to_dicts()
    if json:
        print_json({"file": str(file), "pairs": len(table.rows), "problems": problems})
    elif problems:
        print_rows(problems, right=("line",))
        out.print(f"\n{len(problems)} problems in {len(table.rows):,} pairs.")
    else:
        out.print(f"{len(table.rows):,} pairs, nothing to mend.")
    if problems:
        raise typer.Exit(1)
