"""The power of a comparison of two models, from two runs or from assumed shares, for `felicity power`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.wording import decimal, percent
from felicity.report import render_result
from felicity.report.charts import Spec, as_altair, chart_curve
from felicity.run import Run, read_run_judgements
from felicity.stats import (
    Power,
    describe_power,
    items_needed,
    pair_answers,
    power_curve,
    power_mcnemar,
    power_of_suites,
    smallest_difference,
    smallest_difference_of_suites,
    spread_of_suites,
    suites_needed,
)

CURVE_POINTS = 12
ITEM_TESTS = ("score", "exact", "mid")


@dataclass(frozen=True, kw_only=True)
class PowerAnalysis:
    """The power of a comparison, what its goal needs, and the curve over numbers of items or suites.

    needed: the suites or items that reach the goal, None if no number does. smallest_difference: what can be
    shown with the goal's power, as a share; None if nothing. note: where the shares are from.
    """

    power: Power
    curve: pl.DataFrame
    test: str
    goal: float
    needed: int | None
    smallest_difference: float | None
    note: str = ""
    ties_left_out: int = 0

    def __repr__(self) -> str:
        return f"PowerAnalysis({decimal(self.power.power, 3)} with {self.power.n:,} items)"

    def _repr_html_(self) -> str:
        return render_result(
            f"Power {decimal(self.power.power, 3)}",
            self.note,
            self.summary(),
            table=self.curve,
            figure=self.figure(),
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values; NaN as null."""
        needed = "suites_needed" if self.power.suites > 1 else "items_needed"
        kept = {name: getattr(self, name) for name in ("test", "goal", "ties_left_out")}
        return (
            self.power.as_dict()
            | kept
            | {needed: self.needed, "smallest_difference": self.smallest_difference}
            | {"curve": self.curve.fill_nan(None).to_dicts()}
        )

    def summary(self) -> str:
        """The power in words, and what the goal needs."""
        found = describe_power(self.power, test=self.test)  # type: ignore[arg-type]
        return f"{found}\n{self._describe_goal()}"

    def _describe_goal(self) -> str:
        least, n, suites = self.smallest_difference, self.power.n, self.power.suites
        shows = (
            "show no difference" if least is None else f"show differences from {percent(least, 2)} points on"
        )
        these = f"{n:,} items"
        if suites == 1:
            needed = f"{self.needed:,} items"
            end = "The test is over items: it speaks of further items of these suites, not of other suites."
        else:
            needed = f"{self.needed:,} suites" if self.needed else "more suites than can be had"
            needed += f" of {n / suites:.3g} items each"
            these += f" of {suites:,} suites"
            end = "More items in the same suites add little where suites differ; more suites do."
        return f"A power of {self.goal:g} needs {needed}; {these} {shows} with that power. {end}"

    def figure(self) -> Spec:
        """The curve, as a Vega-Lite specification."""
        unit = "suites" if "suites" in self.curve.columns else "n"
        first, second = self.power.only_first, self.power.only_second
        return chart_curve(
            list(self.curve.select(unit, "power").iter_rows()),
            title="Power",
            subtitle=f"{first:.3g} against {second:.3g} right alone, alpha {self.power.alpha:g}",
            x_title="suites" if unit == "suites" else "items",
            y_title=f"power ({self.test} test)",
            goal=self.goal,
        )

    def plot(self) -> Any:
        """The curve over numbers of items or suites, as an altair chart."""
        return as_altair(self.figure())


class Shares(NamedTuple):
    """Shares of items that only one model gets right, the items and suites, and where they are from.

    between: the SD of the suites' true differences. left_out: tied items.
    """

    first: float
    second: float
    n: int
    suites: int
    between: float
    note: str = ""
    left_out: int = 0


def power(
    *runs: str | Path | Run,
    only_first: float | None = None,
    only_second: float | None = None,
    items: int | None = None,
    suites: int | None = None,
    between: float | None = None,
    test: str = "score",
    goal: float = 0.8,
    alpha: float = 0.05,
    measure: str | None = None,
) -> PowerAnalysis:
    """How probably a comparison of two models finds a difference, and what a given power needs.

    runs: two runs of the same items, or none and the shares of items that `only_first` and `only_second` get
    right. items, suites: how many, by default the runs'. between: the SD of the suites' true differences
    (0.1 is 10 points). test: as in `compare`. goal: the power to plan for.

    Raises BadInput if neither runs nor shares are given, or both.

    >>> import felicity as fe
    >>> found = fe.power(only_first=0.11, only_second=0.08, items=1500)
    >>> round(found.power.power, 2), found.needed
    (0.76, 1649)
    """
    shares = _read_shares(runs, only_first, only_second, items, suites, between, measure)
    return (_plan_suites if shares.suites > 1 else _plan_items)(shares, goal, alpha, test)


