"""Regressions and mixed models on runs, tables or frames, as `felicity fit` prints them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import read_frame
from felicity.core.frames import Frame, as_polars, is_frame
from felicity.core.schemas import SIMULATED_NOTE, is_simulated
from felicity.report import render_result
from felicity.report.charts import Estimate, Spec, as_altair, chart_estimates
from felicity.run import Run, analysis_table
from felicity.stats import describe_fit, filter_rows, fit_model


@dataclass(frozen=True)
class Fitted:
    """A fitted model: `model` is what the statistics room gives, with `fixed` and all else.

    note: what should be known about the data, such as that people were simulated.
    """

    model: Any
    note: str = ""

    def __repr__(self) -> str:
        return f"Fitted({self.model.formula}: {self.model.n} rows)"

    def _repr_html_(self) -> str:
        values = self.as_dict()
        figure = self.figure() if values["fixed"] else None
        return render_result(values["formula"], self.note, self.summary(), table=self.fixed, figure=figure)

    @property
    def fixed(self) -> pl.DataFrame:
        """The coefficients: term, estimate, se, df, statistic, p, low, high."""
        fixed: pl.DataFrame = self.model.fixed
        return fixed

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        values: dict[str, Any] = self.model.as_dict()
        return values

    def summary(self) -> str:
        """What was fitted and how well, in words."""
        return describe_fit(self.model, effects=False)

    def figure(self) -> Spec:
        """The coefficients with their intervals, as a Vega-Lite specification.

        Raises BadInput if there are none.
        """
        values = self.as_dict()
        if not values["fixed"]:
            raise BadInput("The model has no coefficients to draw; leave --figure out or add a predictor.")
        rows = [Estimate(row["term"], row["estimate"], row["low"], row["high"]) for row in values["fixed"]]
        level = f"{100 * values['level']:g}% intervals"
        return chart_estimates(rows, title="Coefficients", subtitle=f"{values['formula']} · {level}")

    def plot(self) -> Any:
        """The coefficients with their intervals, as an altair chart."""
        return as_altair(self.figure())


def fit(
    formula: str,
    *data: str | Path | Run | Frame,
    family: Literal["gaussian", "binomial", "cumulative"] = "gaussian",
    link: str | None = None,
    ties: Literal["drop", "wrong"] = "drop",
    ml: bool = False,
    contrasts: Mapping[str, Any] | None = None,
    measure: str | None = None,
    where: Sequence[str] = (),
    penalty: float | None = None,
    level: float = 0.95,
) -> Fitted:
    """Fit a regression, with random effects if the formula has them, in lme4's notation.

    data: runs or run folders, a .csv, .tsv or .parquet file, or a polars or pandas frame. family: gaussian,
    binomial or cumulative. contrasts: the coding of a factor, {"cond": "sum"}. measure: of a run, judge by
    this one. where: only rows with COLUMN=VALUE. ml: maximum likelihood instead of REML. penalty: the scale
    of a weak prior on the SDs of random effects, in log-odds.

    Raises BadInput or UnknownName for data that no model can be fitted to.

    >>> import felicity as fe
    >>> import polars as pl
    >>> frame = pl.DataFrame({"rt": [310.0, 325.0, 290.0, 402.0, 395.0, 410.0], "cond": list("aaabbb")})
    >>> fe.fit("rt ~ cond", frame).fixed["term"].to_list()
    ['(Intercept)', 'condb']
    """
    frame = filter_rows(take_table(data, formula, measure=measure), where)
    found = fit_model(
        formula,
        frame,
        family=family,
        link=link,
        ties=ties,
        reml=not ml,
        contrasts=dict(contrasts or {}),
        level=level,
        penalty=penalty,
    )
    return Fitted(found, SIMULATED_NOTE if is_simulated(frame) else "")


def take_table(
    data: Sequence[str | Path | Run | Frame], formula: str, *, measure: str | None = None
) -> pl.DataFrame:
    """The table of runs that the formula is about, or that of a file or a frame.

    Raises BadInput if a path does not exist, or the formula names no response.
    """
    if len(data) == 1 and is_frame(data[0]):
        return as_polars(data[0])
    sources = [one if isinstance(one, Run) else Path(one) for one in data]
    for one in sources:
        if isinstance(one, Path) and not one.exists():
            raise BadInput(f"There is no run folder or table {one}; check the path.")
    if all(isinstance(one, Run) or one.is_dir() for one in sources):
        if "~" not in formula:
            raise BadInput(f"The formula '{formula}' must be 'response ~ predictors', with one '~'.")
        return analysis_table(sources, formula.partition("~")[0].strip(), measure=measure)
    if len(sources) > 1:
        raise BadInput("Give one table, or several run folders.")
    return read_frame(sources[0])  # type: ignore[arg-type]
