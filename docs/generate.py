"""Write docs/reference/cli.md from the commands' own --help, or say where it is out of date (--check)."""

import sys
from pathlib import Path

from felicity.cli.app import whole_program

PAGE = Path(__file__).parent / "reference" / "cli.md"
WIDTH = 100


def main() -> int:
    """Write the page, or compare it."""
    text = render()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is out of date; run `make docs` and commit it.\n")
    return 1


def render() -> str:
    """The whole page."""
    parts = ["# Command line reference\n\nWritten by `make docs` from the commands themselves.\n"]
    parts += [f"## {name}\n\n```\n{text}\n```\n" for name, text in walk(whole_program(), "felicity")]
    return "\n".join(parts)


def walk(command, name, parent=None):
    """Every command with its help, groups before their commands."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=WIDTH)
    context.max_content_width = WIDTH
    yield name, command.get_help(context).rstrip()
    for child in getattr(command, "commands", {}).values():
        for inner, text in walk(child, child.name, context):
            yield f"{name} {inner}", text


if __name__ == "__main__":
    sys.exit(main())
