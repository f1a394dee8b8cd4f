"""Linear mixed models by REML or ML, with Satterthwaite tests of the fixed effects."""

from collections.abc import Mapping
from math import log, sqrt

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.frames import Frame, Vector
from felicity.stats.mixed.coding import Contrast
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.formula import Formula
from felicity.stats.mixed.linear_criterion import LinearCriterion, LinearPoint
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame
from felicity.stats.mixed.optimum import find_minimum
from felicity.stats.mixed.r_squared import nakagawa_r2
from felicity.stats.mixed.satterthwaite import Satterthwaite, prepare_satterthwaite
from felicity.stats.mixed.variance_tables import is_singular, modes_table, variance_table
from felicity.stats.threads import one_thread

SLOPE_LEFT = 1e-2
EXACT_BELOW = 1e-10


@one_thread
def fit_lmm(
    formula: str | Formula,
    frame: Frame,
    *,
    reml: bool = True,
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
) -> FittedModel:
    """Fit a linear mixed model, `rt ~ cond + (1 + cond | subj) + (1 | item)`, to lme4's numbers.

    reml: restricted maximum likelihood, else maximum likelihood.
    contrasts: per factor 'treatment' (default), 'sum', or the numbers of each level.
    level: of the Wald intervals, which use the Satterthwaite degrees of freedom.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to.
    """
    return fit_linear_frame(build_model_frame(formula, frame, contrasts=contrasts), reml=reml, level=level)


@one_thread
def fit_linear_frame(data: ModelFrame, *, reml: bool, level: float = 0.95) -> FittedModel:
    """Fit a model whose arrays are built already."""
    criterion = LinearCriterion(data.y, data.x, data.effects, reml=reml)
    if criterion.inner[-1, -1] <= EXACT_BELOW * float(((data.y - data.y.mean()) ** 2).sum()):
        raise BadInput("The fixed effects explain the response exactly; there is no residual to model.")
    optimum = find_minimum(criterion.value_and_gradient, data.effects.start)
    theta = data.effects.with_positive_diagonal(optimum.x)
    point = criterion.at(theta)
    singular = is_singular(data.effects, theta)
    return _describe(data, point, singular, fit_notes(singular, optimum.gradient), level)


def fixed_table(
    names: tuple[str, ...], estimates: Vector, vcov: Vector, dfs: list[float] | None, level: float
) -> pl.DataFrame:
    """Wald tests and intervals of the fixed effects: t with these df, or z without."""
    se = np.sqrt(np.diag(vcov))
    statistic = estimates / se
    spread = stats.t(np.array(dfs)) if dfs is not None else stats.norm()
    reach = spread.ppf(0.5 + level / 2.0) * se
    return pl.DataFrame(
        {
            "term": names,
            "estimate": estimates,
            "se": se,
            "df": pl.Series(dfs if dfs is not None else [None] * len(names), dtype=pl.Float64),
            "statistic": statistic,
            "p": 2.0 * spread.sf(np.abs(statistic)),
            "low": estimates - reach,
            "high": estimates + reach,
        }
    )


@one_thread
def satterthwaite_of(model: FittedModel) -> Satterthwaite:
    """What further contrasts of a linear model are tested with."""
    point: LinearPoint = model.core
    return prepare_satterthwaite(point.criterion, point.theta, sqrt(point.sigma2))


def fit_notes(singular: bool, slope: float) -> tuple[str, ...]:
    """What a reader must know of a fit."""
    notes = []
    if singular:
        notes.append("The fit is singular: a variance is 0 or a correlation 1; simplify the random part.")
    if slope > SLOPE_LEFT:
        notes.append(f"The optimizer stopped with a slope of {slope:.2g} left; treat the numbers with care.")
    return tuple(notes)


def _describe(
    data: ModelFrame, point: LinearPoint, singular: bool, notes: tuple[str, ...], level: float
) -> FittedModel:
    criterion, theta, sigma = point.criterion, point.theta, sqrt(point.sigma2)
    tests = prepare_satterthwaite(criterion, theta, sigma)
    dfs = [tests.df(row) for row in np.eye(criterion.p)]
    random, correlations = variance_table(data.effects, theta, sigma)
    on_fixed = data.x @ point.beta
    modes = point.modes
    fitted = on_fixed + data.effects.spread(modes)
    marginal, conditional = nakagawa_r2(on_fixed, data.effects, theta, sigma)
    count = criterion.p + data.effects.n_theta + 1
    return FittedModel(
        formula=str(data.formula),
        family="gaussian",
        method="REML" if criterion.reml else "ML",
        level=level,
        n=data.n,
        groups={block.group: len(block.levels) for block in data.effects.blocks},
        fixed=fixed_table(data.names, point.beta, tests.vcov, dfs, level),
        random=random,
        correlations=correlations,
        modes=modes_table(data.effects, modes),
        criterion=point.deviance,
        log_likelihood=-point.deviance / 2.0,
        n_parameters=count,
        aic=point.deviance + 2.0 * count,
        bic=point.deviance + log(data.n) * count,
        singular=singular,
        sigma=sigma,
        r2_marginal=marginal,
        r2_conditional=conditional,
        fitted=fitted,
        residuals=data.y - fitted,
        vcov=tests.vcov,
        theta=theta,
        frame=data,
        core=point,
        notes=notes,
    )
