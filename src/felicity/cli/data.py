"""felicity data: list, download and show datasets, and convert old suites."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from felicity.cli.model_options import DataOptions, takes_groups
from felicity.cli.options import From, Json, Language, RuleName
from felicity.cli.terminal import out, print_json, print_rows
from felicity.core.contrasts import Headline

DIRECTIONS = {"ltr": "from left to right", "rtl": "from right to left"}
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, download and show datasets.")
Name = Annotated[
    str, typer.Argument(metavar="DATASET", help="A dataset's name, or a file of pairs or a suite.")
]
Known = Annotated[str, typer.Argument(metavar="NAME", help="A dataset's name (see `felicity data ls`).")]


@app.command("ls")
def ls(language: Language = None, json: Json = False) -> None:
    """List the named datasets and their languages.

    \b
    Examples:
      felicity data ls
      felicity data ls --language German
    """
    from felicity.data import list_datasets

    rows = list_datasets(language)
    shown = [
        {"name": row["name"], "languages": ", ".join(row["languages"]), "title": row["title"]} for row in rows
    ]
    print_json(rows) if json else print_rows(shown)


@app.command()
def get(name: Known, source: From = None, json: Json = False) -> None:
    """Download a dataset into the cache, or say where it already is.

    Downloads are checked against the published version. Your own copy (--from) is copied into
    the cache; differences from the published version are reported, not refused.

    \b
    Examples:
      felicity data get blimp
      felicity data get crows_pairs --from ~/Downloads
    """
    from felicity.data import digest_files, find_entry, get_copy, keep_copy

    entry = find_entry(name)
    copy = keep_copy(entry, source) if source else get_copy(entry)
    told = {
        "name": name,
        "folder": str(copy.paths[0].parent),
        "files": [path.name for path in copy.paths],
        "checksum": copy.checksum,
        "sha256": digest_files(entry, copy.paths),
        "licence": entry.licence,
    }
    if json:
        print_json(told)
        return
    checksums = {
        "published": "the published version",
        "another version": "not the published version known to felicity",
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
    """Print the BibTeX entries for citing a dataset.

    \b
    Examples:
      felicity data cite blimp
    """
    from felicity.data import find_entry

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
    """Show what a dataset contains: sizes, suites, rules, quirks, and some of its items.

    \b
    Examples:
      felicity data show starter
      felicity data show blimp --suite adjunct_island --rows 20
      felicity data show my_pairs.csv --good right --bad wrong
      felicity data show syntaxgym --json
    """
    from felicity.data import ALL_LANGUAGES, describe_dataset, read_dataset

    columns = replace(data.columns, language=data.language or ALL_LANGUAGES)
    dataset = read_dataset(name, columns, rule=rule, folder=data.source)
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
    for one in described["languages"]:
        written = f"script {one['script']}, written {DIRECTIONS[one['direction']]}"
        out.print(f"Language {one['tag']}: {one['name']}, {written}.", soft_wrap=True, markup=False)
    for rule, meaning in described["rules"].items():
        default = " (default)" if rule == described["rule"] else ""
        said = f": {meaning}" if meaning else ""
        out.print(f"Rule {rule}{default}{said}.", soft_wrap=True, markup=False)
    if "name" in described["score"]:
        out.print(Headline.read(described["score"]).describe(), soft_wrap=True, markup=False)
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
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A suite in the old CSV format.")],
    prediction: Annotated[
        list[str] | None, typer.Option(help="A formula; repeatable. The old format has none.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file to write.  [default: FILE.json]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The suite's name.  [default: the file's]")] = None,
    metric: Annotated[
        str, typer.Option(help="How a region's tokens are combined: sum, mean, median, range, max, min.")
    ] = "sum",
    json: Json = False,
) -> None:
    """Convert a suite of SyntaxGym from the old CSV format to JSON, which `felicity run` accepts.

    The old format has one row per region: item_number, condition_name, region_number, region_name, content.

    \b
    Examples:
      felicity data convert number.csv --prediction "(6;%match%) < (6;%mismatch%)"
      felicity run number.json
    """
    from felicity.core.files import replacing
    from felicity.data import read_old_suite, write_suite

    stem = file.name.split(".")[0]
    suite = read_old_suite(file, name=name or stem, metric=metric, predictions=prediction or [])
    target = output or file.with_name(f"{stem}.json")
    with replacing(target) as part:
        part.write_text(write_suite(suite), encoding="utf-8")
    if json:
        print_json({"suite": str(target), "items": len(suite.items), "regions": len(suite.regions)})
    else:
        out.print(f"{target}: {len(suite.items)} items, {len(suite.regions)} regions.", soft_wrap=True)
