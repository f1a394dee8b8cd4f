"""A fitted model in plain words, the way a paper states it, and the key to its numbered terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, log, pi
from typing import Any, Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.wording import (
    decimal,
    format_df,
    format_digits,
    format_interval,
    format_number,
    format_p,
    format_share,
)
from felicity.stats.frames import Vector
from felicity.stats.mixed.model_frame import ModelFrame
from felicity.stats.mixed.random_effects import Block, RandomEffects

SINGULAR_BELOW = 1e-4
SLOPE_LEFT = 1e-2
LOGIT_VARIANCE = pi**2 / 3.0
# Beyond these a fit on the scale of a link is degenerate: log-odds of 10 are 22,000 to 1.
DEGENERATE_LOG_ODDS = 10.0
DEGENERATE_R2 = 0.99
DEGENERATE = "The fit is degenerate"
KINDS = {
    "gaussian": "linear mixed model",
    "binomial": "logistic mixed model",
    "cumulative": "cumulative link mixed model",
}
MOST_NAMED = 4
METHODS = {"REML": "by REML", "ML": "by maximum likelihood", "Laplace": "by the Laplace approximation"}


def covariances(effects: RandomEffects, theta: Vector, sigma: float) -> list[Vector]:
    """Covariance matrix of each block's effects, in the units of the data."""
    out = []
    for block, factor in zip(effects.blocks, effects.factors(theta), strict=True):
        deviations = sigma * factor / block.scale[:, None]
        out.append(deviations @ deviations.T)
    return out


def is_singular(effects: RandomEffects, theta: Vector) -> bool:
    """Whether a variance is zero or a correlation exactly 1, by lme4's rule and tolerance."""
    factors = zip(effects.blocks, effects.factors(theta), strict=True)
    return any((np.diag(f) / block.scale < SINGULAR_BELOW).any() for block, f in factors)


