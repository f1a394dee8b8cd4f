"""felicity power: the power of a comparison of two models."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    import polars as pl

    from felicity.stats import Power

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
    from felicity.stats import describe_power

    plan = read_plan(runs or [], only_first, only_second, items, suites, between, measure)
    told, found, curve = (
        plan_suites(plan, goal, alpha, test) if plan.suites > 1 else plan_items(plan, goal, alpha, test)
    )
    if figure:
        _draw(curve, told, figure)
    if json:
        print_json(told | {"curve": _nulls(curve)})
        return
    if plan.note:
        out.print(plan.note, soft_wrap=True, markup=False)
    print_rows(
        [{k: v if isinstance(v, int) else f"{v:.3f}" for k, v in row.items()} for row in curve.to_dicts()]
    )
    out.print("\n" + describe_power(found, test=told["test"]), soft_wrap=True, markup=False)
    out.print(_describe_goal(told), soft_wrap=True)


def _describe_goal(told: dict[str, Any]) -> str:
    least = told["smallest_difference"]
    shows = "show no difference" if least is None else f"show differences from {100 * least:.2f} points on"
    these = f"{told['n']:,} items"
    if told["suites"] == 1:
        needed = f"{told['items_needed']:,} items"
        end = "The test is over items: it speaks of further items of these suites, not of other suites."
    else:
        each = told["n"] / told["suites"]
        needed = (
            f"{told['suites_needed']:,} suites" if told["suites_needed"] else "more suites than can be had"
        )
        needed += f" of {each:.3g} items each"
        these += f" of {told['suites']:,} suites"
        end = "More items in the same suites add little where suites differ; more suites do."
    return f"A power of {told['goal']:g} needs {needed}; {these} {shows} with that power. {end}"


def plan_items(
    plan: "Plan", goal: float, alpha: float, test: str
) -> "tuple[dict[str, Any], Power, pl.DataFrame]":
    """Power over items, the items needed, and the curve over numbers of items."""
    from felicity.core.errors import NotPossible, UnknownName
    from felicity.stats import items_needed, power_curve, power_mcnemar, smallest_difference

    if test not in ("score", "exact", "mid"):
        raise UnknownName("test", test, ("score", "exact", "mid"))
    options: dict[str, Any] = {"alpha": alpha, "test": test}
    found = power_mcnemar(plan.first, plan.second, plan.n, **options)
    told = found.as_dict() | {"test": test, "goal": goal, "ties_left_out": plan.left_out}
    told["items_needed"] = items_needed(plan.first, plan.second, power=goal, **options)
    try:
        least = smallest_difference(plan.n, plan.first + plan.second, power=goal, **options).difference
    except NotPossible:
        least = None
    told["smallest_difference"] = least
    sizes = _steps(max(plan.n, told["items_needed"]))
    return told, found, power_curve(plan.first, plan.second, sizes, **options)


def plan_suites(
    plan: "Plan", goal: float, alpha: float, test: str
) -> "tuple[dict[str, Any], Power, pl.DataFrame]":
    """Power over suites, the suites needed, and the curve over numbers of suites of the same size."""
    import polars as pl

    from felicity.core.errors import BadInput, NotPossible
    from felicity.stats import power_of_suites, smallest_difference_of_suites, suites_needed

    if test != "score":
        raise BadInput(
            f"Over suites the test is 'score', not '{test}'; for a test over items add --suites 1."
        )
    options: dict[str, Any] = {"between": plan.between, "alpha": alpha}
    found = power_of_suites(plan.first, plan.second, plan.n, plan.suites, **options)
    size = plan.n / plan.suites
    told = found.as_dict() | {"test": test, "goal": goal, "ties_left_out": plan.left_out}
    try:
        told["suites_needed"] = suites_needed(plan.first, plan.second, size, power=goal, **options)
    except NotPossible:
        told["suites_needed"] = None
    try:
        discordant = plan.first + plan.second
        least = smallest_difference_of_suites(plan.n, plan.suites, discordant, power=goal, **options)
        told["smallest_difference"] = least.difference
    except NotPossible:
        told["smallest_difference"] = None
    points = [
        power_of_suites(plan.first, plan.second, max(count, round(size * count)), count, **options)
        for count in _steps(max(plan.suites, told["suites_needed"] or 0))
    ]
    rows = [
        {"suites": p.suites, "n": p.n, "power": p.power, "type_m": p.type_m, "type_s": p.type_s}
        for p in points
    ]
    return told, found, pl.DataFrame(rows)


def _steps(most: int) -> list[int]:
    top = 1.5 * most
    return sorted({max(2, round(top * (step + 1) / CURVE_POINTS)) for step in range(CURVE_POINTS)})


class Plan(NamedTuple):
    """Shares of items that only one model gets right, the items and suites, and the source.

    between: the SD of the suites' true differences.
    """

    first: float
    second: float
    n: int
    suites: int
    between: float
    note: str = ""
    left_out: int = 0


def read_plan(
    runs: list[Path],
    only_first: float | None,
    only_second: float | None,
    items: int | None,
    suites: int | None,
    between: float | None,
    measure: str | None,
) -> "Plan":
    """What to compute the power of: from two runs, or as assumed."""
    from felicity.core.errors import BadInput
    from felicity.run import read_answers
    from felicity.stats import pair_answers, spread_of_suites

    if not runs:
        if only_first is None or only_second is None or items is None:
            raise BadInput("Give two runs, or all of --only-first, --only-second and --items.")
        if (suites or 1) > 1 and between is None:
            raise BadInput(
                "Over several suites, power depends on how much the true difference varies between them; "
                "give --between (0.1 is an SD of 10 points)."
            )
        return Plan(only_first, only_second, items, suites or 1, between or 0.0)
    if len(runs) != 2 or only_first is not None or only_second is not None:
        raise BadInput("Give two runs, or the shares --only-first and --only-second, not both.")
    answers = read_answers(runs, measure=measure)
    pairs = pair_answers(*answers.frames.values(), cluster="suite", ties="drop")
    left_out = next(iter(answers.frames.values())).height - pairs.n
    tied = f"; {left_out:,} tied items are left out, since power needs right or wrong"
    note = f"Judged by {answers.measure}{tied if left_out else ''}."
    own = 0 if pairs.clusters is None else int(pairs.clusters.max()) + 1
    if between is None:
        between = spread_of_suites(pairs) if own > 1 else 0.0
    one, other = pairs.discordant
    # As many items per suite as the runs have, unless their number is given too; over items, all of them.
    n = items or (pairs.n if suites in (None, 1) else round(pairs.n * suites / own))
    return Plan(one / pairs.n, other / pairs.n, n, suites or own, between, note, left_out)


def _nulls(curve: "pl.DataFrame") -> list[dict[str, Any]]:
    return [
        {key: None if value != value else value for key, value in row.items()} for row in curve.to_dicts()
    ]


def _draw(curve: "pl.DataFrame", told: dict[str, Any], figure: Path) -> None:
    from felicity.report.charts import chart_curve, write_figure

    unit = "suites" if "suites" in curve.columns else "n"
    points = list(curve.select(unit, "power").iter_rows())
    shares = (
        f"{told['only_first']:.3g} against {told['only_second']:.3g} right alone, alpha {told['alpha']:g}"
    )
    spec = chart_curve(
        points,
        title="Power",
        subtitle=shares,
        x_title="suites" if unit == "suites" else "items",
        y_title=f"power ({told['test']} test)",
        goal=told["goal"],
    )
    write_figure(spec, figure)
