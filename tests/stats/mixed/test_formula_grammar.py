"""Formulas are parsed by their own grammar: nothing outside of it gets anywhere."""

import builtins
from typing import Any

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.stats.mixed.coding import Coder
from felicity.stats.mixed.formula import parse_formula
from felicity.stats.mixed.formula_grammar import parse_value, write
from felicity.stats.mixed.linear import fit_lmm

X = [1.0, 2.0, 4.0, 7.0, 8.0, 9.5]
FRAME = pl.DataFrame({"y": X[::-1], "x": X, "odd name|~(": X, "cond": ["a", "b"] * 3, "lambda": X})


@pytest.mark.parametrize(
    ("formula", "complaint"),
    [
        ("y ~ __import__('os').system('true')", "''' has no meaning"),
        ("y ~ np.log(x)", "'np.log' is not a function of formulas"),
        ("y ~ eval(x)", "'eval' is not a function of formulas"),
        ("y ~ I(open(x))", "'open' is not a function of formulas"),
        ("eval(y) ~ x", "'eval' is not a function of formulas"),
        ("y ~ x + (1 + exec(x) | cond)", "'exec' is not a function of formulas"),
        ("y ~ {x}", "'{' has no meaning"),
        ("y ~ x[0]", r"'\[' has no meaning"),
        ("y ~ x; z", "';' has no meaning"),
        ("y ~ x %in% cond", "'%' has no meaning"),
        ("y > 3 ~ x", "'>' has no meaning"),
        ('y ~ log("x")', "'\"' has no meaning"),
        ("y ~ x @ x", "'@' has no meaning"),
        ("y ~ x x", "'x' is not expected"),
        ("y ~ log()", r"'\)' is not expected"),
        ("y ~ x +", "Something is missing at the end"),
        ("y ~ ", "Something is missing at the end"),
        ("y ~ x * / x", "'/' is not expected"),
        ("y ~ 5 + x", "The number 5 stands alone"),
        ("y ~ (x + cond)^1.5", "'\\^1.5' among the terms"),
        ("y ~ (x + cond)^1000000000", "must be a small whole number"),
        ("y ~ (0 + x) + cond", "is in brackets"),
        ("y ~ (x - 1) + cond", "is in brackets"),
        ("y ~ cbind(x, x)", "on the left of '~'"),
        ("y ~ bi\udcffas", "not UTF-8 text"),
        ("y\ud800 ~ x", "not UTF-8 text"),
        ("y ~ " + "+".join(["x"] * 3001), "more than 300 operators"),
        ("y ~ " + "(" * 3000 + "x" + ")" * 3000, "nested more than 30 deep"),
        ("y ~ I(" + "-" * 200 + "x)", "nested more than 30 deep"),
        ("y ~ I(" + "(" * 200 + "x" + ")" * 200 + ")", "nested more than 30 deep"),
        ("y ~ " + "*".join(f"x{i}" for i in range(100)), "more than 1000 terms"),
        ("y ~ (" + "+".join(f"x{i}" for i in range(60)) + ")^50", "more than 1000 terms"),
        ("y ~ x + (0 || cond)", "names no random effect"),
    ],
)
def test_what_is_no_formula_is_refused_with_the_culprit(formula: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint) as caught:
        parse_formula(formula)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 250
    said.encode()


@pytest.mark.parametrize("term", ["(0 | cond)", "(1 - 1 | cond)"])
def test_a_random_term_without_effects_is_refused(term: str) -> None:
    with pytest.raises(BadInput, match="has no effects"):
        fit_lmm(f"y ~ x + {term}", FRAME)


