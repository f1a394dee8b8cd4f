"""Correlations with intervals, and tests of whether one measure correlates more strongly than another.

Two models scored on the same sentences give dependent correlations with the ratings. Williams'
t (1959) is the recommended test if they share a variable, Steiger's Z (1980) works on Fisher's scale;
if they share none, Steiger's Z uses all six correlations.
Reference: Steiger (1980), Psychological Bulletin 87.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.stats.bootstrap import count_draws
from felicity.stats.frames import Values, Vector, numbers

Method = Literal["pearson", "spearman", "kendall", "point_biserial"]

TESTS: dict[str, Callable[[Vector, Vector], tuple[float, float]]] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
    "point_biserial": stats.pearsonr,
}
LEAST = 4
ROUNDING = 1e-12


def correlate(
    x: Values,
    y: Values,
    *,
    method: Method = "pearson",
    interval: Literal["fisher", "bootstrap"] = "fisher",
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> pl.DataFrame:
    """One row: method, n, r, p (two-sided), low, high.

    For 'point_biserial' x is right or wrong (1 or 0) and y any measure.

    Raises BadInput for vectors of unequal length, fewer than four pairs, or a constant one.
    """
    if method not in TESTS:
        raise UnknownName("correlation", str(method), TESTS)
    if interval not in ("fisher", "bootstrap"):
        raise UnknownName("interval", str(interval), ("fisher", "bootstrap"))
    a, b = check_pairs(x, y)
    if method == "point_biserial" and not np.isin(a, (0.0, 1.0)).all():
        raise BadInput("A point-biserial correlation needs x to be 0 or 1.")
    r, p = (float(value) for value in TESTS[method](a, b))
    low, high = (
        fisher_interval(r, len(a), method=method, level=level)
        if interval == "fisher"
        else _bootstrap_interval(a, b, r, method, level, draws, seed)
    )
    return pl.DataFrame({"method": [method], "n": [len(a)], "r": [r], "p": [p], "low": [low], "high": [high]})


def check_pairs(x: Values, y: Values) -> tuple[Vector, Vector]:
    """Two vectors of the same length that vary.

    Raises BadInput.
    """
    a, b = numbers(x, "x", least=LEAST), numbers(y, "y", least=LEAST)
    if len(a) != len(b):
        raise BadInput(f"x has {len(a)} values and y {len(b)}; a correlation needs pairs.")
    for name, values in (("x", a), ("y", b)):
        if np.ptp(values) == 0:
            raise BadInput(f"'{name}' is {values[0]:g} throughout, so nothing can correlate with it.")
    return a, b


def fisher_interval(
    r: float, n: int, *, method: Method = "pearson", level: float = 0.95
) -> tuple[float, float]:
    """Interval of a correlation from its value and the number of pairs."""
    if abs(r) >= 1.0:
        return r, r
    variance = {
        "spearman": (1.0 + r**2 / 2.0) / (n - 3),
        "kendall": 0.437 / max(n - 4, 1),
    }.get(method, 1.0 / (n - 3))
    half_width = float(stats.norm.ppf(0.5 + level / 2.0)) * variance**0.5
    z = float(np.arctanh(r))
    return float(np.tanh(z - half_width)), float(np.tanh(z + half_width))


def disattenuate(r: float, reliability_x: float, reliability_y: float = 1.0) -> float:
    """The correlation corrected for measurement error (Spearman 1904).

    >>> round(disattenuate(0.4, 0.8, 0.5), 4)
    0.6325

    Raises BadInput for reliabilities outside 0 to 1.
    """
    return r / _root_reliability(reliability_x, reliability_y)


def _root_reliability(x: float, y: float) -> float:
    for value in (x, y):
        if not 0.0 < value <= 1.0:
            raise BadInput(f"A reliability of {value:g} is not between 0 and 1.")
    return float((x * y) ** 0.5)


def _bootstrap_interval(
    a: Vector, b: Vector, r: float, method: str, level: float, draws: int, seed: int
) -> tuple[float, float]:
    resampled = (
        _draw_pearson(a, b, draws, seed)
        if method in ("pearson", "point_biserial")
        else _draw_ranks(a, b, method, draws, seed)
    )
    if len(resampled) < draws / 2:
        raise NotPossible("Most bootstrap samples are constant; there are too few distinct values.")
    values = np.sort(resampled)
    # Bias correction (Efron 1987): shift the quantiles by how far the estimate is from the median.
    below = np.clip((values < r).mean(), 1.0 / draws, 1.0 - 1.0 / draws)
    shift = 2.0 * stats.norm.ppf(below)
    tails = stats.norm.cdf(shift + stats.norm.ppf([0.5 - level / 2.0, 0.5 + level / 2.0]))
    low, high = np.quantile(values, tails)
    return float(low), float(high)


def _draw_pearson(a: Vector, b: Vector, draws: int, seed: int) -> Vector:
    """Pearson's r of every bootstrap sample that is not constant, from how often each pair is in it."""
    times = count_draws(len(a), seed=seed, draws=draws) / len(a)
    a, b = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    mean_a, mean_b = times @ a, times @ b
    spread = (times @ a**2 - mean_a**2) * (times @ b**2 - mean_b**2)
    # A constant sample has no spread but for rounding.
    varied = spread > 1e-20
    return np.asarray((times @ (a * b) - mean_a * mean_b)[varied] / np.sqrt(spread[varied]))


