"""How much better one regression predicts than another: delta log-likelihood, in sample or on held-out rows.

Both models are always fitted to the same rows. Log-likelihoods are natural and Gaussian. On held-out rows the
density of each is taken with the prediction and the residual variance of a fit to the other folds; its mean
over rows is the delta log-likelihood per word. Differences are tested by flipping signs of whole sentences,
and their interval resamples sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.additive import AdditiveData, AdditiveFit, build_additive, fit_additive
from felicity.stats.bootstrap import DRAWS, Interval, bootstrap_mean
from felicity.stats.frames import Codes, Frame, Vector, as_polars, level_codes, one_thread
from felicity.stats.mixed import columns_in
from felicity.stats.paired_tests import PermutationTest, permute_differences, sum_by_cluster
from felicity.stats.smooths import split_smooths

# A residual sum of squares below this share of the total is rounding.
EXACT_BELOW = 1e-20
Cut = Literal["groups", "width", "even"]
CUTS: dict[str, str] = {
    "groups": "contiguous folds of whole sentences, about equal in rows",
    "width": "contiguous folds of equal width over the row numbers, as R's cut() makes them",
    "even": "contiguous folds of equal size, the first ones larger by one row",
}
Variance = Literal["training", "test"]
VARIANCES: dict[str, str] = {
    "training": "residual variance of the training fit, RSS / (n - p)",
    "test": "variance of the test fold's own prediction errors, RSS / n",
}


@dataclass(frozen=True)
class Scheme:
    """How held-out likelihoods are computed: folds, how they are cut, and which variance densities have."""

    folds: int = 10
    cut: Cut = "groups"
    variance: Variance = "training"

    def __post_init__(self) -> None:
        for what, name, known in (
            ("way to cut folds", self.cut, CUTS),
            ("variance", self.variance, VARIANCES),
        ):
            if name not in known:
                raise UnknownName(what, name, known)
        if self.folds < 2:
            raise BadInput(f"Held-out likelihoods need at least 2 folds, not {self.folds}.")

    def describe(self) -> str:
        """One sentence for a report."""
        return f"{self.folds} {CUTS[self.cut]}; {VARIANCES[self.variance]}"


DEFAULT = Scheme()


@dataclass(frozen=True)
class Gain:
    """What the larger of two regressions adds.

    per_row: held-out log density of the larger minus that of the smaller model; folds: each row's fold.
    interval, test: over clusters (sentences) if there are any, else over rows.
    """

    baseline: str
    target: str
    n: int
    delta: float
    per_row: Vector
    folds: Codes
    interval: Interval
    test: PermutationTest
    scheme: Scheme

    def row(self) -> dict[str, float | int | str]:
        """The figures of a table."""
        return {
            "n": self.n,
            "delta_ll": self.delta,
            "se": self.interval.se,
            "low": self.interval.low,
            "high": self.interval.high,
            "p": self.test.p,
        }


def cut_folds(n: int, folds: int, cut: Cut = "width", *, groups: Codes | None = None) -> Codes:
    """The fold of each of n rows in order, from 0.

    >>> cut_folds(10, 4, "width").tolist(), cut_folds(10, 4, "even").tolist()
    ([0, 0, 0, 1, 1, 2, 2, 3, 3, 3], [0, 0, 0, 1, 1, 1, 2, 2, 3, 3])

    Raises BadInput if there are fewer rows or groups than folds, or if a group's rows are not contiguous.
    """
    if n < folds:
        raise BadInput(f"{n} rows cannot be cut into {folds} folds.")
    if cut == "width":
        # R's cut(1:n, k): k + 1 breaks over 1..n, intervals closed on the right.
        breaks = np.linspace(1, n, folds + 1)
        return np.clip(np.searchsorted(breaks, np.arange(1, n + 1), side="left") - 1, 0, folds - 1)
    if cut == "even" or groups is None:
        sizes = np.full(folds, n // folds) + (np.arange(folds) < n % folds)
        return np.repeat(np.arange(folds), sizes)
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    if len(starts) > len(np.unique(groups)):
        raise BadInput(
            "The rows of a sentence are not together; sort the table by text, sentence and position."
        )
    if len(starts) < folds:
        raise BadInput(f"{len(starts)} sentences cannot be cut into {folds} folds.")
    middles = (starts + np.append(starts[1:], n) - 1) / 2.0
    of_group = np.minimum((middles / n * folds).astype(np.int64), folds - 1)
    return np.repeat(of_group, np.diff(np.append(starts, n)))


@one_thread
def held_out_densities(data: AdditiveData, folds: Codes, *, variance: Variance = "training") -> Vector:
    """The log density of every row under the model fitted to the other folds."""
    out = np.empty(len(data.y))
    for fold in np.unique(folds):
        test = np.flatnonzero(folds == fold)
        fit = fit_additive(data, np.flatnonzero(folds != fold))
        errors = data.y[test] - fit.predict(test)
        spread = fit.sigma2 if variance == "training" else float((errors**2).mean())
        out[test] = -0.5 * (np.log(2.0 * np.pi * spread) + errors**2 / spread)
    return out


def measure_gain(
    frame: Frame,
    baseline: str,
    target: str,
    *,
    scheme: Scheme = DEFAULT,
    cluster: str | Sequence[str] | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Gain:
    """Held-out delta log-likelihood per row of one formula over another, on identical rows.

    cluster: columns that together name a sentence; folds keep its rows together if the scheme cuts groups.

    Raises BadInput if a value is missing: drop those rows first, with `complete_rows`.
    """
    table = as_polars(frame)
    groups = cluster_codes(table, cluster)
    smaller, larger = build_additive(baseline, table), build_additive(target, table)
    folds = cut_folds(table.height, scheme.folds, scheme.cut, groups=groups)
    per_row = held_out_densities(larger, folds, variance=scheme.variance)
    per_row = per_row - held_out_densities(smaller, folds, variance=scheme.variance)
    return Gain(
        baseline=baseline,
        target=target,
        n=table.height,
        delta=float(per_row.mean()),
        per_row=per_row,
        folds=folds,
        interval=bootstrap_mean(per_row, clusters=groups, level=level, draws=draws, seed=seed),
        test=permute_differences(sum_by_cluster(per_row, groups), n=table.height, seed=seed),
        scheme=scheme,
    )


def cluster_codes(table: pl.DataFrame, cluster: str | Sequence[str] | None) -> Codes | None:
    """The number of each row's cluster, from 0, by the columns that together name one; None without any.

    Raises UnknownName for a column that is not there.
    """
    if cluster is None:
        return None
    names = [cluster] if isinstance(cluster, str) else list(cluster)
    for name in names:
        if name not in table.columns:
            raise UnknownName("column", name, table.columns)
    if len(names) == 1:
        return level_codes(table[names[0]])[0]
    return table.select(pl.struct(names).rank("dense")).to_series().cast(pl.Int64).to_numpy() - 1


@dataclass(frozen=True)
class InSample:
    """What the larger of two least-squares regressions adds on the rows that both are fitted to.

    delta: log-likelihood with the variance RSS / n, summed over rows; delta_aic counts coefficients.
    r2_share: of the variance that the baseline leaves, (R2 - R2_base) / (1 - R2_base).
    """

    n: int
    delta: float
    delta_aic: float
    log_likelihood: float
    log_likelihood_baseline: float
    r2: float
    r2_baseline: float

    @property
    def per_row(self) -> float:
        """Delta log-likelihood per row."""
        return self.delta / self.n

    @property
    def r2_share(self) -> float:
        """The share of what the baseline leaves unexplained."""
        return (self.r2 - self.r2_baseline) / (1.0 - self.r2_baseline)


def compare_in_sample(frame: Frame, baseline: str, target: str) -> InSample:
    """Log-likelihoods, AIC and R2 of two regressions fitted to the same rows.

    Raises BadInput if the baseline leaves nothing to predict.
    """
    small, large = (fit_additive(build_additive(formula, frame)) for formula in (baseline, target))
    y = small.data.y
    total = float(((y - y.mean()) ** 2).sum())
    if min(small.rss, large.rss) <= EXACT_BELOW * total:
        raise BadInput(f"'{target}' predicts every row exactly; there is nothing left to compare.")
    less, more = (_log_likelihood(fit) for fit in (small, large))
    added = float(large.edf.sum() - small.edf.sum())
    return InSample(
        n=len(y),
        delta=more - less,
        delta_aic=2.0 * added - 2.0 * (more - less),
        log_likelihood=more,
        log_likelihood_baseline=less,
        r2=1.0 - large.rss / total,
        r2_baseline=1.0 - small.rss / total,
    )


def _log_likelihood(fit: AdditiveFit) -> float:
    return -0.5 * fit.n * (float(np.log(2.0 * np.pi * fit.rss / fit.n)) + 1.0)


def columns_of(formula: str) -> list[str]:
    """Every column that a formula with linear and smooth terms reads.

    >>> columns_of("rt ~ log(freq) * len + s(surprisal, k = 6)")
    ['rt', 'freq', 'len', 'surprisal']
    """
    left, _, right = formula.partition("~")
    linear, smooths = split_smooths(right)
    named = [*columns_in(left), *columns_in(" + ".join(linear) or "1")]
    return list(dict.fromkeys([*named, *(name for smooth in smooths for name in smooth.columns)]))


def complete_rows(frame: Frame, formulas: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows in which no column of any formula is missing or infinite, and how many each column lacks.

    The second frame has `column` and `missing`, for columns that lack values.
    """
    table = as_polars(frame)
    names = list(dict.fromkeys(name for formula in formulas for name in columns_of(formula)))
    known, lacking = pl.lit(True), []
    for name in names:
        if name not in table.columns:
            raise UnknownName("column", name, table.columns)
        usable = pl.col(name).is_not_null()
        if table[name].dtype.is_float():
            usable &= pl.col(name).is_finite()
        missing = int(table.select((~usable.fill_null(False)).sum()).item())
        if missing:
            lacking.append({"column": name, "missing": missing})
        known &= usable.fill_null(False)
    return table.filter(known), pl.DataFrame(lacking, schema={"column": pl.String, "missing": pl.Int64})