def _plan_items(shares: Shares, goal: float, alpha: float, test: str) -> PowerAnalysis:
    """Power over items, the items needed, and the curve over numbers of items."""
    if test not in ITEM_TESTS:
        raise UnknownName("test", test, ITEM_TESTS)
    options: dict[str, Any] = {"alpha": alpha, "test": test}
    needed = items_needed(shares.first, shares.second, power=goal, **options)
    discordant = shares.first + shares.second
    return PowerAnalysis(
        power=power_mcnemar(shares.first, shares.second, shares.n, **options),
        curve=power_curve(shares.first, shares.second, _steps(max(shares.n, needed)), **options),
        test=test,
        goal=goal,
        needed=needed,
        smallest_difference=_difference(
            lambda: smallest_difference(shares.n, discordant, power=goal, **options)
        ),
        note=shares.note,
        ties_left_out=shares.left_out,
    )


def _plan_suites(shares: Shares, goal: float, alpha: float, test: str) -> PowerAnalysis:
    """Power over suites, the suites needed, and the curve over numbers of suites of the same size."""
    if test != "score":
        raise BadInput(
            f"Over suites the test is 'score', not '{test}'; for a test over items add --suites 1."
        )
    options: dict[str, Any] = {"between": shares.between, "alpha": alpha}
    size, discordant = shares.n / shares.suites, shares.first + shares.second
    try:
        needed = suites_needed(shares.first, shares.second, size, power=goal, **options)
    except NotPossible:
        needed = None
    points = [
        power_of_suites(shares.first, shares.second, max(count, round(size * count)), count, **options)
        for count in _steps(max(shares.suites, needed or 0))
    ]
    rows = [{name: getattr(p, name) for name in ("suites", "n", "power", "type_m", "type_s")} for p in points]
    return PowerAnalysis(
        power=power_of_suites(shares.first, shares.second, shares.n, shares.suites, **options),
        curve=pl.DataFrame(rows),
        test=test,
        goal=goal,
        needed=needed,
        smallest_difference=_difference(
            lambda: smallest_difference_of_suites(shares.n, shares.suites, discordant, power=goal, **options)
        ),
        note=shares.note,
        ties_left_out=shares.left_out,
    )


def _difference(find: Callable[[], Power]) -> float | None:
    try:
        return find().difference
    except NotPossible:
        return None


def _steps(most: int) -> list[int]:
    top = 1.5 * most
    return sorted({max(2, round(top * (step + 1) / CURVE_POINTS)) for step in range(CURVE_POINTS)})


def _read_shares(
    runs: tuple[str | Path | Run, ...],
    only_first: float | None,
    only_second: float | None,
    items: int | None,
    suites: int | None,
    between: float | None,
    measure: str | None,
) -> Shares:
    """What to compute the power of: from two runs, or as assumed."""
    if not runs:
        if only_first is None or only_second is None or items is None:
            raise BadInput("Give two runs, or all of --only-first, --only-second and --items.")
        if (suites or 1) > 1 and between is None:
            raise BadInput(
                "Over several suites, power depends on how much the true difference varies between them; "
                "give --between (0.1 is an SD of 10 points)."
            )
        return Shares(only_first, only_second, items, suites or 1, between or 0.0)
    if len(runs) != 2 or only_first is not None or only_second is not None:
        raise BadInput("Give two runs, or the shares --only-first and --only-second, not both.")
    answers = read_run_judgements(runs, measure=measure)
    answers.refuse_missing()
    pairs = pair_answers(*answers.frames.values(), cluster="suite", ties="drop")
    left_out = next(iter(answers.frames.values())).height - pairs.n
    tied = f"; {left_out:,} tied items are left out, since power needs right or wrong"
    note = f"Judged by {answers.measure}{tied if left_out else ''}."
    measured = 0 if pairs.clusters is None else int(pairs.clusters.max()) + 1
    if between is None:
        between = spread_of_suites(pairs) if measured > 1 else 0.0
    one, other = pairs.discordant
    # As many items per suite as the runs have, unless their number is given too; over items, all of them.
    n = items or (pairs.n if suites in (None, 1) else round(pairs.n * suites / measured))
    return Shares(one / pairs.n, other / pairs.n, n, suites or measured, between, note, left_out)
