"""Means of cells with their intervals, and rows chosen by a condition."""

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.cells import average_cells, filter_rows

TABLE = pl.DataFrame({"a": ["x", "x", "x", "y"], "b": [1, 1, 2, 1], "v": [1.0, 3.0, 5.0, 7.0]})


def test_a_cell_has_the_t_interval_of_its_mean() -> None:
    row = average_cells(TABLE, y="v", x="b", by=["a"]).row(0, named=True)
    assert (row["series"], row["x"], row["n"], row["mean"]) == ("x", "1", 2, 2.0)
    # t.test(c(1, 3))$conf.int in R: -10.7062, 14.7062.
    assert (row["low"], row["high"]) == pytest.approx((-10.7062, 14.7062), abs=1e-4)


def test_a_cell_of_one_row_has_no_interval() -> None:
    assert average_cells(TABLE, y="v", x="b", by=["a"]).filter(series="y")["low"].item() is None


def test_rows_are_chosen_by_value() -> None:
    assert filter_rows(TABLE, ["a=x", "b=1"])["v"].to_list() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("condition", "error", "complaint"),
    [
        ("a", BadInput, "not COLUMN=VALUE"),
        ("c=1", UnknownName, "column"),
        ("a=z", BadInput, "there are x, y"),
    ],
)
def test_conditions_that_cannot_be_met_are_refused(
    condition: str, error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        filter_rows(TABLE, [condition])


def test_a_column_without_numbers_is_refused() -> None:
    with pytest.raises(BadInput, match="does not hold numbers"):
        average_cells(TABLE, y="a", x="b")
