import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.core.errors import BadInput
from felicity.core.formulas import parse_prediction
from felicity.core.schemas import REGIONS
from felicity.judge.formulas import find_margin, holds, judge_formulas

VALUES = {("a", "1"): 3.0, ("b", "1"): 5.0, ("c", "1"): 5.0004, ("a", "*"): 7.0}


@pytest.mark.parametrize(
    ("formula", "true", "margin"),
    [
        ("(1;%a%) < (1;%b%)", True, 2.0),
        ("(1;%a%) > (1;%b%)", False, -2.0),
        ("(1;%b%) < (1;%b%)", False, 0.0),
        ("(1;%b%) = (1;%c%)", True, 1e-3 + 5.0004e-5 - 0.0004),
        ("(1;%a%) = (1;%b%)", False, 1e-3 + 5e-5 - 2.0),
        ("(*;%a%) - (1;%a%) > 3", True, 1.0),
        ("(1;%a%) < (1;%b%) & (1;%b%) < (*;%a%)", True, 2.0),
        ("(1;%a%) > (1;%b%) | (1;%b%) < (*;%a%)", True, 2.0),
        ("(1;%a%) > (1;%b%) & (1;%b%) < (*;%a%)", False, -2.0),
    ],
)
def test_a_formula_is_true_or_false_by_a_margin(formula: str, true: bool, margin: float) -> None:
    part = parse_prediction(formula)
    assert holds(part, VALUES) is true
    assert find_margin(part, VALUES) == pytest.approx(margin, abs=1e-12)


@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), st.sampled_from("&|"), st.sampled_from("<>"))
def test_the_margin_is_positive_exactly_where_the_formula_holds(
    values: list[float], joint: str, mark: str
) -> None:
    known = {(name, "1"): value for name, value in zip("abcd", values, strict=True)}
    part = parse_prediction(f"(1;%a%) < (1;%b%) {joint} (1;%c%) {mark} (1;%d%)")
    assert holds(part, known) == (find_margin(part, known) > 0)


def test_a_region_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="no surprisal for region '2' of condition 'a'"):
        holds(parse_prediction("(2;%a%) < 1"), VALUES)


def regions(values: dict[tuple[str, str], float]) -> pl.DataFrame:
    rows = [
        ("s/1", "s", condition, region, f"r{region}", value, 1)
        for (condition, region), value in values.items()
    ]
    return pl.DataFrame(rows, schema=REGIONS, orient="row")


def suite(*predictions: str) -> pl.DataFrame:
    return pl.DataFrame(
        {"item": ["s/1"], "suite": ["s"], "phenomenon": ["p"], "predictions": [list(predictions)]}
    )


def test_an_item_passes_when_all_predictions_do_and_each_is_judged_by_itself() -> None:
    items = suite("(r1;%a%) < (r1;%b%)", "(*;%a%) > (*;%b%)")
    table = regions({("a", "1"): 1.0, ("b", "1"): 4.0, ("a", "2"): 1.0, ("b", "2"): 0.5})
    whole, single = judge_formulas(items, table, noise_bits={})
    assert single.select("rule", "passed", "margin").rows() == [("s/1", 1.0, 3.0), ("s/2", 0.0, -2.5)]
    assert whole.select("rule", "passed", "margin").rows() == [("formula", 0.0, -2.5)]


def test_noise_in_every_region_that_is_read_decides_what_is_stable() -> None:
    items = suite("(1;%a%) + (1;%b%) < 10")
    table = regions({("a", "1"): 4.0, ("b", "1"): 5.0})
    assert judge_formulas(items, table, noise_bits=dict.fromkeys(items["item"], 0.49))[0]["stable"][0]
    assert not judge_formulas(items, table, noise_bits=dict.fromkeys(items["item"], 0.51))[0]["stable"][0]


INFINITE = {("a", "1"): float("inf"), ("b", "1"): float("inf"), ("c", "1"): 5.0, ("d", "1"): float("nan")}


@pytest.mark.parametrize(
    ("formula", "true", "margin"),
    [
        ("(1;%a%) < (1;%b%)", False, 0.0),
        ("(1;%a%) > (1;%b%)", False, 0.0),
        ("(1;%a%) = (1;%b%)", True, float("inf")),
        ("(1;%c%) = (1;%b%)", False, float("-inf")),
        ("(1;%c%) < (1;%b%)", True, float("inf")),
    ],
)
def test_two_infinite_surprisals_are_level(formula: str, true: bool, margin: float) -> None:
    part = parse_prediction(formula)
    assert holds(part, INFINITE) is true
    assert find_margin(part, INFINITE) == margin


@pytest.mark.parametrize("formula", ["(1;%d%) < (1;%c%)", "(1;%c%) < (1;%d%)", "(1;%a%) - (1;%b%) < 2"])
def test_what_is_not_a_number_is_neither_right_nor_wrong(formula: str) -> None:
    with pytest.raises(BadInput, match="number"):
        find_margin(parse_prediction(formula), INFINITE)
