"""lme4's small classic data sets, for the tests of the statistics."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

CLASSICS = Path(__file__).parent / "mixed" / "data"


@pytest.fixture(scope="session")
def classic() -> Callable[[str], pl.DataFrame]:
    """One of lme4's example data sets, grouping columns as text."""

    def read(name: str) -> pl.DataFrame:
        frame = pl.read_csv(CLASSICS / f"{name}.csv")
        factors = {"Subject", "herd", "period", "replicate"} & set(frame.columns)
        return frame.with_columns(pl.col(column).cast(pl.String) for column in factors)

    return read
