"""felicity report and felicity export: the report of a run or study, and its tables for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.explorer_page import Explorer, write_explorer
from felicity.cli.options import Json, RunPath
from felicity.cli.terminal import out, print_json
from felicity.core.errors import BadInput, UnknownName

Force = Annotated[
    bool,
    typer.Option("--force", help="Also read a run or study that is not finished or was changed since."),
]


def report(
    folder: RunPath,
    ratings: Annotated[
        Path | None,
        typer.Option(
            help="Of a study that people rated: ratings.csv, or the folder, of `felicity rate export`."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Of a study: another value of a setting that affects only its analysis; repeatable.",
        ),
    ] = None,
    explorer: Explorer = True,
    json: Json = False,
    force: Force = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write report.html and its figures from the tables of a run or a study, without the model.

    A study is analysed again if --ratings or --set is given, and keeps these settings.

    \b
    Examples:
      felicity report runs/starter-smollm2
      felicity report runs/blimp-gpt2 --open
      felicity report runs/causality --ratings ratings/
      felicity report runs/starter-trajectory --set criterion=0.8
    """
    from felicity.api import report as write_page

    settings = _read_changes(changes or [])
    page = write_page(folder, check=not force, **settings, **({"ratings": ratings} if ratings else {}))
    if explorer:
        write_explorer(folder)
    if json:
        print_json({"report": str(page)})
    else:
        out.print(f"Report: {page}", soft_wrap=True)
    if open_page:
        typer.launch(page.resolve().as_uri())


def _read_changes(given: list[str]) -> dict[str, str | tuple[str, ...]]:
    """Settings by name; one that is given several times has several values.

    Raises BadInput.
    """
    found: dict[str, str | tuple[str, ...]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name in ("check", "folder"):
            raise BadInput(f"--set {text} is not NAME=VALUE with a setting of the study, such as rated=gpt2.")
        before = found.get(name, ())
        earlier = (before,) if isinstance(before, str) else before
        found[name] = (*earlier, value) if earlier else value
    return found


def export(
    folder: RunPath,
    to: Annotated[str, typer.Option(help="Format: csv or jsonl.")] = "csv",
    form: Annotated[
        str | None, typer.Option("--as", metavar="PROGRAM", help="The form of another program: babylm.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder; with --as, file.  [default: RUN/export, RUN/predictions.json]"
        ),
    ] = None,
    safe: Annotated[
        bool, typer.Option("--safe", help="In CSV, put ' before texts that a spreadsheet would run.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write every table of a run as CSV or JSON lines, tokens as one row per token.

    Tokens come with their item, condition and text. For a study, the tables of each run are in a folder of
    their own.

    \b
    Examples:
      felicity export runs/starter-smollm2 --to csv
      felicity export runs/blimp-gpt2 --to jsonl -o tables
      felicity export runs/babylm --as babylm -o predictions.json
    """
    from felicity.api import export as export_folder
    from felicity.studies.benchmark import write_predictions

    if form is not None:
        if form != "babylm":
            raise UnknownName("program to export for", form, ["babylm"])
        written = write_predictions(folder, output or folder / "predictions.json", check=not force)
    else:
        written = export_folder(folder, output, to=to, safe=safe, check=not force)
    if json:
        print_json([str(path) for path in written])
    else:
        out.print("\n".join(str(path) for path in written), soft_wrap=True)
