"""Backward reduction of a linear mixed model, as lmerTest's step() does it.

First the random part: likelihood-ratio tests by REML of each term that can be left out or made
simpler, the least significant one reduced until all p fall below `alpha_random`. Then the fixed part:
F tests with Satterthwaite's degrees of freedom of each term that no other contains.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.stats.frames import Frame, Vector
from felicity.stats.mixed.coding import Contrast
from felicity.stats.mixed.compare_models import lr_test
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.formula import Formula, RandomTerm, expand_terms, parse_formula
from felicity.stats.mixed.linear import fit_lmm, satterthwaite_of
from felicity.stats.mixed.model_frame import build_model_frame

RANDOM_SCHEMA = {
    "term": pl.String,
    "eliminated": pl.Int64,
    "chisq": pl.Float64,
    "df": pl.Int64,
    "p": pl.Float64,
}
FIXED_SCHEMA = {
    "term": pl.String,
    "eliminated": pl.Int64,
    "f": pl.Float64,
    "df": pl.Int64,
    "df_residual": pl.Float64,
    "p": pl.Float64,
}


@dataclass(frozen=True)
class Reduction:
    """The model found, and every test on the way; `eliminated` counts steps, 0 for what stayed."""

    model: FittedModel
    random: pl.DataFrame
    fixed: pl.DataFrame


def reduce_lmm(
    formula: str,
    frame: Frame,
    *,
    alpha_random: float = 0.1,
    alpha_fixed: float = 0.05,
    contrasts: Mapping[str, Contrast] | None = None,
) -> Reduction:
    """Leave out, one at a time, what a linear mixed model does not need.

    One random term always stays, for without any the model is ordinary regression.
    """
    parsed = parse_formula(formula)
    model = fit_lmm(parsed, frame, contrasts=contrasts)
    random_rows: list[dict[str, object]] = []
    fixed_rows: list[dict[str, object]] = []
    parsed, model = _reduce_random(parsed, model, frame, alpha_random, contrasts, random_rows)
    parsed, model = _reduce_fixed(parsed, model, frame, alpha_fixed, contrasts, fixed_rows)
    return Reduction(
        model, pl.DataFrame(random_rows, schema=RANDOM_SCHEMA), pl.DataFrame(fixed_rows, schema=FIXED_SCHEMA)
    )


def drop_random_terms(
    model: FittedModel, frame: Frame, *, contrasts: Mapping[str, Contrast] | None = None
) -> pl.DataFrame:
    """Likelihood-ratio test of each reducible random effect, as lmerTest's ranova()."""
    rows = [row for row, _, _ in _random_candidates(model.frame.formula, model, frame, contrasts)]
    return pl.DataFrame([row | {"eliminated": 0} for row in rows], schema=RANDOM_SCHEMA).drop("eliminated")


def _reduce_random(
    formula: Formula,
    model: FittedModel,
    frame: Frame,
    alpha: float,
    contrasts: Mapping[str, Contrast] | None,
    rows: list[dict[str, object]],
) -> tuple[Formula, FittedModel]:
    step = 0
    while candidates := _random_candidates(formula, model, frame, contrasts):
        row, smaller, fitted = max(candidates, key=lambda candidate: float(str(candidate[0]["p"])))
        if float(str(row["p"])) <= alpha:
            rows.extend(own | {"eliminated": 0} for own, _, _ in candidates)
            break
        step += 1
        rows.append(row | {"eliminated": step})
        formula, model = smaller, fitted
    return formula, model


def _random_candidates(
    formula: Formula, model: FittedModel, frame: Frame, contrasts: Mapping[str, Contrast] | None
) -> list[tuple[dict[str, object], Formula, FittedModel]]:
    out = []
    for term in formula.random:
        for label, smaller in _simpler(formula, term):
            if not smaller.random:
                continue
            fitted = fit_lmm(smaller, frame, contrasts=contrasts)
            chisq, df, p = lr_test(fitted, model)
            out.append(({"term": label, "chisq": chisq, "df": df, "p": p}, smaller, fitted))
    return out


def _simpler(formula: Formula, term: RandomTerm) -> list[tuple[str, Formula]]:
    effects = expand_terms(term.left)
    slopes = [effect for effect in effects if effect != "1"]
    if len(effects) == 1:
        return [(str(term), formula.without_random(term))]
    out = []
    for slope in _droppable(slopes):
        kept = [effect for effect in effects if effect != slope]
        left = " + ".join(kept if "1" in kept else ["0", *kept])
        out.append((f"{slope} in {term}", formula.without_random(term, replace(term, left=left))))
    return out


def _reduce_fixed(
    formula: Formula,
    model: FittedModel,
    frame: Frame,
    alpha: float,
    contrasts: Mapping[str, Contrast] | None,
    rows: list[dict[str, object]],
) -> tuple[Formula, FittedModel]:
    terms, step = expand_terms(formula.fixed), 0
    while droppable := _droppable([term for term in terms if term != "1"]):
        tests = [_test_term(formula, model, frame, terms, term, contrasts) for term in droppable]
        worst = max(tests, key=lambda row: float(str(row["p"])))
        if float(str(worst["p"])) <= alpha:
            rows.extend(row | {"eliminated": 0} for row in tests)
            break
        step += 1
        rows.append(worst | {"eliminated": step})
        terms = [term for term in terms if term != worst["term"]]
        formula = replace(formula, fixed=_join(terms))
        model = fit_lmm(formula, frame, contrasts=contrasts)
    return formula, model


def _droppable(terms: list[str]) -> list[str]:
    parts = {term: set(term.split(":")) for term in terms}
    return [term for term in terms if not any(parts[term] < parts[other] for other in terms)]


def _join(terms: list[str]) -> str:
    if not terms:
        raise BadInput(
            "Every fixed effect would be left out, the intercept included; add '1' to the formula."
        )
    return " + ".join(terms if "1" in terms else ["0", *terms])


def _test_term(
    formula: Formula,
    model: FittedModel,
    frame: Frame,
    terms: list[str],
    term: str,
    contrasts: Mapping[str, Contrast] | None,
) -> dict[str, object]:
    smaller = replace(formula, fixed=_join([other for other in terms if other != term]))
    x0 = build_model_frame(smaller, frame, contrasts=contrasts).x
    statistic, df, df_residual, p = satterthwaite_of(model).f_test(_contrasts(model.frame.x, x0))
    return {"term": term, "f": statistic, "df": df, "df_residual": df_residual, "p": p}


def _contrasts(x: Vector, x0: Vector) -> Vector:
    """Rows L such that L beta = 0 just where x beta lies in the columns of x0."""
    basis = np.linalg.qr(x0)[0]
    left = x - basis @ (basis.T @ x)
    _, sizes, rows = np.linalg.svd(left, full_matrices=False)
    return np.asarray(rows[sizes > 1e-8 * max(1.0, float(np.abs(x).max()))])
