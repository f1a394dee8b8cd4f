"""The command `felicity`: one file a command, errors in one sentence."""

import sys
from typing import Annotated

import typer

from felicity.cli import data, measures, models, syntaxgym, train
from felicity.cli.bias import bias
from felicity.cli.compare import compare
from felicity.cli.context import context
from felicity.cli.count import count
from felicity.cli.export import export
from felicity.cli.fill import fill
from felicity.cli.fit import fit
from felicity.cli.generate import generate
from felicity.cli.judge import judge
from felicity.cli.power import power
from felicity.cli.replay import replay
from felicity.cli.report import report
from felicity.cli.run import run
from felicity.cli.topics import topics
from felicity.core.errors import FelicityError

BAD_INPUT = 2
INTERRUPTED = 130

app = typer.Typer(
    name="felicity",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"felicity {version('felicity')}\n")
        raise typer.Exit


@app.callback()
def felicity(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure what language models find acceptable.

    \b
    Examples:
      felicity judge "The cats annoy Tim." "The cats annoys Tim."
      felicity run starter
      felicity report runs/starter-smollm2
    """


app.command()(judge)
app.command()(run)
app.command()(fill)
app.command()(generate)
app.command()(report)
app.command()(export)
app.command()(count)
app.command()(compare)
app.command()(fit)
app.command()(power)
app.command()(bias)
app.command()(context)
app.command()(replay)
app.add_typer(data.app, name="data")
app.add_typer(syntaxgym.app, name="syntaxgym")
app.add_typer(models.app, name="models")
app.add_typer(measures.app, name="measures")
app.add_typer(train.app, name="train")
models.app.command()(topics)


def main() -> None:
    """Run the command line; what a user can mend is one sentence and exit code 2."""
    try:
        app()
    except FelicityError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(BAD_INPUT)
    except SystemExit as stop:
        # typer turns an interrupt into this exit code by itself, without a word.
        if stop.code == INTERRUPTED:
            sys.stderr.write(
                "\nInterrupted; what was scored is kept, and the same command goes on from there.\n"
            )
        raise
