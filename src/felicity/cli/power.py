"""felicity power: the power of a comparison of two models."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import format_numbers, out, print_json, print_rows


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
        int | None,
        typer.Option("-n", "--items", help="Number of items, of all suites.  [default: the runs']"),
    ] = None,
    suites: Annotated[
        int | None,
        typer.Option(min=1, help="Number of suites; 1: the test over items.  [default: the runs', else 1]"),
    ] = None,
    between: Annotated[
        float | None,
        typer.Option(
            min=0, help="SD of the suites' true differences: 0.1 is 10 points.  [default: the runs']"
        ),
    ] = None,
    test: Annotated[
        str, typer.Option(help="As in `compare`: score; over items also exact or mid (McNemar's).")
    ] = "score",
    goal: Annotated[float, typer.Option(help="The power to plan for.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Significance level of the test.")] = 0.05,
    measure: Annotated[
        str | None, typer.Option(help="For runs: use their judgements by this measure.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the curve to a .svg or .png file.")] = None,
    json: Json = False,
) -> None:
    """Compute the power of a comparison of two models, from two runs or from assumed shares.

    This is the power of the test that `felicity compare` runs: over suites if there are several, simulated
    with suites whose true differences vary as in the runs (or by --between); else over items, where it is
    McNemar's (after Card et al. 2020). Also how far a significant difference would overstate the true one
    (Type M), how often it would have the wrong sign (Type S), the suites or items needed for the goal, and
    the smallest difference that can be shown.

    \b
    Examples:
      felicity power runs/blimp-gpt2 runs/blimp-smollm2
      felicity power runs/blimp-gpt2 runs/blimp-smollm2 --suites 12 -n 1200
      felicity power --only-first 0.11 --only-second 0.08 -n 1500 --figure power.svg
      felicity power --only-first 0.11 --only-second 0.08 -n 600 --suites 20 --between 0.05
    """
    from felicity.api import power as analyse_power
    from felicity.report.charts import write_figure

    found = analyse_power(
        *(runs or []),
        only_first=only_first,
        only_second=only_second,
        items=items,
        suites=suites,
        between=between,
        test=test,
        goal=goal,
        alpha=alpha,
        measure=measure,
    )
    if figure:
        write_figure(found.figure(), figure)
    if json:
        print_json(found.as_dict())
        return
    if found.note:
        out.print(found.note, soft_wrap=True, markup=False)
    print_rows(format_numbers(found.curve))
    out.print("\n" + found.summary(), soft_wrap=True, markup=False)
