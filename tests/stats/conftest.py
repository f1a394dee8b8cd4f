"""Published data and lme4's small classic data sets, for the tests of the statistics."""

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
CLASSICS = Path(__file__).parent / "mixed" / "data"


@pytest.fixture(scope="session")
def published() -> Callable[[str], Path]:
    """A file of the published data; skips where there is none, fails where it lacks the file."""
    named = os.environ.get("FELICITY_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"

    def find(name: str) -> Path:
        if not folder.is_dir():
            pytest.skip("the published data is not here; set FELICITY_DATA to its folder")
        path = folder / name
        if not path.exists():
            pytest.fail(f"the published data lacks {name}")
        return path

    return find


@pytest.fixture(scope="session")
def classic() -> Callable[[str], pl.DataFrame]:
    """One of lme4's example data sets, grouping columns as text."""

    def read(name: str) -> pl.DataFrame:
        frame = pl.read_csv(CLASSICS / f"{name}.csv")
        factors = {"Subject", "herd", "period", "replicate"} & set(frame.columns)
        return frame.with_columns(pl.col(column).cast(pl.String) for column in factors)

    return read
