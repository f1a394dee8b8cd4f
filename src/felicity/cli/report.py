"""felicity report: the page of a finished run."""

from typing import Annotated

import typer

from felicity.cli.options import Json, RunPath
from felicity.cli.terminal import out, print_json


def report(
    folder: RunPath,
    json: Json = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write report.html and its figures from a run's tables, without the model.

    \b
    Examples:
      felicity report runs/starter-smollm2
      felicity report runs/blimp-gpt2 --open
    """
    from felicity.run.evaluate import read_run, report_run

    page = report_run(read_run(folder), folder)
    if json:
        print_json({"report": str(page)})
    else:
        out.print(f"Report: {page}", soft_wrap=True)
    if open_page:
        typer.launch(page.resolve().as_uri())