def _draw_ranks(a: Vector, b: Vector, method: str, draws: int, seed: int) -> Vector:
    """Spearman's or Kendall's coefficient of every bootstrap sample that is not constant."""
    rng = np.random.default_rng(seed)
    resampled = []
    for _ in range(draws):
        rows = rng.integers(0, len(a), len(a))
        x, y = a[rows], b[rows]
        if np.ptp(x) > 0 and np.ptp(y) > 0:
            if method == "kendall":
                resampled.append(float(stats.kendalltau(x, y)[0]))
            else:
                resampled.append(float(np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]))
    return np.array(resampled)


def compare_correlations(target: Values, first: Values, second: Values) -> pl.DataFrame:
    """Is r(target, first) different from r(target, second)? One row per test.

    Columns: test, r_first, r_second, r_between, statistic, df, p, n.

    Raises BadInput for vectors of unequal length or without variation.
    """
    a, b = check_pairs(target, first)
    _, c = check_pairs(target, second)
    r = np.corrcoef([a, b, c])
    first_r, second_r, between = float(r[0, 1]), float(r[0, 2]), float(r[1, 2])
    t, df, p_williams = williams_t(first_r, second_r, between, len(a))
    z, p_steiger = steiger_z(first_r, second_r, between, len(a))
    shared = {"r_first": first_r, "r_second": second_r, "r_between": between}
    return pl.DataFrame(
        [
            {"test": "williams", **shared, "statistic": t, "df": df, "p": p_williams, "n": len(a)},
            {"test": "steiger", **shared, "statistic": z, "df": None, "p": p_steiger, "n": len(a)},
        ]
    )


def williams_t(r12: float, r13: float, r23: float, n: int) -> tuple[float, int, float]:
    """Williams' t of r12 against r13, which share variable 1: t, df, two-sided p."""
    _check(n, {"r12": r12, "r13": r13, "r23": r23})
    determinant = 1.0 - r12**2 - r13**2 - r23**2 + 2.0 * r12 * r13 * r23
    mean = (r12 + r13) / 2.0
    spread = 2.0 * determinant * (n - 1) / (n - 3) + mean**2 * (1.0 - r23) ** 3
    if spread <= 0:
        raise BadInput("The three correlations leave no residual variance; the two measures are the same.")
    t = (r12 - r13) * float(np.sqrt((n - 1) * (1.0 + r23) / spread))
    return t, n - 3, float(2.0 * stats.t.sf(abs(t), n - 3))


def steiger_z(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Steiger's Z of r12 against r13, which share variable 1: Z, two-sided p."""
    _check(n, {"r12": r12, "r13": r13, "r23": r23})
    mean = (r12 + r13) / 2.0
    inner = r23 * (1.0 - 2.0 * mean**2) - 0.5 * mean**2 * (1.0 - 2.0 * mean**2 - r23**2)
    return _z(r12, r13, inner / (1.0 - mean**2) ** 2, n)


def steiger_z_apart(
    r12: float, r34: float, r13: float, r14: float, r23: float, r24: float, n: int
) -> tuple[float, float]:
    """Steiger's Z of r12 against r34, which share no variable: Z, two-sided p."""
    _check(n, {"r12": r12, "r34": r34, "r13": r13, "r14": r14, "r23": r23, "r24": r24})
    mean = (r12 + r34) / 2.0
    products = (
        (r13 - mean * r23) * (r24 - r23 * mean)
        + (r14 - r13 * mean) * (r23 - mean * r13)
        + (r13 - r14 * mean) * (r24 - mean * r14)
        + (r14 - mean * r24) * (r23 - r24 * mean)
    )
    return _z(r12, r34, products / 2.0 / (1.0 - mean**2) ** 2, n)


def _z(first: float, second: float, covariance: float, n: int) -> tuple[float, float]:
    spread = 2.0 - 2.0 * covariance
    if spread <= 0:
        raise BadInput("The two correlations are of the same measure.")
    z = float((np.arctanh(first) - np.arctanh(second)) * np.sqrt((n - 3) / spread))
    return z, float(2.0 * stats.norm.sf(abs(z)))


def _check(n: int, correlations: Mapping[str, float]) -> None:
    if n < 4:
        raise BadInput(f"{n} pairs are too few to compare correlations; at least 4 are needed.")
    for name, value in correlations.items():
        # The correlation of a measure with itself is 1 up to the rounding of its products.
        if not abs(value) < 1.0 - ROUNDING:
            raise BadInput(f"The correlation {name} is {value:g}; it must lie strictly between -1 and 1.")
