"""The command `felicity`: its commands, and errors in one sentence."""

import io
import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.main import get_command

from felicity.cli import cache, data, measures, models, rate, stimuli, train
from felicity.cli.compare import compare
from felicity.cli.explore import explore
from felicity.cli.fill import fill
from felicity.cli.fit import fit
from felicity.cli.generate import generate
from felicity.cli.help import (
    PEOPLE,
    RESULTS,
    SCORE,
    SETUP,
    STATISTICS,
    STIMULI,
    STUDIES,
    SectionedGroup,
    list_in_sections,
)
from felicity.cli.judge import judge
from felicity.cli.plot import plot
from felicity.cli.plugins import add_commands
from felicity.cli.power import power
from felicity.cli.replay import replay
from felicity.cli.reproduce import reproduce
from felicity.cli.run import run
from felicity.cli.run_folders import export, report
from felicity.cli.surprisal import surprisal
from felicity.cli.terminal import plain_text
from felicity.core.errors import BadInput, FelicityError

BAD_INPUT = 2
INTERRUPTED = 130
# An option that one command has and another is asked for.
ELSEWHERE = {("run", "--task"): "benchmark"}
# Options and commands (the words after `felicity`) that have another name now.
RENAMED = {
    "--anyway": "--force",
    "--cut-by": "--length-tokenizer",
    "causality report": "report --ratings",
    "causality run": "causality",
    "causality sample": "rate new --from",
    "count": "measures count",
    "data check": "stimuli check",
    "measures ls": "measures",
    "models topics": "models info",
    "stimuli log": "stimuli check",
    "syntaxgym": "data convert",
}

app = typer.Typer(
    name="felicity",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    cls=SectionedGroup,
)
COMMANDS = {
    SCORE: (judge, surprisal, run, fill, generate),
    STUDIES: (replay, reproduce),
    STATISTICS: (compare, fit, power, plot),
    RESULTS: (report, explore, export),
}
GROUPS = {
    PEOPLE: {"rate": rate.app},
    STIMULI: {"data": data.app, "stimuli": stimuli.app},
    SETUP: {"models": models.app, "measures": measures.app, "train": train.app, "cache": cache.app},
}


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


for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
for panel, groups in GROUPS.items():
    for name, group in groups.items():
        app.add_typer(group, name=name, rich_help_panel=panel)
list_in_sections(app)


def whole_program() -> Any:
    """The program with every study and every command of other packages, for documentation."""
    add_commands(app, ["--help"])
    return get_command(app)


def _forget_output() -> None:
    """Write nothing more to standard output, not even when the program ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_environment() -> None:
    """Refuse what polars would end the program for.

    Raises BadInput.
    """
    threads = os.environ.get("POLARS_MAX_THREADS")
    if threads is not None and not (threads.isdecimal() and int(threads[:9]) > 0):
        raise BadInput(
            f"POLARS_MAX_THREADS is '{threads[:40]}'; set it to a whole number of at least 1, or unset it."
        )


def _refuse_old_names(arguments: list[str]) -> None:
    """Name the new command or option to whoever uses the old one, or that of another command.

    Raises BadInput.
    """
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for name in (" ".join(words[:length]) for length in (1, 2)):
        if name in RENAMED:
            raise BadInput(f"`felicity {name}` is now `felicity {RENAMED[name]}`.")
    for name in (word.split("=")[0] for word in words if word.startswith("--")):
        if (words[0], name) in ELSEWHERE:
            other = ELSEWHERE[words[0], name]
            raise BadInput(f"`felicity {words[0]}` has no option {name}; `felicity {other}` has it.")
        if name in RENAMED:
            raise BadInput(f"The option {name} is now called {RENAMED[name]}.")


def main() -> None:
    """Run the command line; errors that a user can fix are one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that is not valid Unicode is printed as its code instead of failing.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            _check_environment()
            _refuse_old_names(sys.argv[1:])
            add_commands(app, sys.argv[1:])
            app()
        finally:
            # The device may have no space for the rest of the output either.
            sys.stdout.flush()
    except FelicityError as error:
        sys.stderr.write(f"{plain_text(str(error))}\n")
        sys.exit(BAD_INPUT)
    except BrokenPipeError:
        _forget_output()
        sys.exit(1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.filename is None:
            _forget_output()
        what = f"use {str(error.filename)[:200]}" if error.filename is not None else "write the output"
        sys.stderr.write(f"Cannot {plain_text(what)}: {reason}.\n")
        sys.exit(BAD_INPUT)
    except RecursionError:
        sys.stderr.write("The input is nested too deeply to be read; simplify it.\n")
        sys.exit(BAD_INPUT)
    except SystemExit as stop:
        # typer turns an interrupt into this exit code without a message.
        if stop.code == INTERRUPTED:
            sys.stderr.write(
                "\nInterrupted; finished scores are saved, and the same command resumes from there.\n"
            )
        raise
