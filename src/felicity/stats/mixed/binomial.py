"""Binomial mixed models (logit link, Laplace approximation) on counts per cell."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np
import polars as pl
from scipy.special import expit, xlogy

from felicity.core.errors import NotPossible
from felicity.stats.frames import Codes, Frame, Vector, as_polars
from felicity.stats.mixed.binomial_criterion import BinomialCriterion, BinomialPoint, log_coefficients
from felicity.stats.mixed.coding import NAME, Coder, Contrast
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.formula import Formula, parse_formula
from felicity.stats.mixed.linear import fit_notes, fixed_table
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame, read_counts
from felicity.stats.mixed.optimum import Optimum, find_minimum
from felicity.stats.mixed.r_squared import nakagawa_r2
from felicity.stats.mixed.separation import start_logistic
from felicity.stats.mixed.variance_tables import is_singular, modes_table, variance_table
from felicity.stats.threads import one_thread

# Functions whose value in a row depends on that row alone, so that equal rows may be merged first.
ROWWISE = {"C", "factor", "as.factor", "I", "log", "log2", "log10", "exp", "sqrt", "abs", "cbind"}
CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")


@dataclass(frozen=True)
class Cells:
    """Rows merged by equal predictors; `cell` is the cell of each original row."""

    table: pl.DataFrame
    cell: Codes
    rows: Vector


@one_thread
def fit_glmm(
    formula: str | Formula,
    frame: Frame,
    *,
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
) -> FittedModel:
    """Fit a logistic mixed model, `cbind(hits, n - hits) ~ period + (1 | herd)` or `correct ~ ...`.

    The response is 0/1, a factor of two levels (the second is a hit) or counts; rows alike in every
    predictor are merged into counts first, which changes no estimate. Tests are Wald z.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to.
    """
    parsed = parse_formula(formula) if isinstance(formula, str) else formula
    table = as_polars(frame)
    hits, trials = read_counts(Coder(table, formula=parsed.response), parsed.response)
    cells = merge_rows(table, parsed, hits, trials)
    counts = (cells.table[".hits"].to_numpy(), cells.table[".trials"].to_numpy())
    data = build_model_frame(parsed, cells.table, contrasts=contrasts, counts=counts)
    return _fit(data, cells, hits, trials, level)


def merge_rows(table: pl.DataFrame, formula: Formula, hits: Vector, trials: Vector) -> Cells:
    """Counts per distinct combination of the predictors, where the formula allows merging."""
    sides = " + ".join(
        [formula.fixed, *(f"{term.left} + {' + '.join(term.group)}" for term in formula.random)]
    )
    names = {found.group().strip("`") for found in NAME.finditer(sides)}
    used = [name for name in table.columns if name in names]
    counted = table.select(used).with_columns(
        pl.Series(".hits", hits), pl.Series(".trials", trials), pl.int_range(pl.len()).alias(".row")
    )
    rows = np.arange(table.height)
    if not used or set(CALL.findall(sides)) - ROWWISE:
        return Cells(counted, rows, np.ones(len(rows)))
    merged = counted.group_by(used, maintain_order=True).agg(
        pl.col(".hits").sum(), pl.col(".trials").sum(), pl.col(".row")
    )
    lengths = merged[".row"].list.len().to_numpy()
    cell = np.empty(len(rows), dtype=np.int64)
    cell[merged[".row"].explode().to_numpy()] = np.repeat(np.arange(merged.height), lengths)
    return Cells(merged.drop(".row"), cell, lengths.astype(np.float64))


def _fit(data: ModelFrame, cells: Cells, hits: Vector, trials: Vector, level: float) -> FittedModel:
    own_trials = data.trials if data.trials is not None else np.ones(data.n)
    start = start_logistic(data.y, own_trials, data.x, data.names)
    criterion = BinomialCriterion(data.y, own_trials, data.x, data.effects, start)
    optimum = find_minimum(criterion.value_and_gradient, criterion.start)
    point = criterion.at(optimum.x, slopes=False)
    theta, beta = criterion.split(optimum.x)
    vcov = _vcov(criterion, optimum)
    deviance = point.deviance - 2.0 * log_coefficients(hits, trials)
    return _describe(data, cells, (hits, trials), point, theta, beta, vcov, deviance, optimum.gradient, level)


def _vcov(criterion: BinomialCriterion, optimum: Optimum) -> Vector:
    values = np.linalg.eigvalsh(optimum.hessian)
    if values[0] <= 0:
        raise NotPossible(
            "The likelihood is flat in some direction, so standard errors do not exist; simplify the model."
        )
    n = criterion.effects.n_theta
    inner = 2.0 * np.linalg.inv(optimum.hessian)[n:, n:]
    return np.asarray(criterion.scaling @ inner @ criterion.scaling.T)


def _describe(
    data: ModelFrame,
    cells: Cells,
    counts: tuple[Vector, Vector],
    point: BinomialPoint,
    theta: Vector,
    beta: Vector,
    vcov: Vector,
    deviance: float,
    slope: float,
    level: float,
) -> FittedModel:
    effects = data.effects
    modes = point.elimination.times_factor(point.u)[:, 0]
    theta = effects.with_positive_diagonal(theta)
    singular = is_singular(effects, theta)
    random, correlations = variance_table(effects, theta, None)
    marginal, conditional = nakagawa_r2(data.x @ beta, effects, theta, None, cells.rows)
    count = len(beta) + effects.n_theta
    fitted = expit(point.eta)[cells.cell]
    n = len(cells.cell)
    return FittedModel(
        formula=str(data.formula),
        family="binomial",
        method="Laplace",
        level=level,
        n=n,
        groups={block.group: len(block.levels) for block in effects.blocks},
        fixed=fixed_table(data.names, beta, vcov, None, level),
        random=random,
        correlations=correlations,
        modes=modes_table(effects, modes),
        criterion=deviance,
        log_likelihood=-deviance / 2.0,
        n_parameters=count,
        aic=deviance + 2.0 * count,
        bic=deviance + log(n) * count,
        singular=singular,
        sigma=None,
        r2_marginal=marginal,
        r2_conditional=conditional,
        fitted=fitted,
        residuals=deviance_residuals(*counts, fitted),
        vcov=vcov,
        theta=theta,
        frame=data,
        core=point,
        notes=fit_notes(singular, slope),
    )


def deviance_residuals(hits: Vector, trials: Vector, fitted: Vector) -> Vector:
    """Signed roots of each row's share of the deviance."""
    misses = trials - hits
    share = xlogy(hits, hits / (trials * fitted)) + xlogy(misses, misses / (trials * (1.0 - fitted)))
    return np.asarray(np.sign(hits - trials * fitted) * np.sqrt(np.maximum(2.0 * share, 0.0)))
