"""felicity cache: the scores kept for later runs."""

from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows
from felicity.core.wording import decimal

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List or clear the cached scores.")
ModelFilter = Annotated[str | None, typer.Option("--model", "-m", help="Only scores of this model.")]


@app.command("ls")
def list_scores(model: ModelFilter = None, json: Json = False) -> None:
    """List the models whose scores are cached, one row per way of scoring.

    \b
    Examples:
      felicity cache ls
      felicity cache ls -m smollm2 --json
    """
    from felicity.run import list_cache

    rows = list_cache(model).to_dicts()
    if json:
        print_json(rows)
        return
    if not rows:
        out.print("No scores are cached.")
        return
    shown = [
        {name: decimal(value, 1) if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]
    print_rows([{k: v for k, v in row.items() if k != "path"} for row in shown], right=("texts", "frames"))
    out.print(f"\n{decimal(sum(row['megabytes'] for row in rows), 1)} MB in all.")


@app.command()
def clear(
    model: ModelFilter = None,
    everything: Annotated[bool, typer.Option("--all", help="Clear the scores of every model.")] = False,
    json: Json = False,
) -> None:
    """Remove cached scores; runs keep theirs, and later runs score again.

    \b
    Examples:
      felicity cache clear -m smollm2
      felicity cache clear --all
    """
    from felicity.core.errors import BadInput
    from felicity.run import clear_cache

    if (model is None) == (not everything):
        raise BadInput("Name one model with -m, or clear everything with --all.")
    removed = clear_cache(model)
    if json:
        print_json(removed.to_dicts())
        return
    out.print(f"Removed {len(removed)} files with {removed['texts'].sum():,} scored texts.")
