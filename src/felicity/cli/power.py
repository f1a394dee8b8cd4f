"""felicity power: the power of a comparison of two models."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    import polars as pl

CURVE_POINTS = 12


def power(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN RUN]", help="Two runs of the same items.")
    ] = None,
    only_first: Annotated[
        float | None, typer.Option(help="Share of items only the first gets right.")
    ] = None,
    only_second: Annotated[
        float | None, typer.Option(help="Share of items only the second gets right.")
    ] = None,
    items: Annotated[
        int | None, typer.Option("-n", "--items", help="Number of items.  [default: the runs']")
    ] = None,
    goal: Annotated[float, typer.Option(help="The power to plan for.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Significance level of the test.")] = 0.05,
    measure: Annotated[
        str | None, typer.Option(help="For runs: use their judgements by this measure.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the curve to a .svg or .png file.")] = None,
    json: Json = False,
) -> None:
    """Compute the power of a comparison of two models, from two runs or from assumed shares.

    This is the power of McNemar's exact test (after Card et al. 2020), which takes items as independent;
    if the items of a suite depend on each other, as `felicity compare` allows for, power is lower.
    Also how far a significant difference would overstate the true one (Type M), how often it would have the
    wrong sign (Type S), the items needed for the goal, and the smallest difference these items can show.

    \b
    Examples:
      felicity power runs/blimp-gpt2 runs/blimp-smollm2
      felicity power --only-first 0.11 --only-second 0.08 -n 1500 --figure power.svg
    """
    from felicity.core.errors import NotPossible
    from felicity.stats import describe_power, items_needed, power_curve, power_mcnemar, smallest_difference

    shares = read_shares(runs or [], only_first, only_second, items, measure)
    first, second, n = shares.first, shares.second, shares.n
    found = power_mcnemar(first, second, n, alpha=alpha)
    told = found.as_dict() | {"goal": goal, "ties_left_out": shares.left_out}
    told["items_needed"] = items_needed(first, second, power=goal, alpha=alpha)
    try:
        told["smallest_difference"] = smallest_difference(
            n, first + second, power=goal, alpha=alpha
        ).difference
    except NotPossible:
        told["smallest_difference"] = None
    top = 1.5 * max(n, told["items_needed"])
    sizes = sorted({max(2, round(top * (step + 1) / CURVE_POINTS)) for step in range(CURVE_POINTS)})
    curve = power_curve(first, second, sizes, alpha=alpha)
    if figure:
        _draw(curve, told, figure)
    if json:
        print_json(told | {"curve": _nulls(curve)})
        return
    if shares.note:
        out.print(shares.note, soft_wrap=True, markup=False)
    print_rows(
        [{k: v if isinstance(v, int) else f"{v:.3f}" for k, v in row.items()} for row in curve.to_dicts()]
    )
    out.print("\n" + describe_power(found), soft_wrap=True, markup=False)
    least = told["smallest_difference"]
    shows = "show no difference" if least is None else f"show differences from {100 * least:.2f} points on"
    out.print(
        f"A power of {goal:g} needs {told['items_needed']:,} items; {n:,} items {shows} with that power.",
        soft_wrap=True,
    )
    out.print(
        "Items are taken as independent; if those of a suite depend on each other, power is lower.",
        soft_wrap=True,
    )


class Shares(NamedTuple):
    """Shares of items that only one model gets right, the number of items, and the source."""

    first: float
    second: float
    n: int
    note: str = ""
    left_out: int = 0


def read_shares(
    runs: list[Path],
    only_first: float | None,
    only_second: float | None,
    items: int | None,
    measure: str | None,
) -> "Shares":
    """Discordant shares and the number of items: from two runs, or as assumed."""
    from felicity.core.errors import BadInput
    from felicity.run import read_answers
    from felicity.stats import pair_answers

    if runs:
        if len(runs) != 2 or only_first is not None or only_second is not None:
            raise BadInput("Give two runs, or the shares --only-first and --only-second, not both.")
        answers = read_answers(runs, measure=measure)
        pairs = pair_answers(*answers.frames.values(), ties="drop")
        left_out = next(iter(answers.frames.values())).height - pairs.n
        tied = f"; {left_out:,} tied items are left out, since McNemar's test needs right or wrong"
        note = f"Judged by {answers.measure}{tied if left_out else ''}."
        one, other = pairs.discordant
        return Shares(one / pairs.n, other / pairs.n, items or pairs.n, note, left_out)
    if only_first is None or only_second is None or items is None:
        raise BadInput("Give two runs, or all of --only-first, --only-second and --items.")
    return Shares(only_first, only_second, items)


def _nulls(curve: "pl.DataFrame") -> list[dict[str, Any]]:
    return [
        {key: None if value != value else value for key, value in row.items()} for row in curve.to_dicts()
    ]


def _draw(curve: "pl.DataFrame", told: dict[str, Any], figure: Path) -> None:
    from felicity.report.charts import chart_curve, write_figure

    points = list(curve.select("n", "power").iter_rows())
    shares = (
        f"{told['only_first']:.3g} against {told['only_second']:.3g} right alone, alpha {told['alpha']:g}"
    )
    spec = chart_curve(
        points,
        title="Power",
        subtitle=shares,
        x_title="items",
        y_title="power of McNemar's exact test",
        goal=told["goal"],
    )
    write_figure(spec, figure)