def variance_table(
    effects: RandomEffects, theta: Vector, sigma: float | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Standard deviations with the residual's last, and the correlation of every pair within a term."""
    rows, pairs = [], []
    for block, covariance, label, columns in _terms(effects, covariances(effects, theta, sigma or 1.0)):
        sds = np.sqrt(np.diag(covariance))
        for a, i in enumerate(columns):
            corr = _correlation(covariance, sds, columns[0], i) if a else None
            rows.append({"group": label, "term": block.names[i], "sd": float(sds[i]), "corr": corr})
            for j in columns[:a]:
                pair = {"group": label, "term": block.names[i], "with": block.names[j]}
                pairs.append(pair | {"corr": _correlation(covariance, sds, j, i)})
    if sigma is not None:
        rows.append({"group": "Residual", "term": None, "sd": sigma, "corr": None})
    schema = {"group": pl.String, "term": pl.String, "sd": pl.Float64, "corr": pl.Float64}
    pair_schema = {"group": pl.String, "term": pl.String, "with": pl.String, "corr": pl.Float64}
    return pl.DataFrame(rows, schema=schema), pl.DataFrame(pairs, schema=pair_schema)


def modes_table(effects: RandomEffects, modes: Vector) -> pl.DataFrame:
    """Conditional modes, one row per level and effect, in the units of the data."""
    starts = np.cumsum([0] + [block.size for block in effects.blocks])
    tables = []
    for label in effects.labels:
        for block, start in zip(effects.blocks, starts, strict=False):
            values = modes[start : start + block.size].reshape(-1, block.width) / block.scale
            for i, (name, term) in enumerate(zip(block.names, block.labels, strict=True)):
                if term == label:
                    columns = {"group": label, "level": block.levels, "term": name, "value": values[:, i]}
                    tables.append(pl.DataFrame(columns))
    return pl.concat(tables)


def _terms(effects: RandomEffects, matrices: list[Vector]) -> Iterator[tuple[Block, Vector, str, list[int]]]:
    for label in effects.labels:
        for block, matrix in zip(effects.blocks, matrices, strict=True):
            columns = [i for i, label_of in enumerate(block.labels) if label_of == label]
            if columns:
                yield block, matrix, label, columns


def _correlation(covariance: Vector, sds: Vector, i: int, j: int) -> float | None:
    if sds[i] * sds[j] == 0:
        return None
    return float(np.clip(covariance[i, j] / (sds[i] * sds[j]), -1.0, 1.0))


def nakagawa_r2(
    fixed: Vector,
    effects: RandomEffects,
    theta: Vector,
    sigma: float | None,
    weights: Vector | None = None,
    *,
    latent: float = LOGIT_VARIANCE,
) -> tuple[float, float]:
    """Marginal and conditional R² from the linear predictor of the fixed effects.

    sigma: the residual's, None if `latent` is its variance on the scale of the link.
    weights: how many rows each value stands for.
    """
    of_fixed = _variance(fixed, weights)
    of_random = 0.0
    for block, covariance in zip(effects.blocks, covariances(effects, theta, sigma or 1.0), strict=True):
        z = block.z * block.scale
        of_random += float(np.average(np.einsum("ni,ij,nj->n", z, covariance, z), weights=weights))
    total = of_fixed + of_random + (latent if sigma is None else sigma**2)
    return of_fixed / total, (of_fixed + of_random) / total


def _variance(values: Vector, weights: Vector | None) -> float:
    n = len(values) if weights is None else float(weights.sum())
    mean = np.average(values, weights=weights)
    return float(np.average((values - mean) ** 2, weights=weights) * n / (n - 1.0))


Method = Literal["REML", "ML", "Laplace"]


@dataclass(frozen=True)
class FittedModel:
    """What a fit gives.

    fixed: term, estimate, se, df (null for z-tests), statistic, p, low, high.
    random: group, term, sd, corr (with the group's first term); correlations: all pairs.
    modes: group, level, term, value: the conditional modes of the random effects.
    thresholds: term ('1|2'), estimate, se, of a cumulative model; None for others.
    criterion: REML criterion, or -2 log likelihood.
    degenerate: whether it separates right from wrong so far that it shows nothing (`find_degeneracy`).
    penalty: the scale of the prior on the SDs of random effects, if there was one.
    notes: what a reader must know about this fit, one sentence each.
    theta: relative covariance parameters in the order of `frame.effects`, on its columns' scaling.
    vcov: covariance of the fixed effects; vcov_theta: of (theta, sigma) or (theta,), may be singular.
    """

    formula: str
    family: Literal["gaussian", "binomial", "cumulative"]
    method: Method
    level: float
    n: int
    groups: dict[str, int]
    fixed: pl.DataFrame
    random: pl.DataFrame
    correlations: pl.DataFrame
    modes: pl.DataFrame
    criterion: float
    log_likelihood: float
    n_parameters: int
    aic: float
    bic: float
    singular: bool
    sigma: float | None
    r2_marginal: float
    r2_conditional: float
    fitted: Vector = field(repr=False)
    residuals: Vector = field(repr=False)
    vcov: Vector = field(repr=False)
    theta: Vector = field(repr=False)
    frame: ModelFrame = field(repr=False)
    core: Any = field(repr=False)
    notes: tuple[str, ...] = ()
    link: str = "identity"
    thresholds: pl.DataFrame | None = None
    converged: bool = True
    degenerate: bool = False
    penalty: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The model as JSON-ready values, tables as lists of rows; what is not finite is null."""
        values = {
            "formula": self.formula,
            "family": self.family,
            "method": self.method,
            "link": self.link,
            "thresholds": None if self.thresholds is None else self.thresholds.to_dicts(),
            "fixed": self.fixed.to_dicts(),
            "random": self.random.to_dicts(),
            "correlations": self.correlations.to_dicts(),
            "criterion": self.criterion,
            "log_likelihood": self.log_likelihood,
            "aic": self.aic,
            "bic": self.bic,
            "n": self.n,
            "groups": self.groups,
            "singular": self.singular,
            "converged": self.converged,
            "degenerate": self.degenerate,
            "penalty": self.penalty,
            "r2_marginal": self.r2_marginal,
            "r2_conditional": self.r2_conditional,
            "level": self.level,
            "codings": self.frame.codings,
            "references": self.frame.references,
            "notes": list(self.notes),
        }
        if self.thresholds is None:
            del values["thresholds"]
        return dict(finite(values))


def assemble_fit(
    data: ModelFrame,
    *,
    theta: Vector,
    modes: Vector,
    predictor: Vector,
    deviance: float,
    slope: float,
    sigma: float | None = None,
    n: int | None = None,
    weights: Vector | None = None,
    latent: float = LOGIT_VARIANCE,
    notes: tuple[str, ...] = (),
    **known: Any,
) -> FittedModel:
    """A fit of any family, with what all of them derive from their optimum.

    predictor: what the fixed effects predict, on the scale of the link. slope: what the optimizer left. n,
    weights: how many rows there were, and how many each value stands for, if rows were merged.
    """
    effects = data.effects
    rows = data.n if n is None else n
    singular = is_singular(effects, theta)
    random, correlations = variance_table(effects, theta, sigma)
    marginal, conditional = nakagawa_r2(predictor, effects, theta, sigma, weights, latent=latent)
    signs: list[str] = []
    if known["family"] != "gaussian":
        signs = find_degeneracy(data, theta, known["fixed"], conditional, latent)
    count = data.x.shape[1] + len(known.get("thresholds", ())) + effects.n_theta + (sigma is not None)
    return FittedModel(
        formula=str(data.formula),
        n=rows,
        groups={block.group: len(block.levels) for block in effects.blocks},
        random=random,
        correlations=correlations,
        modes=modes_table(effects, modes),
        criterion=deviance,
        log_likelihood=-deviance / 2.0,
        n_parameters=count,
        aic=deviance + 2.0 * count,
        bic=deviance + log(rows) * count,
        singular=singular,
        sigma=sigma,
        r2_marginal=marginal,
        r2_conditional=conditional,
        theta=theta,
        frame=data,
        notes=(*_fit_notes(singular, slope), *_degeneracy_notes(signs), *notes),
        converged=slope <= SLOPE_LEFT,
        degenerate=bool(signs),
        **known,
    )


def _fit_notes(singular: bool, slope: float) -> tuple[str, ...]:
    """What a reader must know about a fit."""
    notes = []
    if singular:
        notes.append("The fit is singular: a variance is 0 or a correlation 1; simplify the random part.")
    if slope > SLOPE_LEFT:
        notes.append(
            f"The optimizer stopped with a slope of {format_digits(slope, 2)} left; treat the numbers with "
            "care."
        )
    return tuple(notes)


def find_degeneracy(
    data: ModelFrame, theta: Vector, fixed: pl.DataFrame, r2: float, latent: float
) -> list[str]:
    """What lies beyond the limits of a fit that means anything: SDs, coefficients, R2.

    A standard deviation counts on the mean size of its column, a coefficient over the range of its column, so
    that units do not matter; on a probit scale the limit is that of the logistic one in standard deviations.
    """
    limit = DEGENERATE_LOG_ODDS * (latent / LOGIT_VARIANCE) ** 0.5
    reasons = []
    for block, factor in zip(data.effects.blocks, data.effects.factors(theta), strict=True):
        sds = np.sqrt((factor**2).sum(axis=1))
        for name, sd, scale in zip(block.names, sds, block.scale, strict=True):
            if sd > limit:
                reasons.append(f"the SD of {name} by {block.group} is {format_number(float(sd / scale))}")
    for row, column in zip(fixed.to_dicts(), data.x.T, strict=True):
        reach = float(np.ptp(column)) or float(np.abs(column).max())
        if abs(row["estimate"]) * reach > limit:
            reasons.append(f"{row['term']} is {format_number(row['estimate'])}")
    if r2 > DEGENERATE_R2:
        reasons.append(f"R2 is {format_number(r2)}")
    return reasons


def _degeneracy_notes(signs: list[str]) -> tuple[str, ...]:
    if not signs:
        return ()
    limits = f"limits: {DEGENERATE_LOG_ODDS:g} in log-odds, R2 {DEGENERATE_R2:g}"
    return (
        f"{DEGENERATE}: {', '.join(signs)} ({limits}). Answers of a group, or at some values of a predictor, "
        "are nearly all alike, so estimates and tests show nothing; fit it with a penalty, or simplify it.",
    )


def check_penalty(penalty: float | None) -> float | None:
    """The penalty, if it is a scale.

    Raises BadInput.
    """
    if penalty is not None and not (isfinite(penalty) and penalty > 0.0):
        raise BadInput(f"The penalty is {penalty:g}; give the scale of the SDs in log-odds, such as 2.")
    return penalty


def note_penalty(model: FittedModel, penalty: float | None) -> FittedModel:
    """The model with a note on its penalty."""
    if penalty is None:
        return model
    note = (
        f"Covariances of random effects have a Wishart prior with a scale of {penalty:g} log-odds (a "
        "penalized fit, as blme's); its log likelihood and AIC are not those of an unpenalized fit."
    )
    return replace(model, penalty=penalty, notes=(*model.notes, note))


def finite(value: Any) -> Any:
    """A JSON-ready value with null in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def describe_mixed_fit(model: FittedModel, *, effects: bool = True) -> str:
    """One paragraph: what was fitted, each fixed effect with its test and interval, R2, warnings.

    effects: the fixed effects too; without them, the text below a table of them.
    """
    groups = ", ".join(f"{name} ({count} levels)" for name, count in model.groups.items())
    tests = describe_scale(model.family, model.link)
    sentences = [
        f"A {KINDS[model.family]}, {model.formula}, was fitted {METHODS[model.method]} to {model.n} rows; "
        f"random effects vary over {groups}; {tests}."
    ]
    if effects:
        sentences += [f"{describe_effect(row, model.level)}." for row in model.fixed.to_dicts()]
    else:
        sentences.append(f"Log likelihood {decimal(model.log_likelihood)}, AIC {decimal(model.aic, 1)}.")
    sentences.append(
        f"The fixed effects explain {format_share(model.r2_marginal)} of the variance, with the random "
        f"effects {format_share(model.r2_conditional)} (Nakagawa's marginal and conditional R2)."
    )
    return " ".join([*sentences, *model.notes])


def describe_scale(family: str, link: str) -> str:
    """What the estimates of a model are, and how they are tested."""
    if family == "gaussian":
        return "t-tests use Satterthwaite's degrees of freedom"
    if family == "binomial":
        return "estimates are log-odds, tests are Wald z"
    unit = "log-odds" if link == "logit" else "standard deviations of a latent normal variable"
    return f"estimates are {unit}, positive for higher answers, tests are Wald z"


def describe_effect(row: Mapping[str, Any], level: float) -> str:
    """One coefficient with its test and interval."""
    name = "Intercept" if row["term"] == "(Intercept)" else row["term"]
    test = f"z = {format_number(row['statistic'])}"
    if row["df"] is not None:
        test = f"t({format_df(row['df'])}) = {format_number(row['statistic'])}"
    return (
        f"{name}: b = {format_number(row['estimate'])}, SE = {format_number(row['se'])}, "
        f"{test}, {format_p(row['p'])}, "
        f"{level:.0%} CI {format_interval(row['low'], row['high'], format_number)}"
    )


def describe_codings(
    codings: Mapping[str, Mapping[str, float]], references: Mapping[str, str]
) -> list[dict[str, str]]:
    """The key to terms that are named by number, one row per term, and the reference levels.

    >>> describe_codings({"cond1": {"a": 1.0, "b": -1.0}}, {})
    [{'term': 'cond1', 'meaning': 'a against the mean of a, b (b is minus the sum)'}]
    """
    rows = [{"term": term, "meaning": _describe_coding(values)} for term, values in codings.items()]
    return rows + [
        {"term": f"{name}…", "meaning": f"each level against {level}"} for name, level in references.items()
    ]


def _describe_coding(values: Mapping[str, float]) -> str:
    members = [level for level, value in values.items() if value == 1.0]
    last = [level for level, value in values.items() if value == -1.0]
    by_sum = len(members) == len(last) == 1 and set(values.values()) <= {-1.0, 0.0, 1.0}
    if not by_sum:
        return ", ".join(f"{level} {value:g}" for level, value in values.items())
    mean = ", ".join(values) if len(values) <= MOST_NAMED else f"the {len(values)} levels"
    return f"{members[0]} against the mean of {mean} ({last[0]} is minus the sum)"
