"""Frames as users have them, polars or pandas, taken as polars; pandas is never imported here."""

from typing import Any

import polars as pl

from felicity.core.errors import BadInput

Frame = Any
"""A polars or a pandas frame."""


def is_frame(value: object) -> bool:
    """Whether a value is a table: a polars or pandas frame, or one of another library.

    >>> is_frame(pl.DataFrame({"text": ["It rains."]})), is_frame(["It rains."])
    (True, False)
    """
    return isinstance(value, pl.LazyFrame) or hasattr(value, "columns")


def as_polars(frame: Frame) -> pl.DataFrame:
    """The frame as polars, its rows and columns kept.

    Raises BadInput for anything that is neither a polars nor a pandas frame, and for one without rows.
    """
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        if not (hasattr(frame, "columns") and hasattr(frame, "dtypes")):
            raise BadInput(f"A polars or pandas frame is needed, not a {type(frame).__name__}.")
        frame = _from_pandas(frame)
    table: pl.DataFrame = frame
    if not table.height:
        raise BadInput("The table has no rows; check the filter or the file it came from.")
    return table


def _from_pandas(frame: Any) -> pl.DataFrame:
    named = frame.rename(columns=str)
    kept = named.reset_index(drop=True)
    return pl.DataFrame({name: _series_from_pandas(name, kept[name]) for name in kept.columns})


def _series_from_pandas(name: str, values: Any) -> pl.Series:
    if str(values.dtype) != "category":
        return pl.Series(name, values)
    # A pandas categorical says which level comes first, as a factor in R does.
    levels = [str(level) for level in values.cat.categories]
    codes = [levels[code] if code >= 0 else None for code in values.cat.codes.tolist()]
    return pl.Series(name, codes, dtype=pl.Enum(levels))
