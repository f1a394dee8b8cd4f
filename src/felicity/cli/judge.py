"""felicity judge: two sentences, token by token."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.groups import takes_groups
from felicity.cli.opening import ModelOptions, PolicyOptions
from felicity.cli.options import Json, ModelName
from felicity.cli.terminal import out, print_json

if TYPE_CHECKING:
    from felicity.core.engine import EngineInfo
    from felicity.run.model import Model

BAR_WIDTH = 32
VISIBLE = str.maketrans({"\n": "↵", "\t": "⇥", "\r": "␍"})


@takes_groups
def judge(
    good: Annotated[str, typer.Argument(metavar="A", help="A sentence.")],
    bad: Annotated[str, typer.Argument(metavar="B", help="The sentence to hold against it.")],
    model: ModelName = "smollm2",
    context: Annotated[str | None, typer.Option(help="Text that stands before both; not scored.")] = None,
    *,
    scoring: PolicyOptions,
    opening: ModelOptions,
    json: Json = False,
) -> None:
    """Say which of two sentences a model finds more acceptable, and what each token cost.

    The score is the log-probability of the sentence (lp), the sum over its tokens. The margin is lp(A)
    minus lp(B): above zero the model prefers A.

    \b
    Examples:
      felicity judge "The cats annoy Tim." "The cats annoys Tim."
      felicity judge "He left." "Him left." --context "Anna stayed." --json
      felicity judge "No cat ever purrs." "A cat ever purrs." -m gpt2 --compat minicons
    """
    from felicity.core.units import to_bits

    lm = opening.open(model, scoring.build(), quiet=json, fields=scoring.policy)
    rows, sums = _score(lm, [good, bad], context)
    if abs(sums[0] - sums[1]) <= 2 * lm.info.noise and lm.exact is not lm:
        lm = lm.exact
        rows, sums = _score(lm, [good, bad], context)
    margin = sums[0] - sums[1]
    verdict = "tie" if margin == 0 else "A" if margin > 0 else "B"
    stable = abs(margin) > 2 * lm.info.noise
    result = {
        "verdict": verdict,
        "margin_nats": margin,
        "margin_bits": to_bits(margin),
        "stable": stable,
        "model": lm.info.name,
        "dtype": lm.info.dtype,
        "policy": lm.info.policy,
        "context": context,
        "sentences": [row | {"lp": lp} for row, lp in zip(rows, sums, strict=True)],
    }
    if json:
        print_json(result)
    else:
        _print_result(result, lm.info)


def _score(lm: "Model", texts: list[str], context: str | None) -> tuple[list[dict[str, Any]], list[float]]:
    rows = lm.tokens(texts, context=context).to_dicts()
    return rows, [sum(value for value in row["logprob"] if value is not None) for row in rows]


def _print_result(result: dict[str, Any], info: "EngineInfo") -> None:
    worst = min(value for row in result["sentences"] for value in row["logprob"] if value is not None)
    for label, row in zip("AB", result["sentences"], strict=True):
        out.print(f"\n[bold]{label}[/]  lp {row['lp']:.3f} nats")
        _print_bars(row, worst)
    margin = f"margin {result['margin_nats']:+.3f} nats ({result['margin_bits']:+.3f} bits)"
    verdict = result["verdict"]
    say = "The two are equally acceptable" if verdict == "tie" else f"[bold]{verdict}[/] is more acceptable"
    doubt = "" if result["stable"] else ", within numerical noise"
    out.print(f"\n{say} to {info.name}: {margin}{doubt}.", soft_wrap=True)
    if any(value is None for row in result["sentences"] for value in row["logprob"]):
        out.print(
            "A first token has nothing before it and was left out of the sum (--bos gives it a begin token)."
        )


def _print_bars(row: dict[str, Any], worst: float) -> None:
    from rich.markup import escape
    from rich.table import Table

    from felicity.core.units import to_bits

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right")
    table.add_column()
    for token, start, end, value in zip(row["tokens"], row["start"], row["end"], row["logprob"], strict=True):
        piece = (row["text"][start:end] or token).translate(VISIBLE)
        if value is None:
            table.add_row(escape(piece), "unscored", "")
            continue
        bits = to_bits(-value)
        cells = round(BAR_WIDTH * value / worst) if worst else 0
        colour = "red" if bits > 10 else "yellow" if bits > 5 else "green"
        table.add_row(escape(piece), f"{bits:.2f} bits", f"[{colour}]{'█' * cells}[/]")
    out.print(table)
