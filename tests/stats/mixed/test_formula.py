"""Formulas are read as lme4 reads them."""

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import as_polars
from felicity.stats.mixed.coding import Coder
from felicity.stats.mixed.formula import parse_formula

FRAME = pl.DataFrame(
    {
        "cond": ["a", "b", "c"] * 4,
        "sound": ["u", "v"] * 6,
        "x.y": [float(i) for i in range(1, 13)],
        "flag": [True, False, False] * 4,
        "size": [1, 2, 3, 4] * 3,
    }
)


@pytest.mark.parametrize(
    ("text", "random"),
    [
        ("y ~ x + (1 | g)", ["(1 | g)"]),
        ("y ~ x + (x || g)", ["(1 | g)", "(0 + x | g)"]),
        ("y ~ x + (0 + x || g)", ["(0 + x | g)"]),
        ("y ~ x + (a * b || g)", ["(1 | g)", "(0 + a | g)", "(0 + b | g)", "(0 + a:b | g)"]),
        ("y ~ x + (1 | a/b)", ["(1 | b:a)", "(1 | a)"]),
        ("y ~ x + (1 + x | g) + (1 | h:k)", ["(1 + x | g)", "(1 | h:k)"]),
    ],
)
def test_random_terms_expand(text: str, random: list[str]) -> None:
    assert [str(term) for term in parse_formula(text).random] == random


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("y ~ (1 | g)", "1"),
        ("y ~ a * (b + c) + (1 | g) + d", "a * (b + c) + d"),
        ("y ~ (1 | g) + x - 1", "x - 1"),
        ("y ~ (x | g) - 1 + z", "- 1 + z"),
    ],
)
def test_what_is_not_random_is_fixed(text: str, fixed: str) -> None:
    assert parse_formula(text).fixed == fixed


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("y x", "one '~'"),
        ("~ x", "one '~'"),
        ("y ~ x + 1 | g", "in brackets"),
        ("y ~ x + (1 | g", "not closed"),
        ("y ~ x + ( | g)", "effects | group"),
        ("y ~ x + (1 | g + h)", "joined by"),
        ("y ~ x + (1 | f(g))", "joined by"),
    ],
)
def test_a_formula_that_cannot_be_read_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        parse_formula(text)


# R: colnames(model.matrix(~ ..., d)) with the same columns; sums by contr.sum.
@pytest.mark.parametrize(
    ("side", "names"),
    [
        ("cond * x.y", "(Intercept) condb condc x.y condb:x.y condc:x.y"),
        ("0 + cond", "conda condb condc"),
        ("C(cond, Sum) * sound", "(Intercept) cond1 cond2 soundv cond1:soundv cond2:soundv"),
        ("log(x.y) + I(x.y^2)", "(Intercept) log(x.y) I(x.y^2)"),
        ("flag", "(Intercept) flagTRUE"),
        ("factor(size)", "(Intercept) factor(size)2 factor(size)3 factor(size)4"),
        ("(cond + sound)^2", "(Intercept) condb condc soundv condb:soundv condc:soundv"),
    ],
)
def test_columns_have_rs_names(side: str, names: str) -> None:
    assert Coder(FRAME, sides=(side,)).matrix(side)[1] == names.split()


def test_custom_coding_numbers_its_columns() -> None:
    coder = Coder(FRAME, {"sound": {"u": -0.5, "v": 0.5}})
    matrix, names, _ = coder.matrix("sound")
    assert names == ["(Intercept)", "sound1"]
    assert matrix[:2, 1].tolist() == [-0.5, 0.5]


def test_an_enum_keeps_its_order() -> None:
    frame = FRAME.with_columns(pl.col("cond").cast(pl.Enum(["c", "a", "b"])))
    assert Coder(frame).matrix("cond")[1] == ["(Intercept)", "conda", "condb"]


def test_a_pandas_categorical_keeps_its_order() -> None:
    frame = FRAME.to_pandas()
    frame["cond"] = frame["cond"].astype("category").cat.reorder_categories(["c", "a", "b"])
    assert Coder(as_polars(frame)).matrix("cond")[1] == ["(Intercept)", "conda", "condb"]


def test_a_misspelt_column_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'sound'"):
        Coder(FRAME).matrix("sond")


@pytest.mark.parametrize(
    ("contrasts", "complaint"),
    [
        ({"sound": "helmet"}, "no coding 'helmet'"),
        ({"sound": {"u": 1.0}}, "lacks level 'v'"),
        ({"sound": {"u": 1.0, "v": 0.0, "w": 1.0}}, "names no level 'w'"),
        ({"sound": {"u": [1.0], "v": [0.0, 1.0]}}, "same number of values"),
        ({"tone": "sum"}, "no column 'tone'"),
    ],
)
def test_a_coding_that_does_not_fit_is_refused(contrasts: dict[str, object], complaint: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=complaint):
        Coder(FRAME, contrasts).matrix("sound")  # type: ignore[arg-type]


def test_an_expression_that_fails_is_refused_with_its_text() -> None:
    with pytest.raises(BadInput, match=r"log\(x.y - 1\).*not finite"):
        Coder(FRAME).matrix("log(x.y - 1)")
    with pytest.raises(BadInput, match="nosuch"):
        Coder(FRAME).matrix("nosuch(x.y)")
