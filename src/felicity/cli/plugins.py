"""Studies, and commands of outside packages, added to `felicity` when they are needed."""

from collections.abc import Callable, Sequence
from typing import Any

import typer

from felicity.cli.help import STUDIES as STUDIES_PANEL
from felicity.cli.help import list_in_sections
from felicity.cli.study_commands import build_command
from felicity.core.registry import BrokenPlugin, Registry

Command = Callable[..., Any] | typer.Typer


def as_command(given: object) -> Command:
    """What an entry point provides: a function with typer's annotations, or a group of commands.

    Raises TypeError for anything else.
    """
    if isinstance(given, typer.Typer) or callable(given):
        return given
    raise TypeError(f"a command is a function or a typer.Typer, not {type(given).__name__}")


COMMANDS: Registry[Command] = Registry("command", accept=as_command)
OUTSIDE = "Commands of other packages"


def add_commands(app: typer.Typer, arguments: Sequence[str]) -> None:
    """Add to `app` what the arguments ask for: a study, or a command of another package.

    If they name another command of felicity's own, nothing is loaded; if they name another package's, only
    that package is; `--help` loads all of them.
    """
    own = _names(app)
    asked = next((text for text in arguments if not text.startswith("-")), None)
    if asked in own:
        return
    from felicity.studies import STUDIES

    for name in COMMANDS:
        if name not in own and asked in (None, name):
            _add(app, name, COMMANDS, OUTSIDE, lambda command: command)
    for name in STUDIES:
        if name not in own and asked in (None, name):
            _add(app, name, STUDIES, STUDIES_PANEL, build_command)
    list_in_sections(app)


def _names(app: typer.Typer) -> set[str]:
    commands = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    return commands | {str(group.name) for group in app.registered_groups}


def _add(
    app: typer.Typer, name: str, registry: Registry[Any], panel: str, build: Callable[[Any], Command]
) -> None:
    try:
        command = build(registry[name])
    except BrokenPlugin as error:
        _add_broken(app, name, error, panel)
        return
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, rich_help_panel=panel)
    else:
        app.command(name, rich_help_panel=panel)(command)


def _add_broken(app: typer.Typer, name: str, error: BrokenPlugin, panel: str) -> None:
    """A command that says what is wrong with the package it should come from."""

    def broken() -> None:
        raise error

    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=str(error), rich_help_panel=panel, context_settings=settings)(broken)
