"""The values of the functions that formulas may call: log, scale, poly and the like."""

from collections.abc import Callable
from typing import Any

import numpy as np
from formulaic.transforms import basis_spline, poly

from felicity.core.errors import BadInput
from felicity.stats.frames import Vector
from felicity.stats.mixed.formula_grammar import (
    FACTORS,
    Call,
    Name,
    Node,
    Number,
    Operation,
    column_name,
    write,
)

Column = Callable[[str], Vector]
"""Gives the numbers of a column by its name."""

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
}
SIMPLE: dict[str, Callable[[Any], Any]] = {
    "I": np.positive,
    "abs": np.abs,
    "exp": np.exp,
    "log10": np.log10,
    "log2": np.log2,
    "sqrt": np.sqrt,
}
SWITCHES = {"TRUE": True, "T": True, "True": True, "FALSE": False, "F": False, "False": False}


def evaluate_expression(node: Node, column: Column) -> Vector | float:
    """The values of an expression that gives one number per row, or one number.

    Raises BadInput for wrong arguments, naming the call.
    """
    match node:
        case Number(text):
            return float(text)
        case Name(text):
            return column(column_name(text))
        case Operation(operator, (only,)):
            value = evaluate_expression(only, column)
            return -value if operator == "-" else value
        case Operation(operator, (left, right)):
            with np.errstate(all="ignore"):
                return np.asarray(
                    OPERATORS[operator](
                        evaluate_expression(left, column), evaluate_expression(right, column)
                    ),
                    float,
                )
        case Call():
            columns = evaluate_columns(node, column)
            if len(columns) != 1:
                raise BadInput(f"'{write(node)}' gives several columns and cannot be calculated with.")
            return columns[0]
    raise BadInput(f"'{write(node)}' cannot be calculated.")


def evaluate_columns(call: Call, column: Column) -> list[Vector]:
    """The columns of a call, several for poly() and bs().

    Raises BadInput for wrong arguments, naming the call.
    """
    name = call.function
    if name in FACTORS or name == "cbind":
        raise BadInput(f"'{write(call)}' cannot be part of a calculation; use it as a term of its own.")
    if not call.arguments:
        raise BadInput(f"'{write(call)}' lacks its argument; write for instance {name}(x).")
    x = evaluate_expression(call.arguments[0], column)
    with np.errstate(all="ignore"):
        if name in SIMPLE:
            _settings(call, ())
            return [np.asarray(SIMPLE[name](x), float)]
        if name == "log":
            base = _settings(call, ("base",)).get("base")
            return [np.asarray(np.log(x) / (1.0 if base is None else np.log(base)), float)]
        if not isinstance(x, np.ndarray):
            raise BadInput(f"'{write(call)}' needs a column, not a number.")
        return _MATRICES[name](x, call)


def _settings(call: Call, names: tuple[str, ...]) -> dict[str, Any]:
    """The further arguments of a call by name, numbers and TRUE or FALSE."""
    given = [*zip(names, call.arguments[1:], strict=False), *call.options]
    extra = len(call.arguments) - 1 - len(names)
    unknown = [name for name, _ in given if name not in names]
    if extra > 0 or unknown or len({name for name, _ in given}) < len(given):
        allowed = f"may have {' and '.join(names)}" if names else "has one argument"
        raise BadInput(f"'{write(call)}' has arguments it cannot have; {call.function}() {allowed}.")
    return {name: _setting(node, call) for name, node in given}


def _setting(node: Node, call: Call) -> float | bool:
    match node:
        case Number(text):
            return float(text)
        case Name(text) if text in SWITCHES:
            return SWITCHES[text]
    raise BadInput(f"'{write(node)}' in '{write(call)}' must be a number, TRUE or FALSE.")


def _count(settings: dict[str, Any], name: str, default: int, call: Call, least: int = 1) -> int:
    value = settings.get(name, default)
    if isinstance(value, bool) or value != int(value) or not least <= value <= 50:
        raise BadInput(f"'{name}' in '{write(call)}' must be a whole number from {least} to 50.")
    return int(value)


def _center(x: Vector, call: Call) -> list[Vector]:
    _settings(call, ())
    return [x - x.mean()]


def _scale(x: Vector, call: Call) -> list[Vector]:
    """R's scale(): without centring, the root mean square (over n - 1) is the unit."""
    settings = _settings(call, ("center", "scale"))
    if not all(isinstance(value, bool) for value in settings.values()):
        raise BadInput(f"The settings of '{write(call)}' must be TRUE or FALSE.")
    moved = x - x.mean() if settings.get("center", True) else x
    unit = np.sqrt((moved**2).sum() / (len(x) - 1.0)) if settings.get("scale", True) else 1.0
    return [moved / unit]


def _standardize(x: Vector, call: Call) -> list[Vector]:
    _settings(call, ())
    return [(x - x.mean()) / x.std()]


def _poly(x: Vector, call: Call) -> list[Vector]:
    settings = _settings(call, ("degree", "raw"))
    degree = _count(settings, "degree", 1, call)
    if degree >= len(np.unique(x)):
        raise BadInput(f"'{write(call)}' needs more than {degree} different values; lower the degree.")
    columns = np.asarray(poly(x, degree=degree, raw=bool(settings.get("raw", False)), _state={}))
    return list(columns.T)


def _bs(x: Vector, call: Call) -> list[Vector]:
    settings = _settings(call, ("df", "degree"))
    degree = _count(settings, "degree", 3, call)
    df = _count(settings, "df", degree, call, least=degree)
    columns = basis_spline(x, df=df, degree=degree, _state={})
    return [np.asarray(columns[i], float) for i in sorted(columns)]


_MATRICES: dict[str, Callable[[Vector, Call], list[Vector]]] = {
    "bs": _bs,
    "center": _center,
    "poly": _poly,
    "scale": _scale,
    "standardize": _standardize,
}
