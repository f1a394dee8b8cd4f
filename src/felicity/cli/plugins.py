"""Commands and studies of outside packages, added to `felicity` when they are needed."""

from collections.abc import Callable, Sequence
from typing import Any

import typer

from felicity.cli.help import STUDIES as STUDIES_PANEL
from felicity.cli.help import list_in_sections
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
# A study is a command that plans requests and hands them to the pipeline; `--help` lists it as one.
STUDIES: Registry[Command] = Registry("study", accept=as_command)
PANELS = {"command": "Commands of other packages", "study": STUDIES_PANEL}


def add_commands(app: typer.Typer, arguments: Sequence[str]) -> None:
    """Add to `app` what the arguments ask for.

    If they name one of felicity's own commands, no package is loaded; if they name another package's, only
    that package is loaded; `--help` loads all of them.
    """
    own = _names(app)
    asked = next((text for text in arguments if not text.startswith("-")), None)
    if asked in own:
        return
    for registry in (COMMANDS, STUDIES):
        for name in registry:
            if name not in own and asked in (None, name):
                _add(app, registry, name)
    list_in_sections(app)


def _names(app: typer.Typer) -> set[str]:
    commands = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    return commands | {str(group.name) for group in app.registered_groups}


def _add(app: typer.Typer, registry: Registry[Command], name: str) -> None:
    panel = PANELS[registry.kind]
    try:
        command = registry[name]
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
