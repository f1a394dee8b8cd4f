"""Means of cells with their intervals, and rows chosen by a condition."""

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.cells import average_cells, filter_rows, measure_interaction

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
    with pytest.raises(BadInput, match="has no numbers"):
        average_cells(TABLE, y="a", x="b")


def test_an_interaction_is_a_difference_of_differences_over_items() -> None:
    cells = [("a", "no", 5.0), ("a", "yes", 2.0), ("u", "no", 3.0), ("u", "yes", 1.0)]
    # Item 1: (5 - 2) - (3 - 1) = 1; item 2 has one more in the first cell: 2; item 3 two more: 3.
    rows = [
        (item, by, x, value + (item - 1) * (by == "a" and x == "no"))
        for item in (1, 2, 3)
        for by, x, value in cells
    ]
    frame = pl.DataFrame(rows, schema=["item", "by", "x", "v"], orient="row")
    found = measure_interaction(frame, y="v", x="x", by="by")
    assert found is not None
    assert (found["n"], found["estimate"], found["d"]) == (3, 2.0, pytest.approx(2.0))
    # t.test(c(1, 2, 3))$conf.int in R: -0.4841377, 4.4841377.
    assert (found["low"], found["high"]) == pytest.approx((-0.4841377, 4.4841377))
    assert measure_interaction(frame.filter(pl.col("x") == "no"), y="v", x="x", by="by") is None
    without = pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise(pl.col("v"))
    lacking = measure_interaction(frame.with_columns(without.alias("v")), y="v", x="x", by="by")
    assert lacking is not None
    assert lacking["n"] == 2
