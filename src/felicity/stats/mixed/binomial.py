"""Binomial mixed models (logit link, Laplace approximation) on counts per cell."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import linprog
from scipy.special import expit, xlogy

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Frame, Vector, as_polars, one_thread
from felicity.stats.mixed.binomial_response import BinomialResponse, log_coefficients
from felicity.stats.mixed.coding import Coder, Contrast
from felicity.stats.mixed.fitted import FittedModel, assemble_fit, check_penalty, note_penalty
from felicity.stats.mixed.formula import Formula, parse_formula
from felicity.stats.mixed.formula_grammar import ROWWISE, Call, Name, column_name, parse_terms, walk
from felicity.stats.mixed.laplace_criterion import LaplaceCriterion, LaplacePoint
from felicity.stats.mixed.linear import fixed_table
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame, read_counts
from felicity.stats.mixed.optimum import find_minimum

FAR = 10.0
STEPS = 40


def start_logistic(hits: Vector, trials: Vector, x: Vector, names: tuple[str, ...]) -> Vector:
    """Coefficients of the logistic regression without random effects.

    Raises BadInput naming a predictor that separates hits from misses.
    """
    eta = np.log((hits + 0.5) / (trials - hits + 0.5))
    beta = np.zeros(x.shape[1])
    for _ in range(STEPS):
        mean = expit(eta)
        weights = trials * np.maximum(mean * (1.0 - mean), 1e-10)
        working = eta + (hits - trials * mean) / weights
        root = np.sqrt(weights)
        new = np.linalg.lstsq(x * root[:, None], working * root, rcond=None)[0]
        done = np.abs(new - beta).max() < 1e-6 * (1.0 + np.abs(new).max())
        beta, eta = new, np.clip(x @ new, -30.0, 30.0)
        if done:
            break
    if np.abs(eta).max() > FAR:
        _refuse_separation(hits, trials, x, names)
    return beta


def _refuse_separation(hits: Vector, trials: Vector, x: Vector, names: tuple[str, ...]) -> None:
    scale = np.abs(x).max(axis=0)
    signed = x / scale
    mixed = (hits > 0) & (hits < trials)
    sides = np.where(hits == trials, 1.0, -1.0)[~mixed, None] * signed[~mixed]
    pure = np.unique(sides, axis=0)
    both = np.unique(signed[mixed], axis=0)
    culprit = _find_separation(pure, both, names)
    if culprit is not None:
        raise BadInput(
            f"'{names[culprit]}' separates hits from misses perfectly, so its coefficient is infinite; "
            f"leave it out or merge its levels."
        )


def refuse_ordinal_separation(codes: Codes, n_levels: int, x: Vector, names: tuple[str, ...]) -> None:
    """Refuse ordered answers that a predictor separates perfectly into low and high.

    Raises BadInput naming the predictor.
    """
    k = n_levels - 1
    signed = x / np.abs(x).max(axis=0)
    below, above = codes < k, codes > 0
    # A direction of no return: every row's upper threshold rises above its predictor, the lower falls.
    ends = [
        np.hstack([np.eye(k)[codes[below]], -signed[below]]),
        np.hstack([-np.eye(k)[codes[above] - 1], signed[above]]),
    ]
    pure = np.unique(np.vstack(ends), axis=0)
    culprit = _find_separation(pure, np.zeros((0, pure.shape[1])), ("(Intercept)",) * k + names)
    if culprit is not None:
        raise BadInput(
            f"'{names[culprit - k]}' separates low from high answers perfectly, so its coefficient is "
            f"infinite; leave it out or merge its levels."
        )


def _find_separation(pure: Vector, both: Vector, names: tuple[str, ...]) -> int | None:
    """The predictor that moves most in a direction with pure @ d >= 0, not all 0, and both @ d = 0."""
    solution = linprog(
        -pure.sum(axis=0),
        A_ub=-pure,
        b_ub=np.zeros(len(pure)),
        A_eq=both if len(both) else None,
        b_eq=np.zeros(len(both)) if len(both) else None,
        bounds=[(-1.0, 1.0)] * pure.shape[1],
    )
    if solution.status != 0 or -solution.fun <= 1e-6:
        return None
    direction = np.abs(solution.x)
    candidates = [i for i, name in enumerate(names) if name != "(Intercept)"] or [0]
    return max(candidates, key=lambda i: float(direction[i]))


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
    penalty: float | None = None,
) -> FittedModel:
    """Fit a logistic mixed model, `cbind(hits, n - hits) ~ period + (1 | herd)` or `correct ~ ...`.

    The response is 0/1, a factor of two levels (the second is a hit) or counts; rows alike in every
    predictor are merged into counts first, which changes no estimate. Tests are Wald z.

    penalty: the scale, in log-odds, of a weak prior on the SDs of random effects (`penalize_covariances`),
        for data that separate right from wrong; 2 is weak.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to.
    """
    parsed = parse_formula(formula) if isinstance(formula, str) else formula
    table = as_polars(frame)
    hits, trials = read_counts(Coder(table), parsed.response)
    cells = merge_rows(table, parsed, hits, trials)
    counts = (cells.table[".hits"].to_numpy(), cells.table[".trials"].to_numpy())
    data = build_model_frame(parsed, cells.table, contrasts=contrasts, counts=counts)
    return _fit(data, cells, hits, trials, level, check_penalty(penalty))


def merge_rows(table: pl.DataFrame, formula: Formula, hits: Vector, trials: Vector) -> Cells:
    """Counts per distinct combination of the predictors, if the formula allows merging."""
    nodes = [node for side in formula.sides for atom in parse_terms(side) for node in walk(atom.node)]
    names = {column_name(node.text) for node in nodes if isinstance(node, Name)}
    names |= {name for term in formula.random for name in term.group}
    calls = {node.function for node in nodes if isinstance(node, Call)}
    used = [name for name in table.columns if name in names]
    counted = table.select(used).with_columns(
        pl.Series(".hits", hits), pl.Series(".trials", trials), pl.int_range(pl.len()).alias(".row")
    )
    rows = np.arange(table.height)
    if not used or calls - set(ROWWISE):
        return Cells(counted, rows, np.ones(len(rows)))
    merged = counted.group_by(used, maintain_order=True).agg(
        pl.col(".hits").sum(), pl.col(".trials").sum(), pl.col(".row")
    )
    lengths = merged[".row"].list.len().to_numpy()
    cell = np.empty(len(rows), dtype=np.int64)
    cell[merged[".row"].explode().to_numpy()] = np.repeat(np.arange(merged.height), lengths)
    return Cells(merged.drop(".row"), cell, lengths.astype(np.float64))


def _fit(
    data: ModelFrame, cells: Cells, hits: Vector, trials: Vector, level: float, penalty: float | None
) -> FittedModel:
    own_trials = data.trials if data.trials is not None else np.ones(data.n)
    start = start_logistic(data.y, own_trials, data.x, data.names)
    response = BinomialResponse(data.y, own_trials, data.x, start)
    criterion = LaplaceCriterion(response, data.effects, penalty)
    optimum = find_minimum(criterion.value_and_gradient, criterion.start)
    point = criterion.at(optimum.x, slopes=False)
    theta, gamma = criterion.split(optimum.x)
    beta, vcov = response.beta(gamma), response.covariance(criterion.gamma_covariance(optimum))
    deviance = point.deviance - 2.0 * log_coefficients(hits, trials)
    fitted = _describe(
        data, cells, (hits, trials), point, theta, beta, vcov, deviance, optimum.gradient, level
    )
    return note_penalty(fitted, penalty)


def _describe(
    data: ModelFrame,
    cells: Cells,
    counts: tuple[Vector, Vector],
    point: LaplacePoint,
    theta: Vector,
    beta: Vector,
    vcov: Vector,
    deviance: float,
    slope: float,
    level: float,
) -> FittedModel:
    fitted = expit(data.x @ beta + point.random)[cells.cell]
    return assemble_fit(
        data,
        family="binomial",
        link="logit",
        method="Laplace",
        level=level,
        n=len(cells.cell),
        weights=cells.rows,
        fixed=fixed_table(data.names, beta, vcov, None, level),
        theta=data.effects.with_positive_diagonal(theta),
        modes=point.elimination.times_factor(point.u)[:, 0],
        predictor=data.x @ beta,
        deviance=deviance,
        slope=slope,
        fitted=fitted,
        residuals=deviance_residuals(*counts, fitted),
        vcov=vcov,
        core=point,
    )


def deviance_residuals(hits: Vector, trials: Vector, fitted: Vector) -> Vector:
    """Signed roots of each row's share of the deviance."""
    misses = trials - hits
    # As differences: a probability of exactly 0 or 1 would divide 0 by 0.
    share = xlogy(hits, hits) - xlogy(hits, trials * fitted)
    share += xlogy(misses, misses) - xlogy(misses, trials * (1.0 - fitted))
    return np.asarray(np.sign(hits - trials * fitted) * np.sqrt(np.maximum(2.0 * share, 0.0)))
