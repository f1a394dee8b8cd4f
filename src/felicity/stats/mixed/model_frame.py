"""From a formula and a frame to arrays: response, fixed design, random effects, each checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Frame, Vector, as_polars, level_codes, take_column
from felicity.stats.mixed.coding import Coder, Contrast
from felicity.stats.mixed.formula import Formula, RandomTerm, parse_formula, split_top
from felicity.stats.mixed.formula_grammar import column_name
from felicity.stats.mixed.random_effects import RandomEffects, build_blocks, lme4_order

RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ModelFrame:
    """What a fit needs of the data.

    y: the response; hits for a binomial model, codes of the levels for a cumulative one.
    trials: per row, for a binomial model only.
    names, terms: per column of x, R's name and the term it comes from.
    codings: of columns named by number, as under sum coding, the value of each level.
    references: the reference level of each factor coded by treatment.
    """

    formula: Formula
    y: Vector
    trials: Vector | None
    x: Vector
    names: tuple[str, ...]
    terms: tuple[str, ...]
    effects: RandomEffects
    codings: dict[str, dict[str, float]]
    references: dict[str, str]

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.y)


def build_model_frame(
    formula: str | Formula,
    frame: Frame,
    *,
    contrasts: Mapping[str, Contrast] | None = None,
    counts: tuple[Vector, Vector | None] | None = None,
) -> ModelFrame:
    """The arrays of a mixed model.

    counts: hits and trials per row of a binomial model, or level codes and None of a cumulative one; else
        the response is read from the frame.

    Raises BadInput or UnknownName in a sentence for data that no model can be fitted to.
    """
    parsed = parse_formula(formula) if isinstance(formula, str) else formula
    if not parsed.random:
        raise BadInput(
            f"The formula '{parsed}' has no random term such as (1 | subject); use fit_ols for that."
        )
    table = as_polars(frame)
    coder = Coder(table, contrasts, sides=parsed.sides)
    y, trials = counts if counts is not None else (read_response(coder, parsed.response), None)
    x, names, terms = coder.matrix(parsed.fixed)
    check_design(x, names)
    return ModelFrame(
        formula=parsed,
        y=y,
        trials=trials,
        x=x,
        names=tuple(names),
        terms=tuple(terms),
        codings=coder.codings(names),
        references=coder.references(names),
        effects=_random_effects(coder, table, parsed.random, residual=counts is None),
    )


def check_design(x: Vector, names: list[str]) -> None:
    """Refuse a fixed design with constant or dependent columns, naming one of them.

    Raises BadInput.
    """
    if not names:
        raise BadInput("The formula leaves no fixed effect at all; keep the intercept or a predictor.")
    spans = np.ptp(x, axis=0)
    for name, span, value in zip(names, spans, x[0], strict=True):
        if span == 0 and name != "(Intercept)":
            raise BadInput(f"The predictor '{name}' is {value:g} in every row; leave it out of the formula.")
    if len(x) <= len(names):
        raise BadInput(f"{len(x)} rows cannot support {len(names)} fixed effects; simplify the formula.")
    scaled = x / np.sqrt((x**2).sum(axis=0))
    basis = np.zeros((len(x), 0))
    for i, name in enumerate(names):
        rest = scaled[:, i] - basis @ (basis.T @ scaled[:, i])
        rest -= basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length < RANK_TOLERANCE:
            raise BadInput(
                f"The design is rank-deficient: '{name}' follows from the columns before it; "
                f"leave it out or drop the cells without data."
            )
        basis = np.column_stack([basis, rest / length])


def read_response(coder: Coder, expression: str) -> Vector:
    """The response of a linear model.

    Raises BadInput for counts, a factor, and what is the same in every row.
    """
    if expression.startswith("cbind("):
        raise BadInput("A response 'cbind(hits, misses)' needs a binomial model; use family binomial.")
    if column_name(expression) in coder.frame.columns and coder.factor(column_name(expression)):
        raise BadInput(f"The response '{expression}' is a factor; a linear model needs numbers.")
    y = coder.vector(expression)
    if np.ptp(y) == 0:
        raise BadInput(f"The response '{expression}' is {y[0]:g} in every row; there is nothing to explain.")
    return y


def read_counts(coder: Coder, expression: str) -> tuple[Vector, Vector]:
    """Hits and trials per row of a binomial response.

    Raises BadInput for anything but 0 and 1, two levels, or whole counts.
    """
    if expression.startswith("cbind(") and expression.endswith(")"):
        parts = split_top(expression[len("cbind(") : -1], ",")
        if len(parts) != 2:
            raise BadInput(f"The response '{expression}' must be 'cbind(hits, misses)'.")
        hits, misses = (coder.vector(part.strip()) for part in parts)
    else:
        name = column_name(expression)
        factor = coder.factor(name) if name in coder.frame.columns else None
        if factor is not None and len(factor.levels) != 2:
            raise BadInput(f"The response '{expression}' has {len(factor.levels)} levels; two are needed.")
        hits = factor.codes.astype(float) if factor is not None else coder.vector(expression)
        if not np.isin(hits, (0.0, 1.0)).all():
            bad = hits[~np.isin(hits, (0.0, 1.0))][0]
            raise BadInput(
                f"The response '{expression}' contains {bad:g}; a binomial model needs 0 and 1, or "
                f"cbind(hits, misses) (ties have to be dropped or counted as wrong first)."
            )
        misses = 1.0 - hits
    whole = np.isclose(hits, np.round(hits)).all() and np.isclose(misses, np.round(misses)).all()
    if not whole or (hits < 0).any() or (misses < 0).any() or not (hits + misses).all():
        raise BadInput(f"The response '{expression}' must give whole counts, none negative, no row empty.")
    if not hits.any() or not misses.any():
        raise BadInput(f"The response '{expression}' is the same in every row; there is nothing to explain.")
    return np.round(hits), np.round(hits + misses)


def _random_effects(
    coder: Coder, table: pl.DataFrame, terms: tuple[RandomTerm, ...], *, residual: bool
) -> RandomEffects:
    groups = [_group_codes(table, term.group) for term in terms]
    parts = []
    for i in lme4_order([len(levels) for _, levels in groups]):
        z, names, _ = coder.matrix(terms[i].left)
        if not names:
            raise BadInput(f"The random term {terms[i]} has no effects; write (1 | {terms[i].group_name}).")
        codes, levels = groups[i]
        # Counts may have one row per level: an observation-level effect, and no mistake.
        if residual and z.shape[1] * len(levels) >= len(z):
            raise BadInput(
                f"The random term {terms[i]} has {z.shape[1] * len(levels)} effects for {len(z)} rows, "
                f"so it cannot be told from the residual; simplify it."
            )
        parts.append((terms[i].group_name, codes, levels, z, names))
    return build_blocks(parts)


def _group_codes(table: pl.DataFrame, group: tuple[str, ...]) -> tuple[Codes, tuple[str, ...]]:
    coded = [level_codes(take_column(table, name)) for name in group]
    if len(coded) == 1:
        return coded[0][0], tuple(coded[0][1])
    joint = reduce(lambda a, b: a * (int(b.max()) + 1) + b, [codes for codes, _ in coded])
    _, first, codes = np.unique(joint, return_index=True, return_inverse=True)
    levels = tuple(":".join(names[c[i]] for c, names in coded) for i in first)
    return codes, levels
