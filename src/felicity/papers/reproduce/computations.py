"""Functions that compute the figures of papers, by name; the general ones need only a table.

A computation takes the Files of its claim and the claim's arguments, and returns one number. One that runs a
model takes the model as well. Outside packages add theirs through the entry points `felicity.computation`
and `felicity.model_computation`; a claims file may also name a function in a Python file beside it, as
`analysis.py:mean_rating`.
"""

import inspect
import runpy
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.registry import Registry
from felicity.papers.reproduce.inputs import Files

Computation = Callable[..., float]
COMPUTATIONS: Registry[Computation] = Registry("computation")
MODEL_COMPUTATIONS: Registry[Computation] = Registry("model_computation")
Where = Mapping[str, Any]


@COMPUTATIONS.add("count")
def count_rows(files: Files, *, file: str, where: Where | None = None, distinct: str | None = None) -> float:
    """Rows of a table in which each column of `where` has its value; or distinct values of a column."""
    table = select(files.table(file), where)
    return float(table.height if distinct is None else column(table, distinct).n_unique())


@COMPUTATIONS.add("mean")
def mean(files: Files, *, file: str, column: str, where: Where | None = None) -> float:
    """Mean of a column."""
    return float(number_column(files.table(file), column, where).to_numpy().mean())


@COMPUTATIONS.add("sd")
def sd(
    files: Files, *, file: str, column: str, where: Where | None = None, population: bool = False
) -> float:
    """Standard deviation of a column, with n - 1 or, for a population, n."""
    return float(number_column(files.table(file), column, where).std(ddof=0 if population else 1))  # type: ignore[arg-type]


@COMPUTATIONS.add("percent")
def percent(files: Files, *, file: str, column: str, value: Any, where: Where | None = None) -> float:
    """Percentage of rows in which a column has a value."""
    table = select(files.table(file), where)
    return 100 * select(table, {column: value}).height / table.height


@COMPUTATIONS.add("correlation")
def correlation(
    files: Files,
    *,
    file: str,
    x: str,
    y: str,
    where: Where | None = None,
    method: str = "pearson",
    figure: str = "r",
) -> float:
    """Correlation of two columns (pearson, spearman, kendall, point_biserial): r, p, low, high or n."""
    from felicity.stats import correlate

    table = files.table(file)
    values = (number_column(table, name, where) for name in (x, y))
    return pick(correlate(*values, method=method), figure)  # type: ignore[arg-type]


@COMPUTATIONS.add("fit")
def fit(
    files: Files,
    *,
    file: str,
    formula: str,
    term: str | None = None,
    figure: str = "estimate",
    family: str = "gaussian",
    where: Where | None = None,
) -> float:
    """A (mixed) regression, as `felicity fit` fits it: estimate, se, df, statistic or p of a term.

    Without a term, a figure of the whole fit: n, singular, r2_marginal, r2_conditional, r2, criterion.
    """
    from felicity.stats import fit_model

    key = ("fit", file, formula, family, tuple(sorted((where or {}).items())))
    fitted = files.once(
        key,
        lambda: fit_model(formula, select(files.table(file), where), family=family),  # type: ignore[arg-type]
    )
    return read_fit(fitted, term, figure)


@COMPUTATIONS.add("run_estimate")
def run_estimate(
    files: Files, *, file: str, level: str = "overall", name: str = "all", measure: str = "lp"
) -> float:
    """Accuracy in per cent from a run's estimates.csv."""
    table = select(files.table(file), {"level": level, "name": name, "measure": measure})
    return 100 * pick(table, "accuracy")


def read_fit(fitted: Any, term: str | None, figure: str) -> float:
    """A figure of a term, or of the whole fit.

    Raises UnknownName.
    """
    if term is None:
        if not hasattr(fitted, figure):
            raise UnknownName(
                "figure of a fit", figure, ["n", "singular", "r2_marginal", "r2_conditional", "r2"]
            )
        return float(getattr(fitted, figure))
    rows = fitted.fixed.filter(term=term)
    if rows.is_empty():
        raise UnknownName("term", term, fitted.fixed["term"].to_list())
    return pick(rows, figure)


def pick(table: pl.DataFrame, name: str) -> float:
    """The value of a column in a table of one row.

    Raises UnknownName for a column that is not there, BadInput if there is not one row.
    """
    if table.height != 1:
        raise BadInput(f"{table.height} rows match the arguments, instead of one.")
    return float(column(table, name)[0])


def column(table: pl.DataFrame, name: str) -> pl.Series:
    """A column by name.

    Raises UnknownName.
    """
    if name not in table.columns:
        raise UnknownName("column", name, table.columns)
    return table[name]


def number_column(table: pl.DataFrame, name: str, where: Where | None) -> pl.Series:
    """A column of numbers, of the selected rows.

    Raises BadInput if it holds something else, or nothing.
    """
    values = column(select(table, where), name)
    if not values.dtype.is_numeric() or values.is_empty():
        raise BadInput(f"The column '{name}' has no numbers.")
    return values


def select(table: pl.DataFrame, where: Where | None) -> pl.DataFrame:
    """The rows in which each named column has the given value."""
    for name, value in (where or {}).items():
        table = table.filter(column(table, name).cast(pl.String) == str(value))
    return table


def find_computation(name: str, beside: Path, registry: Registry[Computation]) -> Computation:
    """A computation by its name, or a function of a Python file beside the claims file.

    Raises UnknownName, or BadInput if the file or the function is missing or the file is elsewhere.
    """
    if ".py:" not in name:
        return registry[name]
    file, _, function = name.partition(":")
    path = beside / file
    if not path.resolve().is_relative_to(beside.resolve()):
        raise BadInput(f"{path} is not beside the claims file, so it is not run; put it there.")
    if not path.is_file():
        raise BadInput(f"There is no file {path}, which should define '{name}'.")
    found = _run_file(path).get(function)
    if not callable(found):
        raise BadInput(f"{path} has no function '{function}'.")
    return found  # type: ignore[no-any-return]


@cache
def _run_file(path: Path) -> dict[str, Any]:
    try:
        return runpy.run_path(str(path))
    except Exception as error:
        raise BadInput(f"{path} cannot be run: {type(error).__name__}: {error}") from error


def show_source(function: Computation) -> str:
    """The source code of a computation."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return "The source code of this function is not available."
