"""A command: a function with typer's annotations; its docstring is the help."""

from typing import Annotated

import typer


def forecast(place: Annotated[str, typer.Argument(help="Where.")]) -> None:
    """Say what the weather will be."""
    typer.echo(f"{place}: acceptable")
