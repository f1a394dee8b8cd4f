"""felicity judge: compare two sentences, token by token."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.model_options import ModelOptions, PolicyOptions, takes_groups
from felicity.cli.options import Json, ModelName, Unit
from felicity.cli.terminal import err, out, print_json
from felicity.core.regions import remove_bars

if TYPE_CHECKING:
    from felicity.core.engine import EngineInfo
    from felicity.run import Model

BAR_WIDTH = 32
UNKNOWN = ("<unk>", "[UNK]", "<UNK>")
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
    from felicity.core.units import to_bits

    (good, bad), barred = remove_bars([good, bad])
    if barred and not json:
        err.print("Bars between regions were taken out; `felicity surprisal --by region` scores regions.")
    lm = opening.open(model, scoring.build(), quiet=json, fields=scoring.policy)
    rows, sums = _score(lm, [good, bad], context)
    if abs(sums[0] - sums[1]) <= 2 * lm.info.noise and lm.exact is not lm:
        lm = lm.exact
        rows, sums = _score(lm, [good, bad], context)
    # The same tokens are one sentence to the model, whatever their characters.
    same = rows[0]["tokens"] == rows[1]["tokens"]
    margin = 0.0 if same else sums[0] - sums[1]
    verdict = "tie" if margin == 0 else "A" if margin > 0 else "B"
    stable = abs(margin) > sum(_find_errors(lm, [good, bad], context, margin))
    result = {
        "verdict": verdict,
        "margin_nats": margin,
        "margin_bits": to_bits(margin),
        "stable": stable,
        "same_tokens": same,
        "unknown": [find_unknown(row) for row in rows],
        "model": lm.info.name,
        "dtype": lm.info.dtype,
        "policy": lm.info.policy,
        "context": context,
        "sentences": [row | {"lp": lp} for row, lp in zip(rows, sums, strict=True)],
    }
    if json:
        print_json(result)
    else:
        _print_result(result, lm.info, unit)


def _score(lm: "Model", texts: list[str], context: str | None) -> tuple[list[dict[str, Any]], list[float]]:
    rows = lm.tokens(texts, context=context).to_dicts()
    return rows, [sum(value for value in row["logprob"] if value is not None) for row in rows]


def _find_errors(lm: "Model", texts: list[str], context: str | None, margin: float) -> list[float]:
    """The possible numerical error of each sum; measured if the margin is close."""
    from felicity.run import build_prompts

    bound = lm.possible_error
    if abs(margin) > 2 * bound:
        return [bound, bound]
    return list(lm.measure_errors(build_prompts(texts, context)).values()) or [bound, bound]


def find_unknown(row: dict[str, Any]) -> list[str]:
    """The words for which the tokenizer has no token."""
    pieces = zip(row["tokens"], row["start"], row["end"], strict=True)
    return [row["text"][start:end] for token, start, end in pieces if token in UNKNOWN and end > start]


def _print_result(result: dict[str, Any], info: "EngineInfo", unit: str) -> None:
    from felicity.core.units import convert

    scored = [value for row in result["sentences"] for value in row["logprob"] if value is not None]
    worst = min(scored, default=0.0)
    for label, row in zip("AB", result["sentences"], strict=True):
        out.print(f"\n[bold]{label}[/]  lp {convert(row['lp'], unit):.3f} {unit}")
        _print_bars(row, worst, unit)
    verdict = result["verdict"]
    margin = f"margin {convert(result['margin_nats'], unit):+.3f} {unit}"
    if verdict == "tie":
        say = f"The two are equally acceptable to {info.name}"
    elif result["stable"]:
        say = f"[bold]{verdict}[/] is more acceptable to {info.name}"
    else:
        say = f"The two do not differ by more than numerical noise to {info.name}"
    out.print(f"\n{say}: {margin}.", soft_wrap=True)
    if result["same_tokens"]:
        out.print("Both sentences are the same tokens to this model.")
    unknown = sorted({word for words in result["unknown"] for word in words})
    if unknown:
        out.print(f"Words that the model does not know: {', '.join(unknown)}.", soft_wrap=True, markup=False)
    if any(value is None for row in result["sentences"] for value in row["logprob"]):
        out.print(
            "A first token with nothing before it is left out of the sum (add a begin token with --bos)."
        )


def _print_bars(row: dict[str, Any], worst: float, unit: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    from felicity.core.units import convert, to_bits

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
        table.add_row(escape(piece), f"{convert(-value, unit):.2f} {unit}", f"[{colour}]{'█' * cells}[/]")
    out.print(table)
