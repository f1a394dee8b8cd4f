"""felicity fill: the most probable words for a blank."""

from typing import Annotated

import typer

from felicity.cli.model_options import ModelOptions, takes_groups
from felicity.cli.options import Bos, Casing, Json, ModelName, PolicyFields, Quiet, build_policy
from felicity.cli.terminal import err, out, print_json, print_rows
from felicity.core.wording import decimal


@takes_groups
def fill(
    frames: Annotated[list[str], typer.Argument(metavar="FRAME...", help="A text with a blank: ___")],
    model: ModelName = "smollm2",
    k: Annotated[int, typer.Option("-k", help="How many words to show.")] = 10,
    word: Annotated[
        list[str] | None,
        typer.Option("--word", "-w", help="Score this word in the blank instead; repeatable."),
    ] = None,
    bos: Bos = None,
    casing: Casing = None,
    policy: PolicyFields = None,
    *,
    opening: ModelOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the most probable words for a blank, or score your own words in it.

    A left-to-right (causal) model needs the blank at the end; punctuation after it is
    ignored. The words shown are single tokens; a word given with -w may have any number of tokens.

    \b
    Examples:
      felicity fill "A robin is a ___."
      felicity fill "A robin is a ___." -w bird -w tree -w woodpecker
      felicity fill "The ___ is an animal." -m bert-base-uncased -k 20 --json
    """
    from felicity.api import fill as fill_frames

    settings = build_policy(None, bos=bos, casing=casing, fields=policy)
    lm = opening.open(model, settings, quiet=quiet or json, fields=policy)
    table = fill_frames(frames, lm, k=k, words=word or ())
    if json:
        print_json(table.to_dicts())
        return
    if lm.info.kind == "left-to-right" and not quiet and any(not frame.endswith("_") for frame in frames):
        err.print("The text after the blank is ignored.")
    for frame, part in table.group_by("frame", maintain_order=True):
        out.print(f"\n[bold]{_escape(str(frame[0]))}[/]", soft_wrap=True)
        rows = [
            {name: value for name, value in row.items() if name not in ("frame", "dropped")}
            | {"logprob": decimal(row["logprob"], 3)}
            for row in part.sort("logprob", descending=True).iter_rows(named=True)
        ]
        for row in rows:
            if "tokens" in row:
                row["tokens"] = " ".join(row["tokens"])
        print_rows(rows, right=("rank", "logprob"))


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
