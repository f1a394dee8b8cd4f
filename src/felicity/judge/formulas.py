"""SyntaxGym's predictions: formulas over region surprisals, true or false of an item, and by how much."""

from collections.abc import Mapping

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.formulas import ALL_REGIONS, Number, Operation, Part, Region, list_regions, parse_formula
from felicity.core.schemas import JUDGEMENTS

MEASURE = "surprisal_bits"
# How near two surprisals must be to count as equal, as in SyntaxGym's own evaluation.
RELATIVE = 1e-5
ABSOLUTE = 1e-3

# Surprisal by condition and region; `*` is the sum over a condition's regions.
Surprisals = Mapping[tuple[str, str], float]


def find_margin(part: Part, surprisals: Surprisals) -> float:
    """How far a formula is from turning: above zero it holds.

    A comparison's margin is the difference in the direction it claims (for `=`, the tolerance less the
    distance), a conjunction's the smaller, a disjunction's the larger of its parts'.

    Raises BadInput where a region is missing.

    >>> find_margin(parse_formula("(1;%a%) + 1 < (1;%b%)"), {("a", "1"): 2.0, ("b", "1"): 5.0})
    2.0
    """
    if isinstance(part, Number):
        return part.value
    if isinstance(part, Region):
        if (part.condition, part.region) not in surprisals:
            raise BadInput(
                f"There is no surprisal for region '{part.region}' of condition '{part.condition}'."
            )
        return surprisals[part.condition, part.region]
    left, right = find_margin(part.left, surprisals), find_margin(part.right, surprisals)
    return _combine(part, left, right)


def _combine(part: Operation, left: float, right: float) -> float:
    if part.mark == "+":
        return left + right
    if part.mark in ("-", ">"):
        return left - right
    if part.mark == "<":
        return right - left
    if part.mark == "=":
        return ABSOLUTE + RELATIVE * abs(right) - abs(left - right)
    return min(left, right) if part.mark == "&" else max(left, right)


def holds(part: Part, surprisals: Surprisals) -> bool:
    """Whether a formula is true; where a comparison is exactly level it is not, save for `=`."""
    if isinstance(part, Operation) and part.mark in "&|":
        sides = holds(part.left, surprisals), holds(part.right, surprisals)
        return all(sides) if part.mark == "&" else any(sides)
    margin = find_margin(part, surprisals)
    return margin >= 0 if isinstance(part, Operation) and part.mark == "=" else margin > 0


def judge_formulas(
    items: pl.DataFrame, regions: pl.DataFrame, *, noise_bits: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgements of items (all predictions of the suite hold) and of every prediction by itself.

    `items` have the column `predictions`, `regions` is the table REGIONS. The rule of a prediction is
    its suite and number. A judgement is stable when no noise in the regions it reads could turn it.
    """
    labels = items.select("item", "suite", "phenomenon", "predictions").unique("item", maintain_order=True)
    known = _surprisals(regions)
    formulas = {text: parse_formula(text) for text in labels["predictions"].explode().unique().to_list()}
    whole, single = [], []
    for item, suite, phenomenon, texts in labels.iter_rows():
        shared = {"item": item, "suite": suite, "phenomenon": phenomenon, "measure": MEASURE}
        results = []
        for number, text in enumerate(texts, start=1):
            part = formulas[text]
            margin = find_margin(part, known.get(item, {}))
            noise = noise_bits * sum(1 for _ in list_regions(part))
            verdict = {
                "passed": float(holds(part, known[item])),
                "margin": margin,
                "stable": abs(margin) > noise,
            }
            results.append(verdict)
            single.append(shared | {"rule": f"{suite}/{number}"} | verdict)
        worst = min(results, key=lambda verdict: (verdict["passed"], verdict["margin"]))
        whole.append(shared | {"rule": "formula"} | worst)
    return pl.DataFrame(whole, schema=JUDGEMENTS), pl.DataFrame(single, schema=JUDGEMENTS)


def _surprisals(regions: pl.DataFrame) -> dict[str, dict[tuple[str, str], float]]:
    known: dict[str, dict[tuple[str, str], float]] = {}
    rows = regions.select("item", "condition", "region", "name", "surprisal_bits").iter_rows()
    for item, condition, region, name, value in rows:
        of = known.setdefault(item, {})
        of[condition, name] = of[condition, region] = value
        of[condition, ALL_REGIONS] = of.get((condition, ALL_REGIONS), 0.0) + value
    return known
