"""felicity report and felicity export: the report of a run or study, and its tables for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json, RunPath
from felicity.cli.terminal import out, print_json

Anyway = Annotated[
    bool,
    typer.Option("--anyway", help="Also read a run or study that is not finished or was changed since."),
]


def report(
    folder: RunPath,
    json: Json = False,
    anyway: Anyway = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write report.html and its figures from the tables of a run or a study, without the model.

    \b
    Examples:
      felicity report runs/starter-smollm2
      felicity report runs/blimp-gpt2 --open
    """
    from felicity.run import is_study, read_run
    from felicity.studies import report_study

    check = not anyway
    page = (
        report_study(folder, check=check)
        if is_study(folder)
        else read_run(folder, check=check).report(folder)
    )
    if json:
        print_json({"report": str(page)})
    else:
        out.print(f"Report: {page}", soft_wrap=True)
    if open_page:
        typer.launch(page.resolve().as_uri())


def export(
    folder: RunPath,
    to: Annotated[str, typer.Option(help="Format: csv or jsonl.")] = "csv",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder.  [default: RUN/export]")
    ] = None,
    safe: Annotated[
        bool, typer.Option("--safe", help="In CSV, put ' before texts that a spreadsheet would run.")
    ] = False,
    anyway: Anyway = False,
    json: Json = False,
) -> None:
    """Write every table of a run as CSV or JSON lines, tokens as one row per token.

    Tokens come with their item, condition and text. For a study, the tables of each run are in a folder of
    their own.

    \b
    Examples:
      felicity export runs/starter-smollm2 --to csv
      felicity export runs/blimp-gpt2 --to jsonl -o tables
    """
    from felicity.run import export_tables, is_study, list_runs, read_run, read_study

    target = output or folder / "export"
    runs = list_runs(folder)
    written = (
        export_tables(read_study(folder, check=not anyway).tables, target, to=to, safe=safe)
        if is_study(folder)
        else []
    )
    for place in runs:
        below = target if runs == [folder] else target / place.name
        written += read_run(place, check=not anyway).export(below, to=to, safe=safe)
    if json:
        print_json([str(path) for path in written])
    else:
        out.print("\n".join(str(path) for path in written), soft_wrap=True)
