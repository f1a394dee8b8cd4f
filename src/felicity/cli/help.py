"""Help in sections: commands by purpose, rare options under their own headings."""

from typing import Any

from typer import Typer
from typer.core import TyperCommand, TyperGroup

OPTIONS = "Options"
COMMANDS = "Commands"
SCORE, STUDIES, STATISTICS = "Score sentences", "Studies", "Statistics"
STIMULI, PEOPLE, RESULTS, SETUP = "Stimuli", "People", "Results", "Models and set-up"
# The sections of `felicity --help`, in this order; those of outside packages follow.
SECTIONS = (SCORE, STUDIES, STATISTICS, STIMULI, PEOPLE, RESULTS, SETUP)


def _write_sections(formatter: Any, sections: dict[str, list[tuple[str, str]]], *, first: str) -> None:
    """One definition list per heading, `first` at the top, the others in order of occurrence."""
    for heading in [first, *(name for name in sections if name != first)]:
        if sections.get(heading):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def _collect_options(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            panel = getattr(parameter, "rich_help_panel", None) or OPTIONS
            name = "Arguments" if parameter.param_type_name == "argument" else panel
            sections.setdefault(name, []).append(record)
    return sections


class SectionedCommand(TyperCommand):
    """A command whose options are listed under the headings they were given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then everyday options, then the rest by heading."""
        sections = _collect_options(self, ctx)
        arguments = sections.pop("Arguments", [])
        _write_sections(formatter, {"Arguments": arguments}, first="Arguments")
        _write_sections(formatter, sections, first=OPTIONS)


def list_in_sections(app: Typer) -> None:
    """Give the help of every command and group of an app its sections."""
    for command in app.registered_commands:
        if command.cls in (None, TyperCommand):
            command.cls = SectionedCommand
    for group in app.registered_groups:
        group.cls = SectionedGroup
        if group.typer_instance is not None:
            list_in_sections(group.typer_instance)


class SectionedGroup(TyperGroup):
    """A group whose commands are listed by purpose, in the order they were added."""

    command_class = SectionedCommand

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The group's own options, then its commands."""
        _write_sections(formatter, _collect_options(self, ctx), first=OPTIONS)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section per heading."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        limit = formatter.width - 6 - max((len(name) for name in self.commands), default=0)
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None) or COMMANDS
            sections.setdefault(heading, []).append((name, command.get_short_help_str(limit)))
        _write_sections(formatter, sections, first=SECTIONS[0])

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """In the order in which they were added."""
        return list(self.commands)
