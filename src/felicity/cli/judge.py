"""felicity judge: compare two sentences, token by token."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.model_options import ModelOptions, PolicyOptions, takes_groups
from felicity.cli.options import Json, ModelName, Unit
from felicity.cli.terminal import err, out, print_json
from felicity.core.regions import remove_bars
from felicity.core.wording import decimal, signed

if TYPE_CHECKING:
    from felicity.api import Verdict

BAR_WIDTH = 32
VISIBLE = str.maketrans({"\n": "↵", "\t": "⇥", "\r": "␍"})


@takes_groups
def judge(
    good: Annotated[str, typer.Argument(metavar="A", help="A sentence.")],
    bad: Annotated[str, typer.Argument(metavar="B", help="The sentence to compare it with.")],
    model: ModelName = "smollm2",
    context: Annotated[str | None, typer.Option(help="Text before both; it is not scored.")] = None,
    unit: Unit = "nats",
    *,
    scoring: PolicyOptions,
    opening: ModelOptions,
    json: Json = False,
) -> None:
    """Show which of two sentences a model finds more acceptable, and the score of each token.

    The score is the log-probability of the sentence (lp), the sum over its tokens. The margin is lp(A)
    minus lp(B): above zero the model prefers A.

    \b
    Examples:
      felicity judge "The cats annoy Tim." "The cats annoys Tim."
      felicity judge "He left." "Him left." --context "Anna stayed." --json
      felicity judge "No cat ever purrs." "A cat ever purrs." -m gpt2 --compat minicons
    """
    from felicity.api import judge as judge_pair

    if remove_bars([good, bad])[1] and not json:
        err.print("Bars between regions were taken out; `felicity surprisal --by region` scores regions.")
    lm = opening.open(model, scoring.build(), quiet=json, fields=scoring.policy)
    result = judge_pair(good, bad, lm, context=context)
    if json:
        print_json(result.as_dict())
    else:
        _print_result(result, unit)


def _print_result(result: "Verdict", unit: str) -> None:
    from felicity.core.units import convert_nats

    scored = [value for row in result.sentences for value in row["logprob"] if value is not None]
    worst = min(scored, default=0.0)
    for label, row in zip("AB", result.sentences, strict=True):
        out.print(f"\n[bold]{label}[/]  lp {decimal(convert_nats(row['lp'], unit), 3)} {unit}")
        _print_bars(row, worst, unit)
    margin = f"margin {signed(convert_nats(result.margin_nats, unit), 3)} {unit}"
    out.print(f"\n{result.summary()}: {margin}.", soft_wrap=True, markup=False)
    if result.same_tokens:
        out.print("Both sentences are the same tokens to this model.")
    unknown = sorted({word for words in result.unknown for word in words})
    if unknown:
        out.print(f"Words that the model does not know: {', '.join(unknown)}.", soft_wrap=True, markup=False)
    if any(value is None for row in result.sentences for value in row["logprob"]):
        out.print(
            "A first token with nothing before it is left out of the sum (add a begin token with --bos)."
        )


def _print_bars(row: dict[str, Any], worst: float, unit: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    from felicity.api import UNKNOWN
    from felicity.core.units import convert_nats, to_bits

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right")
    table.add_column()
    for token, start, end, value in zip(row["tokens"], row["start"], row["end"], row["logprob"], strict=True):
        piece = (row["text"][start:end] or token).translate(VISIBLE)
        if token in UNKNOWN and piece != token:
            piece = f"{piece} ({token})"
        if value is None:
            table.add_row(escape(piece), "unscored", "")
            continue
        cells = round(BAR_WIDTH * value / worst) if worst else 0
        bits = to_bits(-value)
        colour = "red" if bits > 10 else "yellow" if bits > 5 else "green"
        table.add_row(
            escape(piece), f"{decimal(convert_nats(-value, unit))} {unit}", f"[{colour}]{'█' * cells}[/]"
        )
    out.print(table)
