"""felicity measures: what can be computed from stored tokens."""

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import print_json, print_rows

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List the acceptability measures.")


@app.callback()
def measures() -> None:
    """List the acceptability measures."""


@app.command("ls")
def ls(json: Json = False) -> None:
    """List the measures, with what each takes out.

    \b
    Examples:
      felicity measures ls
    """
    from felicity.measures.sentence import MEASURES, UNIGRAM_MEASURES

    rows = [
        {
            "name": name,
            "needs": "--unigram" if name in UNIGRAM_MEASURES else "",
            "meaning": (measure.__doc__ or "").strip().split("\n")[0],
        }
        for name, measure in MEASURES.items()
    ]
    print_json(rows) if json else print_rows(rows)
