"""Design matrices by formulaic, with R's names for their columns.

A factor is coded by treatment unless the formula or `contrasts` says otherwise: `C(cond, Sum)` in the
formula, or `contrasts={"cond": "sum"}`, or your own numbers, `{"cond": {"a": -0.5, "b": 0.5}}`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from formulaic import model_matrix
from formulaic.errors import FormulaicError

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Codes, Vector, is_categorical, level_codes, take_column
from felicity.stats.mixed.expressions import evaluate_columns, evaluate_expression
from felicity.stats.mixed.formula_grammar import (
    FACTORS,
    Call,
    Name,
    clip,
    column_name,
    parse_terms,
    parse_value,
    write,
)

Contrast = str | Mapping[str, float | Sequence[float]]

CODINGS = {
    "treatment": "treatment",
    "contr.treatment": "treatment",
    "sum": "sum",
    "contr.sum": "sum",
}
SEVERAL = ("bs", "poly")
ALIAS = r"(?:C\((f\d+_), [^\[\]]*\)|(f\d+_))\[(?:[A-Z]\.)?(\d+)\]"


@dataclass(frozen=True)
class Factor:
    """A categorical column: codes, level names, and how its effects are coded."""

    name: str
    codes: Codes
    levels: tuple[str, ...]
    coding: str
    matrix: Vector | None = None

    def term_name(self, index: int, *, full: bool) -> str:
        """R's name of one coded column: the level for indicators, else a running number."""
        if full or self.coding == "treatment":
            return f"{self.name}{self.levels[index]}"
        # formulaic numbers sum columns by level from 0 and custom ones from 1; R numbers both from 1.
        return f"{self.name}{index + 1 if self.coding == 'sum' else index}"

    def key(self) -> dict[str, dict[str, float]]:
        """Per coded column, the value of each level; nothing for treatment, whose names say the level."""
        n = len(self.levels)
        if self.coding == "treatment":
            return {}
        matrix = self.matrix if self.matrix is not None else np.vstack([np.eye(n - 1), -np.ones(n - 1)])
        columns = [dict(zip(self.levels, column.tolist(), strict=True)) for column in matrix.T]
        return {f"{self.name}{i + 1}": column for i, column in enumerate(columns)}


