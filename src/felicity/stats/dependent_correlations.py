"""Is one measure closer to the judgements than another? Correlations that share a sample.

Two models scored on the same sentences give correlations with the ratings that hang together. Williams'
t (1959) is the recommended test where they share a variable, Steiger's Z (1980) works on Fisher's scale;
where they share none, Steiger's Z takes all six correlations.
Reference: Steiger (1980), Psychological Bulletin 87.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.correlation import Values, check_pairs


def compare_correlations(target: Values, first: Values, second: Values) -> pl.DataFrame:
    """Is r(target, first) different from r(target, second)? A row for each test.

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
        raise BadInput("The three correlations leave no residual variance; the two measures are one.")
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
        raise BadInput("The two correlations are those of one and the same measure.")
    z = float((np.arctanh(first) - np.arctanh(second)) * np.sqrt((n - 3) / spread))
    return z, float(2.0 * stats.norm.sf(abs(z)))


def _check(n: int, correlations: Mapping[str, float]) -> None:
    if n < 4:
        raise BadInput(f"{n} pairs are too few to compare correlations; at least 4 are needed.")
    for name, value in correlations.items():
        if not -1.0 < value < 1.0:
            raise BadInput(f"The correlation {name} is {value:g}; it must lie strictly between -1 and 1.")
