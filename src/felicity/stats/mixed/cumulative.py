"""Cumulative link mixed models of ordered categories, such as ratings, to the numbers of ordinal's clmm."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.stats.frames import Codes, Frame, Vector, as_polars, level_codes, one_thread, take_column
from felicity.stats.mixed.binomial import refuse_ordinal_separation
from felicity.stats.mixed.coding import Coder, Contrast
from felicity.stats.mixed.cumulative_response import LINKS, CumulativeResponse, CumulativeRows
from felicity.stats.mixed.fitted import FittedModel, assemble_fit, check_penalty, note_penalty
from felicity.stats.mixed.formula import Formula, parse_formula
from felicity.stats.mixed.formula_grammar import Call, Name, column_name, parse_value
from felicity.stats.mixed.laplace_criterion import LaplaceCriterion
from felicity.stats.mixed.linear import fixed_table
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame
from felicity.stats.mixed.optimum import find_minimum

LinkName = Literal["logit", "probit"]

# A slider of 0 to 100 has 101 levels; what has many more is a measurement.
MOST_LEVELS = 200


@dataclass(frozen=True)
class OrderedResponse:
    """An ordered response: the code of each row's level, and the names of the levels from low to high."""

    codes: Codes
    levels: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Names of the thresholds, '1|2' and so on."""
        return tuple(f"{low}|{high}" for low, high in zip(self.levels, self.levels[1:], strict=False))


@one_thread
def fit_clmm(
    formula: str | Formula,
    frame: Frame,
    *,
    link: LinkName = "logit",
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
    penalty: float | None = None,
) -> FittedModel:
    """Fit an ordinal mixed model, `rating ~ context * bias + (1 | rater) + (1 | item)`.

    The response is whole numbers, an Enum, true and false, or `factor(x)`. A positive estimate makes higher
    levels more likely; thresholds are flexible. Laplace approximation, Wald z from the observed information.
    penalty: as in `fit_glmm`.

    Raises BadInput or UnknownName in a sentence for data no model can be fitted to.
    """
    parsed = parse_formula(formula) if isinstance(formula, str) else formula
    table = as_polars(frame)
    answers = read_ordered(table, parsed.response)
    counts = (answers.codes.astype(np.float64), None)
    data = build_model_frame(parsed, table, contrasts=contrasts, counts=counts)
    x, names = without_intercept(data.x, data.names)
    response = fit_thresholds(answers, x, names, link)
    criterion = LaplaceCriterion(response, data.effects, check_penalty(penalty))
    optimum = find_minimum(criterion.value_and_gradient, criterion.start)
    gamma = criterion.split(optimum.x)[1]
    vcov = response.covariance(criterion.gamma_covariance(optimum), gamma)
    data = replace(data, x=x, names=names, terms=data.terms[1:])
    fitted = _describe(data, answers, criterion, optimum.x, vcov, optimum.gradient, level)
    return note_penalty(fitted, penalty)


def read_ordered(table: pl.DataFrame, expression: str) -> OrderedResponse:
    """The ordered levels of a response.

    Raises BadInput for text whose order is unknown, numbers that are not whole, one level, or too many.
    """
    match parse_value(expression):
        case Call("factor" | "as.factor" | "C", (Name(text),), ()):
            series = take_column(table, column_name(text))
        case Name(text):
            series = take_column(table, column_name(text))
            _check_ordered(series, expression)
        case Call("cbind"):
            raise BadInput("A response 'cbind(hits, misses)' needs a binomial model; use family binomial.")
        case _:
            series = pl.Series(expression, Coder(table).vector(expression))
            _check_ordered(series, expression)
    codes, names = level_codes(series)
    used = np.unique(codes)
    levels = tuple(names[i] for i in used)
    if len(levels) < 2:
        raise BadInput(
            f"The response '{expression}' is {levels[0]} in every row; there is nothing to explain."
        )
    if len(levels) > MOST_LEVELS:
        raise BadInput(
            f"The response '{expression}' has {len(levels)} different values; a cumulative model is for "
            f"scales of at most {MOST_LEVELS} points, so use family gaussian."
        )
    return OrderedResponse(np.searchsorted(used, codes), levels, _level_notes(levels, series))


def _check_ordered(series: pl.Series, expression: str) -> None:
    if series.dtype in (pl.String, pl.Categorical):
        raise BadInput(
            f"The response '{expression}' is text, so the order of its levels is unknown; give numbers such "
            f"as 1 to 5, or factor({expression}) if the order of the alphabet is right."
        )
    if not series.dtype.is_numeric():
        return
    values = series.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        raise BadInput(f"The response '{expression}' has infinite values; drop or correct those rows.")
    odd = values[values != np.round(values)]
    if len(odd):
        raise BadInput(
            f"The response '{expression}' contains {odd[0]:g}; a cumulative model needs single answers as "
            f"whole numbers, not means (for a scale with half points, double it)."
        )


def _level_notes(levels: tuple[str, ...], series: pl.Series) -> tuple[str, ...]:
    notes = []
    if series.dtype.is_numeric() and all(level.lstrip("-").isdigit() for level in levels):
        low, high = int(levels[0]), int(levels[-1])
        unused = (
            [str(i) for i in range(low, high + 1) if str(i) not in set(levels)] if high - low < 1000 else []
        )
        if unused:
            notes.append(f"Nobody answered {', '.join(unused)}; those levels have no threshold of their own.")
    if len(levels) == 2:
        notes.append("With two levels this is a binomial model; its intercept is minus the threshold.")
    return tuple(notes)


def without_intercept(x: Vector, names: tuple[str, ...]) -> tuple[Vector, tuple[str, ...]]:
    """A design less its intercept, which the thresholds replace.

    Raises BadInput if the formula has taken the intercept out.
    """
    if "(Intercept)" not in names:
        raise BadInput("A cumulative model has thresholds for its intercept; leave '0 +' or '- 1' out.")
    kept = [i for i, name in enumerate(names) if name != "(Intercept)"]
    return x[:, kept], tuple(names[i] for i in kept)


def fit_thresholds(
    answers: OrderedResponse, x: Vector, names: tuple[str, ...], link: str
) -> CumulativeResponse:
    """The response with its regression without random effects.

    Raises UnknownName for another link, BadInput naming a predictor that separates low from high answers.
    """
    if link not in LINKS:
        raise UnknownName("link", link, LINKS)
    try:
        response = CumulativeResponse(answers.codes, len(answers.levels), x, LINKS[link])
    except np.linalg.LinAlgError as error:
        refuse_ordinal_separation(answers.codes, len(answers.levels), x, names)
        raise NotPossible("The thresholds could not be estimated; merge levels that are rare.") from error
    if x.shape[1] and response.is_far:
        refuse_ordinal_separation(answers.codes, len(answers.levels), x, names)
    return response


def threshold_table(boundaries: tuple[str, ...], estimates: Vector, vcov: Vector) -> pl.DataFrame:
    """Thresholds with their standard errors."""
    return pl.DataFrame({"term": boundaries, "estimate": estimates, "se": np.sqrt(np.diag(vcov))})


def ordinal_residuals(rows: CumulativeRows, random: Vector) -> Vector:
    """Probability of a lower answer minus that of a higher one (Li & Shepherd 2012)."""
    log_cdf = rows.link.log_cdf
    return np.asarray(np.exp(log_cdf(rows.below - random)) - np.exp(log_cdf(random - rows.above)))


def _describe(
    data: ModelFrame,
    answers: OrderedResponse,
    criterion: LaplaceCriterion,
    parameters: Vector,
    vcov: Vector,
    slope: float,
    level: float,
) -> FittedModel:
    response = criterion.response
    if not isinstance(response, CumulativeResponse):
        raise TypeError("A cumulative model needs a cumulative response.")
    theta, gamma = criterion.split(parameters)
    point = criterion.at(parameters, slopes=False)
    rows, k = response.at(gamma), response.n_thresholds
    estimates = response.natural(response.inner(gamma))
    return assemble_fit(
        data,
        family="cumulative",
        link=response.link.name,
        method="Laplace",
        level=level,
        fixed=fixed_table(data.names, estimates[k:], vcov[k:, k:], None, level),
        thresholds=threshold_table(answers.boundaries, estimates[:k], vcov[:k, :k]),
        theta=data.effects.with_positive_diagonal(theta),
        modes=point.elimination.times_factor(point.u)[:, 0],
        predictor=data.x @ estimates[k:],
        latent=response.link.variance,
        deviance=point.deviance,
        slope=slope,
        fitted=np.exp(rows.log_probabilities(point.random)),
        residuals=ordinal_residuals(rows, point.random),
        vcov=vcov[k:, k:],
        core=point,
        notes=answers.notes,
    )