@pytest.mark.parametrize(
    ("side", "complaint"),
    [
        ("log(x, 2, 3)", "arguments it cannot have; log"),
        ("log(x, bass = 2)", "arguments it cannot have"),
        ("exp(x, 2)", "exp.. has one argument"),
        ("log(cond)", "'cond' is a factor"),
        ("I(x + cond)", "'cond' is a factor"),
        ("poly(x, 6)", "more than 6 different values"),
        ("poly(x, 1.5)", "whole number from 1"),
        ("poly(x, x)", "must be a number, TRUE or FALSE"),
        ("poly(2, 1)", "needs a column"),
        ("I(poly(x, 2) + 1)", "gives several columns"),
        ("I(factor(x) + 1)", "use it as a term of its own"),
        ("scale(x, center = 3)", "TRUE or FALSE"),
        ("factor(x + 1)", r"must be factor\(column\)"),
        ("C(cond, Sum, 2)", r"must be C\(column\)"),
        ("I(9^9^9^9 * x)", "not finite"),
        ("I(x / 0)", "not finite"),
    ],
)
def test_a_call_that_cannot_be_calculated_is_refused(side: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        Coder(FRAME).matrix(side)


def test_python_sees_only_aliases_of_what_the_user_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    compiling = builtins.compile

    def watch(source: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(source))
        return compiling(source, *args, **kwargs)

    monkeypatch.setattr(builtins, "compile", watch)
    values, names, _ = Coder(FRAME, {"cond": "sum"}).matrix("log(x) * cond + poly(x, 2) + `lambda`")
    assert values.shape == (6, 7)
    assert any("contr.sum" in source for source in seen)
    assert not [source for source in seen if "log" in source or "poly" in source or "lambda" in source]
    assert names[-1] == "log(x):cond1"


# R: poly(x, 3), splines::bs(x, df = 4) with x <- c(1, 2, 4, 7, 8, 9.5); the second row. The others by hand:
# the mean of x is 5.25, the squares about it sum to 58.875, those of x itself to 224.25.
@pytest.mark.parametrize(
    ("call", "names", "row"),
    [
        (
            "poly(x, 3)",
            "poly(x, 3)1|poly(x, 3)2|poly(x, 3)3",
            [-0.423562888093, 0.0119982546209, 0.331282984663],
        ),
        ("poly(x, 2, raw=TRUE)", "poly(x, 2, raw = TRUE)1|poly(x, 2, raw = TRUE)2", [2.0, 4.0]),
        (
            "bs(x, df=4)",
            "bs(x, df = 4)1|bs(x, df = 4)2|bs(x, df = 4)3|bs(x, df = 4)4",
            [0.4599465542693, 0.0664701610492, 0.00307574009996, 0.0],
        ),
        ("scale(x)", "scale(x)", [-3.25 / np.sqrt(58.875 / 5)]),
        ("scale(x, center = FALSE)", "scale(x, center = FALSE)", [2.0 / np.sqrt(224.25 / 5)]),
        ("center(x)", "center(x)", [2.0 - 5.25]),
        ("standardize(x)", "standardize(x)", [-3.25 / np.sqrt(58.875 / 6)]),
        ("log(x, base = 2)", "log(x, base = 2)", [1.0]),
        ("sqrt(abs(-x*8))", "sqrt(abs(-x * 8))", [4.0]),
        ("I(x/10-2^-x)", "I(x/10 - 2^-x)", [0.2 - 0.25]),
        ("I((x+1)^2)", "I((x + 1)^2)", [9.0]),
        ("I(-x^2)", "I(-x^2)", [-4.0]),
        ("I(10 - x - 1)", "I(10 - x - 1)", [7.0]),
        ("exp(log10(100)*x)", "exp(log10(100) * x)", [np.exp(4.0)]),
    ],
)
def test_functions_have_rs_values_and_names(call: str, names: str, row: list[float]) -> None:
    values, found, _ = Coder(FRAME).matrix(f"0 + {call}")
    assert values[1] == pytest.approx(row, rel=1e-10)
    assert found == names.split("|")


def test_columns_with_any_name_can_be_quoted() -> None:
    formula = parse_formula("`odd name|~(` ~ log(`odd name|~(`) + (1 | cond)")
    assert formula.response == "`odd name|~(`"
    assert Coder(FRAME).vector(formula.response).tolist() == X
    assert Coder(FRAME).matrix(formula.fixed)[1] == ["(Intercept)", "log(odd name|~()"]


def test_powers_bind_to_the_right_and_before_minus() -> None:
    assert parse_value("-x^2^3") == parse_value("-(x^(2^3))").__class__("-", (parse_value("x^2^3"),))
    assert write(parse_value("a-(b-c)/d")) == "a - (b - c)/d"


def test_a_long_sum_inside_a_call_is_calculated() -> None:
    values, _, _ = Coder(FRAME).matrix("0 + I(" + "+".join(["x"] * 250) + ")")
    assert values[:, 0] == pytest.approx(250 * np.array(X))


@pytest.mark.parametrize("seed", range(20))
def test_random_text_is_read_or_refused_but_never_crashes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = ["\ud800", "log(", "I(", "poly(", "factor(", "cond", *"xyé()+-*/:^|~012,=`'. "]
    for _ in range(300):
        text = "y ~ " + "".join(rng.choice(pieces, size=rng.integers(1, 12)))
        try:
            formula = parse_formula(text)
            Coder(FRAME, sides=formula.sides).matrix(formula.fixed)
        except FelicityError as error:
            assert str(error).encode()
