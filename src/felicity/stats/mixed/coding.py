"""Design matrices by formulaic, with R's names for their columns.

A factor is coded by treatment unless the formula or `contrasts` says otherwise: `C(cond, Sum)` in the
formula, or `contrasts={"cond": "sum"}`, or numbers of one's own, `{"cond": {"a": -0.5, "b": 0.5}}`.
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
from felicity.stats.frames import Codes, Vector, column, is_categorical, level_codes

Contrast = str | Mapping[str, float | Sequence[float]]

CODINGS = {
    "treatment": "treatment",
    "contr.treatment": "treatment",
    "sum": "sum",
    "contr.sum": "sum",
}
FACTOR_CALL = re.compile(r"(C|factor|as\.factor)\(\s*(`[^`]+`|[\w.]+)\s*(?:,\s*([\w.]+)\s*)?\)")
NAME = re.compile(r"`[^`]+`|(?<![\w.])[A-Za-z_][\w.]*(?![\w.]|\s*\()")
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


class Coder:
    """Turns right-hand sides into matrices on one frame, so that every side codes a factor alike."""

    def __init__(
        self, frame: pl.DataFrame, contrasts: Mapping[str, Contrast] | None = None, *, formula: str = ""
    ) -> None:
        self.frame = frame
        self.contrasts = dict(contrasts or {})
        for name in self.contrasts:
            column(frame, name)
        self._aliases: dict[str, str] = {}
        self._factors: dict[str, Factor] = {}
        self._data: dict[str, Any] = {}
        # A coding that the formula states once, `C(cond, Sum)`, holds wherever the factor stands.
        for found in FACTOR_CALL.finditer(formula):
            self._declare_factor(found)

    def matrix(self, side: str) -> tuple[Vector, list[str], list[str]]:
        """The matrix of a right-hand side, R's names of its columns, and the term each belongs to.

        Raises UnknownName for a column the frame lacks, BadInput for a side that cannot be evaluated.
        """
        design = self._materialize(self._rewrite(side), side)
        names, terms = [], []
        for structure in design.model_spec.structure:
            for name in structure.columns:
                names.append(self._r_name(name))
                terms.append(self._r_name(str(structure.term)))
        return np.asarray(design, dtype=np.float64), names, terms

    def vector(self, expression: str) -> Vector:
        """The values of one numeric expression, such as `log(rt)` or `n - hits`."""
        values, names, _ = self.matrix(f"0 + I({expression})")
        if len(names) != 1:
            raise BadInput(f"'{expression}' is not one column of numbers.")
        return values[:, 0]

    def factor(self, name: str) -> Factor | None:
        """The factor behind a column, if the column is categorical."""
        series = column(self.frame, name)
        return self._factors[self._alias(name)] if is_categorical(series) else None

    def _rewrite(self, side: str) -> str:
        """The side with an alias for every column, so that any name R allows may be used."""
        side = FACTOR_CALL.sub(self._declare_factor, side).replace("^", "**")

        def swap(found: re.Match[str]) -> str:
            name = found.group().strip("`")
            if re.fullmatch(r"np(\..*)?", name):
                return found.group()
            return self._spelled(name if name in self._factors else self._alias(name))

        return NAME.sub(swap, side)

    def _declare_factor(self, found: re.Match[str]) -> str:
        call, name, coding = found.group(1), found.group(2).strip("`"), found.group(3)
        label = name if call == "C" else found.group().replace(" ", "")
        return self._alias(name, label=label, coding=coding, as_factor=True)

    def _alias(
        self, name: str, *, label: str | None = None, coding: str | None = None, as_factor: bool = False
    ) -> str:
        key = label or name
        if key in self._aliases:
            return self._aliases[key]
        series = column(self.frame, name)
        if as_factor or is_categorical(series):
            alias = f"f{len(self._aliases)}_"
            factor = self._make_factor(key, name, series, coding)
            self._factors[alias] = factor
            categories = [str(i) for i in range(len(factor.levels))]
            self._data[alias] = pd.Categorical.from_codes(factor.codes, categories=categories)
        else:
            alias = f"v{len(self._aliases)}_"
            if not series.dtype.is_numeric():
                raise BadInput(
                    f"Column '{name}' is {series.dtype}, neither a number nor a factor; convert it first."
                )
            self._data[alias] = series.cast(pl.Float64).to_numpy()
            if not np.isfinite(self._data[alias]).all():
                raise BadInput(f"Column '{name}' holds infinite values; drop or mend those rows.")
        self._aliases[key] = alias
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
        except (FormulaicError, SyntaxError, NameError, TypeError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise BadInput(f"'{shown}' cannot be evaluated: {self._r_name(reason)}") from error
        if not np.isfinite(np.asarray(design, dtype=np.float64)).all():
            raise BadInput(
                f"'{shown}' gives values that are not finite; check for log of 0 or division by 0."
            )
        return design

    def _r_name(self, name: str) -> str:
        def factor_column(found: re.Match[str]) -> str:
            factor = self._factors[found.group(1) or found.group(2)]
            full = not re.search(r"\[[A-Z]\.", found.group()) and factor.matrix is None
            return factor.term_name(int(found.group(3)), full=full)

        name = re.sub(ALIAS, factor_column, name)
        name = re.sub(r"C\((f\d+_), [^\[\]]*?\)+(?=:|$)", r"\1", name)
        back = {alias: key for key, alias in self._aliases.items()}
        name = re.sub(r"[vf]\d+_", lambda found: back[found.group()], name)
        return "(Intercept)" if name in ("Intercept", "1") else name.replace(" ** ", "^")


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
