"""felicity export: a run's tables for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json, RunPath
from felicity.cli.terminal import out, print_json


def export(
    folder: RunPath,
    to: Annotated[str, typer.Option(help="Format: csv or jsonl.")] = "csv",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder.  [default: RUN/export]")
    ] = None,
    json: Json = False,
) -> None:
    """Write every table of a run as CSV or JSON lines; tokens become one row a token.

    \b
    Examples:
      felicity export runs/starter-smollm2 --to csv
      felicity export runs/blimp-gpt2 --to jsonl -o tables
    """
    from felicity.run.export import export_run

    written = export_run(folder, output or folder / "export", to=to)
    if json:
        print_json([str(path) for path in written])
    else:
        out.print("\n".join(str(path) for path in written), soft_wrap=True)
