"""Means of cells with their intervals, and rows chosen by a condition."""

import math

import polars as pl
import pytest
from scipy.stats import t, ttest_rel

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.cells import average_cells, average_within, filter_rows, measure_interaction

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


# The data set Orange of R, matrix(Orange$circumference, 7): five trees (items) at seven ages (cells).
AGES = (118, 484, 664, 1004, 1231, 1372, 1582)
TREES = (
    (30, 58, 87, 115, 120, 142, 145),
    (33, 69, 111, 156, 172, 203, 203),
    (30, 51, 75, 108, 115, 139, 140),
    (32, 62, 112, 167, 179, 209, 214),
    (30, 49, 81, 125, 142, 174, 177),
)


def list_trees(cells: int) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"item": item, "age": AGES[place], "y": float(row[place])}
            for item, row in enumerate(TREES)
            for place in range(cells)
        ]
    )


def test_within_item_variances_are_those_of_r() -> None:
    table = average_within(list_trees(7), y="y", x="age")
    assert table["mean"].to_list() == pytest.approx([31.0, 57.8, 93.2, 134.2, 145.6, 173.4, 175.8])
    half = (table["high"] - table["low"]) / 2
    squares = [(width / t.ppf(0.975, 4)) ** 2 * 5 for width in half]
    # x <- matrix(Orange$circumference, 7); y <- sweep(x, 2, colMeans(x)); 7/6 * apply(y, 1, var)
    expected = [434.36904762, 277.85238095, 56.93571429, 41.10238095, 91.13571429, 194.13571429, 209.60238095]
    assert squares == pytest.approx(expected)
    # Morey (2008): their mean is the mean square of items by cells. In R, the residual mean square of
    # aov(circumference ~ factor(age) + Error(Tree/factor(age)), data = Orange) is 186.447619.
    assert sum(squares) / 7 == pytest.approx(186.447619)


def test_within_items_two_cells_have_the_interval_of_their_difference() -> None:
    frame = list_trees(2)
    table = average_within(frame, y="y", x="age")
    first, second = (frame.filter(age=value)["y"].to_numpy() for value in AGES[:2])
    ends = ttest_rel(second, first).confidence_interval()
    half = (table["high"] - table["low"])[0] / 2
    assert half * math.sqrt(2) == pytest.approx((ends.high - ends.low) / 2)


def test_items_are_aligned_within_each_region() -> None:
    # An item that is slow in one region only: nothing of that is left where both conditions share it.
    rows = [
        {"item": item, "place": place, "c": c, "y": 10.0 * item * (place == 1) + (c == "b") * (1 + item % 2)}
        for item in range(4)
        for place in (1, 2)
        for c in "ab"
    ]
    table = average_within(pl.DataFrame(rows), y="y", x="place", by=["c"])
    widths = (table["high"] - table["low"]).to_list()
    assert widths == pytest.approx([widths[0]] * 4)


def test_within_item_intervals_refuse_what_they_cannot_align() -> None:
    frame = list_trees(3)
    with pytest.raises(BadInput, match="Item 4 has 2 of 3 cells"):
        average_within(frame.head(-1), y="y", x="age")
    with pytest.raises(BadInput, match="name a factor"):
        average_within(frame.with_columns(place=1), y="y", x="place")
    with pytest.raises(UnknownName, match="--item"):
        average_within(frame, y="y", x="age", item="zzz")
