"""SyntaxGym's predictions: formulas over region surprisals, whether they hold for an item and by how much."""

from collections.abc import Mapping
from math import inf, isinf, isnan

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.formulas import (
    ALL_REGIONS,
    Part,
    Region,
    RegionNumber,
    RegionOperation,
    list_regions,
    parse_prediction,
)
from felicity.core.schemas import JUDGEMENTS

SURPRISAL = "surprisal_bits"
# How close two surprisals must be to count as equal, as in SyntaxGym's own evaluation.
RELATIVE = 1e-5
ABSOLUTE = 1e-3

# Surprisal by condition and region; `*` is the sum over a condition's regions.
Surprisals = Mapping[tuple[str, str], float]


def find_margin(part: Part, surprisals: Surprisals) -> float:
    """How far a formula is from changing its value: it holds above zero.

    The margin of a comparison is the difference in the claimed direction (for `=`, the tolerance minus the
    distance), of a conjunction the smaller, of a disjunction the larger of the margins of its parts.

    Two infinite surprisals are equal.

    Raises BadInput if a region is missing or its surprisal is not a number.

    >>> find_margin(parse_prediction("(1;%a%) + 1 < (1;%b%)"), {("a", "1"): 2.0, ("b", "1"): 5.0})
    2.0
    """
    if isinstance(part, RegionNumber):
        return part.value
    if isinstance(part, Region):
        if (part.condition, part.region) not in surprisals:
            raise BadInput(
                f"There is no surprisal for region '{part.region}' of condition '{part.condition}'."
            )
        value = surprisals[part.condition, part.region]
        if isnan(value):
            raise BadInput(
                f"The surprisal of region '{part.region}' of condition '{part.condition}' is not a number."
            )
        return value
    left, right = find_margin(part.left, surprisals), find_margin(part.right, surprisals)
    return _combine(part, left, right)


def _combine(part: RegionOperation, left: float, right: float) -> float:
    if part.mark in ("+", "-"):
        total = left + right if part.mark == "+" else left - right
        if isnan(total):
            raise BadInput("An infinite surprisal is subtracted from another, which does not give a number.")
        return total
    if part.mark in ("<", ">") and left == right:
        return 0.0
    if part.mark == ">":
        return left - right
    if part.mark == "<":
        return right - left
    if part.mark == "=" and (isinf(left) or isinf(right)):
        return inf if left == right else -inf
    if part.mark == "=":
        return ABSOLUTE + RELATIVE * abs(right) - abs(left - right)
    return min(left, right) if part.mark == "&" else max(left, right)


def holds(part: Part, surprisals: Surprisals) -> bool:
    """Whether a formula is true; a comparison of exactly equal values is false, except for `=`."""
    if isinstance(part, RegionOperation) and part.mark in "&|":
        sides = holds(part.left, surprisals), holds(part.right, surprisals)
        return all(sides) if part.mark == "&" else any(sides)
    margin = find_margin(part, surprisals)
    return margin >= 0 if isinstance(part, RegionOperation) and part.mark == "=" else margin > 0


def judge_formulas(
    items: pl.DataFrame, regions: pl.DataFrame, *, noise_bits: Mapping[str, float]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgements of items (all predictions of the suite hold) and of every prediction alone.

    `items` has the column `predictions`, `regions` is the table REGIONS. The rule of a prediction is its
    suite and number. `noise_bits` is the possible error of an item's sentences; a judgement is stable if
    no such error in its regions could change it.

    Raises BadInput naming the item that lacks a surprisal or has one that is not a number.
    """
    labels = items.select("item", "suite", "phenomenon", "predictions").unique("item", maintain_order=True)
    surprisals = _surprisals(regions)
    formulas = {text: parse_prediction(text) for text in labels["predictions"].explode().unique().to_list()}
    whole, single = [], []
    for item, suite, phenomenon, texts in labels.iter_rows():
        shared = {"item": item, "suite": suite, "phenomenon": phenomenon, "measure": SURPRISAL}
        results = []
        for number, text in enumerate(texts, start=1):
            part = formulas[text]
            try:
                margin = find_margin(part, surprisals.get(item, {}))
            except BadInput as error:
                raise BadInput(f"Item '{item}': {error}") from error
            noise = noise_bits.get(item, 0.0) * sum(1 for _ in list_regions(part))
            verdict = {
                "passed": float(holds(part, surprisals[item])),
                "margin": margin,
                "stable": abs(margin) > noise,
            }
            results.append(verdict)
            single.append(shared | {"rule": f"{suite}/{number}"} | verdict)
        worst = min(results, key=lambda verdict: (verdict["passed"], verdict["margin"]))
        whole.append(shared | {"rule": "formula"} | worst)
    return pl.DataFrame(whole, schema=JUDGEMENTS), pl.DataFrame(single, schema=JUDGEMENTS)


def _surprisals(regions: pl.DataFrame) -> dict[str, dict[tuple[str, str], float]]:
    surprisals: dict[str, dict[tuple[str, str], float]] = {}
    columns = regions.select("item", "condition", "region", "name", "surprisal_bits")
    for item, condition, region, _, value in columns.iter_rows():
        of = surprisals.setdefault(item, {})
        of[condition, region] = value
        of[condition, ALL_REGIONS] = of.get((condition, ALL_REGIONS), 0.0) + value
    # A number always means the region of that number, whatever another region is called.
    for item, condition, _, name, value in columns.iter_rows():
        surprisals[item].setdefault((condition, name), value)
    return surprisals
