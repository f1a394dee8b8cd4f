"""felicity syntaxgym: suites of regions and predictions."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Work with SyntaxGym's suites.")


@app.callback()
def syntaxgym() -> None:
    """Work with SyntaxGym's suites."""


@app.command()
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A suite in the old CSV form.")],
    prediction: Annotated[
        list[str] | None, typer.Option(help="A formula; may be given several times. The old form has none.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file to write.  [default: FILE.json]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The suite's name.  [default: the file's]")] = None,
    metric: Annotated[
        str, typer.Option(help="How a region's tokens are put together: sum, mean, median, range, max, min.")
    ] = "sum",
    json: Json = False,
) -> None:
    """Turn a suite from the old CSV form into JSON, which `felicity run` takes.

    The old form has a row a region: item_number, condition_name, region_number, region_name, content.

    \b
    Examples:
      felicity syntaxgym convert number.csv --prediction "(6;%match%) < (6;%mismatch%)"
      felicity run number.json
    """
    from felicity.core.files import replacing
    from felicity.data.old_csv import read_old_suite, write_suite

    stem = file.name.split(".")[0]
    suite = read_old_suite(file, name=name or stem, metric=metric, predictions=prediction or [])
    target = output or file.with_name(f"{stem}.json")
    with replacing(target) as part:
        part.write_text(write_suite(suite), encoding="utf-8")
    if json:
        print_json({"suite": str(target), "items": len(suite.items), "regions": len(suite.regions)})
    else:
        out.print(f"{target}: {len(suite.items)} items, {len(suite.regions)} regions.", soft_wrap=True)
