"""Input frames and vectors for statistics, and one BLAS thread for the many small products of a model fit.

The matrices here are small and the products many. Synchronizing a pool of threads for each costs
more than it saves, on a busy machine ten times more (500 x 500 Cholesky: 6 ms alone, 470 ms in a pool).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.frames import Frame as Frame
from felicity.core.frames import as_polars as as_polars

Vector = npt.NDArray[np.float64]
Values = Sequence[float] | pl.Series | Vector
Codes = npt.NDArray[np.int64]
P = ParamSpec("P")
R = TypeVar("R")


def take_column(frame: pl.DataFrame, name: str) -> pl.Series:
    """One column without missing values.

    Raises UnknownName if there is none of that name, BadInput if values are missing.
    """
    if name not in frame.columns:
        raise UnknownName("column", name, frame.columns)
    series = frame[name]
    missing = series.null_count()
    if series.dtype.is_float():
        missing += int(series.is_nan().sum())
    if missing:
        raise BadInput(
            f"Column '{name}' has {missing} missing value{'s' * (missing > 1)} in {frame.height} rows; "
            f"drop those rows or fill them first."
        )
    return series


def numbers(values: Sequence[float] | pl.Series | Vector, name: str, *, least: int = 1) -> Vector:
    """A vector of finite numbers.

    Raises BadInput naming the vector if it is too short, not numeric, or has NaN or infinity.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"'{name}' has values that are not numbers; convert or drop them.") from error
    if array.ndim != 1:
        raise BadInput(f"'{name}' has {array.ndim} dimensions; one value per observation is needed.")
    if len(array) < least:
        raise BadInput(f"'{name}' has {len(array)} values; at least {least} are needed.")
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise BadInput(
            f"'{name}' has {bad} value{'s' * (bad > 1)} that are NaN or infinite; drop them first."
        )
    return array


def is_categorical(series: pl.Series) -> bool:
    """Whether a column is categorical rather than numeric."""
    return series.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean)


def level_codes(series: pl.Series) -> tuple[Codes, list[str]]:
    """Integer codes and the names of the levels that occur, in R's order.

    An Enum keeps its own order; everything else is sorted by value, numbers as numbers.

    >>> codes, levels = level_codes(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), levels
    ([1, 0, 1], ['a', 'b'])
    """
    if series.dtype == pl.Boolean:
        return series.cast(pl.Int64).to_numpy(), ["FALSE", "TRUE"]
    if series.dtype == pl.Enum:
        used = set(series.unique().to_list())
        levels = [level for level in series.dtype.categories.to_list() if level in used]  # type: ignore[attr-defined]
        order = {level: i for i, level in enumerate(levels)}
        return series.cast(pl.String).replace_strict(order, return_dtype=pl.Int64).to_numpy(), levels
    plain = series.cast(pl.String) if series.dtype == pl.Categorical else series
    distinct = plain.unique().sort()
    codes = plain.rank("dense").cast(pl.Int64).to_numpy() - 1
    return codes, [_level_name(value) for value in distinct.to_list()]


def _level_name(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function's linear algebra in one thread; without threadpoolctl it is slower but correct."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            controller = _controller()
        except ImportError:
            return function(*args, **kwargs)
        with controller.limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
