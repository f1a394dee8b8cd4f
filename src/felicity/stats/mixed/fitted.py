"""A fitted mixed model: tidy tables of what it says, and what further questions need."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

import polars as pl

from felicity.stats.frames import Vector
from felicity.stats.mixed.model_frame import ModelFrame

Method = Literal["REML", "ML", "Laplace"]


@dataclass(frozen=True)
class FittedModel:
    """What a fit gives.

    fixed: term, estimate, se, df (null for z-tests), statistic, p, low, high.
    random: group, term, sd, corr (with the group's first term); correlations: all pairs.
    modes: group, level, term, value: the conditional modes of the random effects.
    criterion: REML criterion, or -2 log likelihood.
    notes: what a reader must know of this fit, one sentence each.
    theta: relative covariance parameters in the order of `frame.effects`, on its columns' scaling.
    vcov: covariance of the fixed effects; vcov_theta: of (theta, sigma) or (theta,), may be singular.
    """

    formula: str
    family: Literal["gaussian", "binomial"]
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

    def as_dict(self) -> dict[str, Any]:
        """The model as JSON-ready values, tables as lists of rows; what is not finite is null."""
        values = {
            "formula": self.formula,
            "family": self.family,
            "method": self.method,
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
            "r2_marginal": self.r2_marginal,
            "r2_conditional": self.r2_conditional,
            "level": self.level,
            "notes": list(self.notes),
        }
        return dict(finite(values))


def finite(value: Any) -> Any:
    """A JSON-ready value with null in the place of NaN and infinity, which JSON has not."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value
