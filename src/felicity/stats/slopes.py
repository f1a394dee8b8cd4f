"""Does accuracy change with a difference between the two sentences of a pair, such as their lengths?

The slope of each measure is that of a mixed logistic model,

    passed ~ difference + (1 + difference | suite),

in log-odds per unit of the difference, with a Wald test of slope 0. A measure gives one answer per item, so
that items have no variance of their own there. Between two measures the answers to the same items are
compared: the standard error of the difference of two slopes is the jackknife's, which leaves out each suite
with all its items in turn for both measures. An item intercept in a joint model would not do: where measures
agree on nearly all items its variance has no bound, and the Laplace approximation fails.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl
from scipy.special import stdtr, stdtrit

from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import TEXT, Schema
from felicity.stats.frames import Vector
from felicity.stats.generalized import fit_glm
from felicity.stats.mixed import fit_glmm

# Fewer suites than this do not show how slopes vary between suites; one suite has no suites at all.
LEAST_SUITES = 5
# Groups of items that the jackknife leaves out if there are too few suites.
BLOCKS = 20

SLOPES: Schema = {
    "measure": TEXT,
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "ties": pl.Int64(),
    "slope": pl.Float64(),
    "se": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "formula": TEXT,
    "note": TEXT,
}
SLOPE_TESTS: Schema = {
    "first": TEXT,
    "second": TEXT,
    "difference": pl.Float64(),
    "se": pl.Float64(),
    "df": pl.Int64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "units": TEXT,
}


def fit_slopes(judged: pl.DataFrame) -> pl.DataFrame:
    """Rows of SLOPES: how accuracy changes with the difference, for each measure.

    judged: columns item, suite, measure, passed and difference. Ties, which are neither right nor wrong, are
    left out and counted. A slope that cannot be estimated is null, and `note` says why.
    """
    rows = []
    for (measure,), part in judged.group_by("measure", maintain_order=True):
        told = part.filter(pl.col("passed") != 0.5)
        formula = choose_formula(told)
        row: dict[str, object] = {
            "measure": measure,
            "n": len(told),
            "suites": told["suite"].n_unique(),
            "ties": len(part) - len(told),
            "formula": formula,
        }
        try:
            found = _fit(told, formula)
            row |= {"slope": found["estimate"]} | {name: found[name] for name in ("se", "low", "high", "p")}
        except (BadInput, NotPossible) as error:
            row["note"] = str(error)
        rows.append(row)
    return pl.DataFrame(rows, schema=SLOPES)


def choose_formula(judged: pl.DataFrame) -> str:
    """The model for these answers: slopes may vary between suites if enough of them show a slope."""
    uneven = judged.group_by("suite").agg(pl.col("difference").n_unique()).filter(pl.col("difference") > 1)
    if judged["suite"].n_unique() == 1:
        return "passed ~ difference"
    random = "(1 + difference | suite)" if len(uneven) >= LEAST_SUITES else "(1 | suite)"
    return f"passed ~ difference + {random}"


def compare_slopes(judged: pl.DataFrame) -> pl.DataFrame:
    """Rows of SLOPE_TESTS: whether two measures' accuracy depends on the difference alike.

    judged: as for `fit_slopes`, with the same items for every measure. Pairs of measures whose slopes cannot
    be estimated have nulls.
    """
    units, group = _choose_groups(judged)
    measures = judged["measure"].unique(maintain_order=True).to_list()
    parts = {name: group.filter((pl.col("measure") == name) & (pl.col("passed") != 0.5)) for name in measures}
    slopes = {name: _leave_out(part) for name, part in parts.items()}
    rows = [
        {"first": first, "second": second, "units": units} | _test(slopes[first], slopes[second])
        for first, second in combinations(measures, 2)
    ]
    return pl.DataFrame(rows, schema=SLOPE_TESTS)


def _fit(judged: pl.DataFrame, formula: str) -> Mapping[str, float]:
    """The row of the slope.

    Raises BadInput if there is nothing to estimate it from.
    """
    if judged.is_empty() or judged["difference"].n_unique() < 2:
        raise BadInput("All pairs have the same difference, so there is no slope.")
    if judged["passed"].n_unique() < 2:
        raise BadInput("All answers are alike, so accuracy cannot change with the difference.")
    counted = judged.with_columns(pl.col("difference").cast(pl.Float64), pl.col("passed").cast(pl.Int64))
    fixed = (fit_glmm if "|" in formula else fit_glm)(formula, counted).fixed
    return fixed.filter(term="difference").row(0, named=True)


def _choose_groups(judged: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """What the jackknife leaves out, and the answers with the group of each: suites, or blocks of items."""
    if judged["suite"].n_unique() >= LEAST_SUITES:
        return "suites", judged.with_columns(pl.col("suite").alias("group"))
    items = judged["item"].unique(maintain_order=True)
    blocks = pl.DataFrame({"item": items, "group": [str(place % BLOCKS) for place in range(len(items))]})
    return "items", judged.join(blocks, on="item", maintain_order="left")


def _leave_out(part: pl.DataFrame) -> dict[str, float]:
    """The slope of all answers, by the empty name, and without each group in turn; NaN if there is none."""
    formula = choose_formula(part)
    groups = ["", *part["group"].unique(maintain_order=True)]
    return {name: _slope(part.filter(pl.col("group") != name), formula) for name in groups}


def _slope(part: pl.DataFrame, formula: str) -> float:
    try:
        return float(_fit(part, formula)["estimate"])
    except (BadInput, NotPossible):
        return float("nan")


def _test(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, object]:
    names: Sequence[str] = [name for name in first if name and name in second]
    shifts: Vector = np.array([first[name] - second[name] for name in names])
    difference = first[""] - second[""]
    if len(names) < 2 or not np.isfinite([difference, *shifts]).all():
        return {}
    df = len(names) - 1
    se = float(np.sqrt(df / len(names) * ((shifts - shifts.mean()) ** 2).sum()))
    reach = float(stdtrit(df, 0.975)) * se
    p = 1.0 if se == 0 and difference == 0 else float(2 * stdtr(df, -abs(difference) / se)) if se else 0.0
    return {
        "difference": difference,
        "se": se,
        "df": df,
        "low": difference - reach,
        "high": difference + reach,
        "p": p,
    }