class Coder:
    """Turns right-hand sides into matrices on one frame, so that every side codes a factor alike."""

    def __init__(
        self,
        frame: pl.DataFrame,
        contrasts: Mapping[str, Contrast] | None = None,
        *,
        sides: Sequence[str] = (),
    ) -> None:
        self.frame = frame
        self.contrasts = dict(contrasts or {})
        for name in self.contrasts:
            take_column(frame, name)
        self._aliases: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._factors: dict[str, Factor] = {}
        self._data: dict[str, Any] = {}
        # A coding that the formula states once, `C(cond, Sum)`, applies wherever the factor occurs.
        for atom in (atom for side in sides for atom in parse_terms(side)):
            if isinstance(atom.node, Call) and atom.node.function in FACTORS:
                self._declare_factor(atom.node)

    def matrix(self, side: str) -> tuple[Vector, list[str], list[str]]:
        """The matrix of a right-hand side, R's names of its columns, and the term each belongs to.

        Raises UnknownName for a column the frame lacks, BadInput for a side that cannot be evaluated.
        """
        design = self._materialize(self._rewrite(side), side)
        names, terms = [], []
        for structure in design.model_spec.structure:
            for name in structure.columns:
                names.append(self._r_name(name, self._labels))
                terms.append(self._r_name(str(structure.term), self._labels | self._calls))
        return np.asarray(design, dtype=np.float64), names, terms

    def vector(self, expression: str) -> Vector:
        """The values of one numeric expression, such as `log(rt)` or `n - hits`."""
        values = evaluate_expression(parse_value(expression), self._numbers)
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise BadInput(f"'{expression}' names no column.")
        self._check_finite(values, expression)
        return values

    def factor(self, name: str) -> Factor | None:
        """The factor behind a column, if the column is categorical."""
        series = take_column(self.frame, name)
        return self._factors[self._alias(name)] if is_categorical(series) else None

    def codings(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Of each coded column whose name does not say its level, the value that each level has."""
        out: dict[str, dict[str, float]] = {}
        for factor in self._factors.values():
            out |= {name: column for name, column in factor.key().items() if name in used_in(names)}
        return out

    def references(self, names: Sequence[str]) -> dict[str, str]:
        """The reference level of each factor that is coded by treatment and not by all its levels."""
        used, out = used_in(names), {}
        for factor in self._factors.values():
            shown = [f"{factor.name}{level}" in used for level in factor.levels]
            if factor.coding == "treatment" and any(shown) and not shown[0]:
                out[factor.name] = factor.levels[0]
        return out

    def _rewrite(self, side: str) -> str:
        """The side with an alias for every column and call, so that formulaic combines terms only."""
        pieces, at = [], 0
        for atom in parse_terms(side):
            pieces += [side[at : atom.start], self._replacement(atom.node)]
            at = atom.end
        return "".join([*pieces, side[at:]]).replace("^", "**")

    def _replacement(self, node: Name | Call) -> str:
        if isinstance(node, Name):
            return self._spelled(self._alias(column_name(node.text)))
        if node.function in FACTORS:
            return self._spelled(self._declare_factor(node))
        aliases = self._call_aliases(node)
        return aliases[0] if len(aliases) == 1 else f"({' + '.join(aliases)})"

    def _call_aliases(self, call: Call) -> list[str]:
        """One alias per column of a call; R numbers the columns if there are several."""
        label = write(call)
        known = [alias for alias, own in self._calls.items() if own == label]
        if known:
            return known
        columns = evaluate_columns(call, self._numbers)
        for i, values in enumerate(columns):
            alias = f"v{len(self._labels)}_"
            self._check_finite(values, label)
            self._data[alias] = values
            self._labels[alias] = label + (str(i + 1) if call.function in SEVERAL else "")
            self._calls[alias] = label
        return [alias for alias, own in self._calls.items() if own == label]

    def _numbers(self, name: str) -> Vector:
        """The numbers of a column, for calculating with."""
        if is_categorical(take_column(self.frame, name)):
            raise BadInput(f"Column '{name}' is a factor and cannot be calculated with.")
        return np.asarray(self._data[self._alias(name)])

    def _declare_factor(self, call: Call) -> str:
        """The alias of `factor(x)` or `C(x, Sum)`."""
        coding: str | None = None
        match call:
            case Call(arguments=(Name(text),), options=()):
                pass
            case Call(function="C", arguments=(Name(text), Name(given)), options=()):
                coding = given
            case _:
                raise BadInput(f"'{write(call)}' must be {call.function}(column); C() may name a coding too.")
        name = column_name(text)
        label = name if call.function == "C" else write(call)
        return self._alias(name, label=label, coding=coding, as_factor=True)

    def _alias(
        self, name: str, *, label: str | None = None, coding: str | None = None, as_factor: bool = False
    ) -> str:
        key = label or name
        if key in self._aliases:
            return self._aliases[key]
        series = take_column(self.frame, name)
        if as_factor or is_categorical(series):
            alias = f"f{len(self._labels)}_"
            factor = self._make_factor(key, name, series, coding)
            self._factors[alias] = factor
            categories = [str(i) for i in range(len(factor.levels))]
            self._data[alias] = pd.Categorical.from_codes(factor.codes, categories=categories)
        else:
            alias = f"v{len(self._labels)}_"
            if not series.dtype.is_numeric():
                raise BadInput(
                    f"Column '{name}' is {series.dtype}, neither a number nor a factor; convert it first."
                )
            self._data[alias] = series.cast(pl.Float64).to_numpy()
            if not np.isfinite(self._data[alias]).all():
                raise BadInput(f"Column '{name}' has infinite values; drop or correct those rows.")
        self._aliases[key] = alias
        self._labels[alias] = key
        return alias

    def _make_factor(self, key: str, name: str, series: pl.Series, coding: str | None) -> Factor:
        codes, levels = level_codes(series)
        if len(set(codes.tolist())) < 2:
            raise BadInput(f"Column '{name}' has only one level, '{levels[codes[0]]}'; leave it out.")
        given = coding or self.contrasts.get(name, "treatment")
        if isinstance(given, str):
            if given.lower() not in CODINGS:
                raise UnknownName("coding", given, CODINGS)
            return Factor(key, codes, tuple(levels), CODINGS[given.lower()])
        return Factor(key, codes, tuple(levels), "custom", _custom_matrix(name, levels, given))

    def _spelled(self, alias: str) -> str:
        factor = self._factors.get(alias)
        if factor is None or factor.coding == "treatment":
            return alias
        if factor.coding == "sum":
            return f"C({alias}, contr.sum)"
        return f"C({alias}, contr.custom(m{alias}))"

    def _materialize(self, side: str, shown: str) -> Any:
        # formulaic builds no column from a frame without any, and R's intercept needs the length.
        data = pd.DataFrame(self._data, index=pd.RangeIndex(self.frame.height))
        context = {f"m{alias}": f.matrix for alias, f in self._factors.items() if f.matrix is not None}
        try:
            with np.errstate(all="ignore"):
                design = model_matrix(side, data, context=context, na_action="ignore")
        except (FormulaicError, SyntaxError, NameError, TypeError, ValueError, RecursionError) as error:
            reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise BadInput(
                f"'{clip(shown)}' cannot be evaluated: {self._r_name(reason, self._labels)}"
            ) from error
        self._check_finite(np.asarray(design, dtype=np.float64), shown)
        return design

    @staticmethod
    def _check_finite(values: Vector, shown: str) -> None:
        if not np.isfinite(values).all():
            raise BadInput(
                f"'{clip(shown)}' gives values that are not finite; check for log of 0 or division by 0."
            )

    def _r_name(self, name: str, labels: Mapping[str, str]) -> str:
        def factor_column(found: re.Match[str]) -> str:
            factor = self._factors[found.group(1) or found.group(2)]
            full = not re.search(r"\[[A-Z]\.", found.group()) and factor.matrix is None
            return factor.term_name(int(found.group(3)), full=full)

        name = re.sub(ALIAS, factor_column, name)
        name = re.sub(r"C\((f\d+_), [^\[\]]*?\)+(?=:|$)", r"\1", name)
        name = re.sub(r"\b[vf]\d+_(?!\w)", lambda found: labels.get(found.group(), found.group()), name)
        return "(Intercept)" if name in ("Intercept", "1") else name


def used_in(names: Sequence[str]) -> set[str]:
    """The columns in the names of terms, interactions split."""
    return {part for name in names for part in (name, *name.split(":"))}


def _custom_matrix(name: str, levels: list[str], given: Mapping[str, float | Sequence[float]]) -> Vector:
    unknown = set(map(str, given)) - set(levels)
    lacking = set(levels) - set(map(str, given))
    if unknown or lacking:
        culprit = sorted(unknown or lacking)[0]
        problem = "names no level" if unknown else "lacks level"
        raise BadInput(f"The coding of '{name}' {problem} '{culprit}'; its levels are {', '.join(levels)}.")
    rows = {str(level): np.atleast_1d(np.asarray(value, dtype=np.float64)) for level, value in given.items()}
    if len({len(row) for row in rows.values()}) != 1:
        raise BadInput(f"The coding of '{name}' must give every level the same number of values.")
    return np.array([rows[level] for level in levels])
