"""Profile-likelihood intervals of a linear mixed model, as lme4's confint() gives them.

A value lies in the interval when the best model that has this value is not much worse than the best
of all: the deviance (always by ML) rises by less than the quantile of chi-squared with one degree of
freedom. Fixed effects are profiled in closed form given theta; a standard deviation fixes the length
of its row of the covariance factor.
"""

from collections.abc import Callable, Sequence
from math import log, pi, sqrt

import numpy as np
import polars as pl
from scipy import stats
from scipy.optimize import brentq, minimize

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.stats.frames import Vector, one_thread
from felicity.stats.mixed.compare_models import refit_by_ml
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.linear_criterion import LinearCriterion, LinearPoint

Deviance = Callable[[float], float]

WIDENINGS = 40
ASLEEP = 1e-3
AWAKE = 0.05


@one_thread
def profile_intervals(
    model: FittedModel, *, level: float = 0.95, terms: Sequence[str] | None = None
) -> pl.DataFrame:
    """Intervals of every fixed effect, standard deviation and the residual's.

    Columns: kind ('fixed' or 'sd'), group, term, estimate (by ML), low, high.
    terms: only these fixed effects, and no standard deviation.

    Raises BadInput for a binomial or cumulative model, whose Wald intervals are in its table.
    """
    if model.family != "gaussian":
        raise BadInput("Profile intervals are for linear mixed models; others have Wald intervals.")
    best = refit_by_ml(model)
    point: LinearPoint = best.core
    rise = float(stats.chi2.ppf(level, 1))
    rows = []
    for name in terms or ():
        if name not in best.frame.names:
            raise UnknownName("fixed effect", name, best.frame.names)
    for j, row in enumerate(best.fixed.to_dicts()):
        if terms is not None and row["term"] not in terms:
            continue
        deviance = _fixed_profile(point, j)
        low, high = (
            _cross(deviance, row["estimate"], sign * row["se"], point.deviance + rise) for sign in (-1, 1)
        )
        rows.append(_row("fixed", None, row["term"], row["estimate"], low, high))
    if terms is None:
        rows.extend(_sd_rows(best, point, rise))
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(
    kind: str, group: str | None, term: str | None, estimate: float, low: float, high: float
) -> dict[str, object]:
    return {"kind": kind, "group": group, "term": term, "estimate": estimate, "low": low, "high": high}


def _sd_rows(best: FittedModel, point: LinearPoint, rise: float) -> list[dict[str, object]]:
    sigma, goal, rows = sqrt(point.sigma2), point.deviance + rise, []
    effects = point.criterion.effects
    sds = {(row["group"], row["term"]): row["sd"] for row in best.random.to_dicts()}
    for label in effects.labels:
        for b, block in enumerate(effects.blocks):
            for i, own in enumerate(block.labels):
                if own != label:
                    continue
                deviance = _sd_profile(point, b, i)
                sd = sds[label, block.names[i]]
                scaled = sd * block.scale[i]
                low = (
                    0.0
                    if deviance(0.0) <= goal
                    else float(brentq(lambda v, f=deviance: f(v) - goal, 0.0, scaled))
                )
                high = _cross(deviance, scaled, max(0.2 * scaled, 0.1 * sigma), goal)
                rows.append(
                    _row("sd", label, block.names[i], sd, low / block.scale[i], high / block.scale[i])
                )
    deviance = _sigma_profile(point)
    step = sigma / sqrt(2.0 * point.criterion.n)
    low, high = (_cross(deviance, sigma, sign * step, goal) for sign in (-1, 1))
    rows.append(_row("sd", "Residual", None, sigma, low, high))
    return rows


def _cross(deviance: Deviance, start: float, step: float, goal: float) -> float:
    """Where the profile reaches the goal, going from `start` in steps of growing length."""
    inside, outside = start, start + step
    for _ in range(WIDENINGS):
        if deviance(outside) > goal:
            return float(brentq(lambda at: deviance(at) - goal, inside, outside, xtol=1e-7 * abs(step)))
        inside, outside = outside, outside + step
        step *= 1.3
    raise NotPossible("The profile never rises enough for an interval; simplify the random part.")


def _minimum(function: Callable[[Vector], tuple[float, Vector]], start: Vector) -> tuple[float, Vector]:
    if not len(start):
        return function(start)[0], start
    # Zero is a stationary point of every covariance parameter, so no search may start there.
    awake = np.where(np.abs(start) < ASLEEP, AWAKE, start)
    found = minimize(function, awake, jac=True, method="BFGS", options={"gtol": 1e-5})
    return float(found.fun), found.x


def _fixed_profile(point: LinearPoint, j: int) -> Deviance:
    criterion, memory = point.criterion, [point.theta]

    def at(value: float) -> float:
        def function(theta: Vector) -> tuple[float, Vector]:
            here = criterion.at(theta)
            gap, variance = value - here.beta[j], here.unscaled_vcov[j, j]
            total = here.r2 + gap**2 / variance
            slope = here.r2_gradient - 2.0 * gap * here.beta_gradient[:, j] / variance
            slope = slope - gap**2 * here.unscaled_vcov_gradient[:, j, j] / variance**2
            deviance = here.log_dets + criterion.n * (1.0 + log(2.0 * pi * total / criterion.n))
            return deviance, here.log_dets_gradient + criterion.n * slope / total

        deviance, memory[0] = _minimum(function, memory[0])
        return deviance

    return at


def _sigma_profile(point: LinearPoint) -> Deviance:
    criterion, memory = point.criterion, [point.theta]

    def at(sigma: float) -> float:
        def function(theta: Vector) -> tuple[float, Vector]:
            here = criterion.at(theta)
            return here.deviance_at(sigma), here.gradient_at(sigma)[:-1]

        if sigma <= 0:
            return float("inf")
        deviance, memory[0] = _minimum(function, memory[0])
        return deviance

    return at


def _sd_profile(point: LinearPoint, b: int, i: int) -> Deviance:
    """The profile of one standard deviation on the columns' scaling.

    The parameters are (theta, log sigma); only the direction of the fixed row of the factor counts.
    """
    criterion = point.criterion
    part = criterion.effects.theta_slices[b]
    row = [part.start + k for k, (r, _) in enumerate(criterion.effects.blocks[b].positions) if r == i]
    memory = [np.append(point.theta, 0.5 * log(point.sigma2))]

    def at(sd: float) -> float:
        def function(parameters: Vector) -> tuple[float, Vector]:
            return _at_fixed_length(criterion, parameters, row, sd)

        deviance, memory[0] = _minimum(function, memory[0])
        return deviance

    return at


def _at_fixed_length(
    criterion: LinearCriterion, parameters: Vector, row: list[int], sd: float
) -> tuple[float, Vector]:
    theta, sigma = parameters[:-1].copy(), float(np.exp(parameters[-1]))
    length = float(np.linalg.norm(theta[row]))
    direction = theta[row] / length
    theta[row] = direction * sd / sigma
    here = criterion.at(theta)
    gradient = here.gradient_at(sigma)
    own = gradient[row]
    out = gradient.copy()
    # The row is a direction times sd / sigma: only turning it counts, and sigma shortens it.
    out[row] = (own - (own @ direction) * direction) * sd / (sigma * length)
    out[-1] = gradient[-1] * sigma - own @ theta[row]
    return here.deviance_at(sigma), out
