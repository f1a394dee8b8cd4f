"""Penalized cubic regression splines of one or two predictors, the bases of mgcv's `s()` and `te()`.

A spline is parameterized by its values at knots that lie at quantiles of the distinct values; its penalty is
the integral of its squared second derivative, and beyond the outer knots it is a straight line (Wood 2017,
section 5.3.1). A tensor product of two such bases has one penalty per direction (section 5.6). Every smooth
is centred over the rows it is fitted to, so that the intercept stays the mean.
"""

import re
from dataclasses import dataclass
from functools import reduce

import numpy as np

from felicity.core.errors import BadInput
from felicity.stats.frames import Vector
from felicity.stats.mixed import split_top

SMOOTH = re.compile(r"^(s|te)\((.*)\)$", re.DOTALL)
KNOTS = {"s": 10, "te": 5}
LEAST_KNOTS = 3


@dataclass(frozen=True)
class Smooth:
    """One smooth term: its columns and how many knots each has."""

    label: str
    columns: tuple[str, ...]
    knots: int


@dataclass(frozen=True)
class Basis:
    """A smooth's basis on the rows it was built from.

    knots, curvatures: per column, the knots and the matrix from values to second derivatives at them.
    centring: columns that span the coefficients whose smooth has mean 0; penalties: on those coefficients.
    """

    smooth: Smooth
    knots: tuple[Vector, ...]
    curvatures: tuple[Vector, ...]
    centring: Vector
    penalties: tuple[Vector, ...]

    def evaluate(self, columns: list[Vector]) -> Vector:
        """The basis at other values, one column per coefficient."""
        return _product(_bases(self.knots, self.curvatures, columns)) @ self.centring


def read_smooth(term: str) -> Smooth | None:
    """A term such as `s(surprisal, k = 6)` or `te(freq, len)`; None for any other term.

    Raises BadInput for another number of columns and for an argument other than k.
    """
    matched = SMOOTH.match(term.strip())
    if matched is None:
        return None
    kind, inside = matched.groups()
    parts = [part.strip() for part in inside.split(",")]
    columns = tuple(part for part in parts if "=" not in part)
    knots = KNOTS[kind]
    for setting in (part for part in parts if "=" in part):
        name, value = (side.strip() for side in setting.split("=", 1))
        if name != "k" or not value.isdigit() or int(value) < LEAST_KNOTS:
            raise BadInput(f"'{term.strip()}' has '{setting}'; a smooth takes 'k = NUMBER', 3 or more.")
        knots = int(value)
    wanted = 1 if kind == "s" else 2
    if len(columns) != wanted or not all(columns):
        raise BadInput(f"'{term.strip()}' needs {wanted} column{'s' * (wanted > 1)}, as in s(x) or te(x, y).")
    return Smooth(f"{kind}({', '.join(columns)})", columns, knots)


def split_smooths(side: str) -> tuple[list[str], list[Smooth]]:
    """The linear terms of a right-hand side, and its smooths.

    >>> split_smooths("len + s(surprisal, k = 6)")[0]
    ['len']
    """
    terms = [term.strip() for term in split_top(side, "+")]
    found = [(term, read_smooth(term)) for term in terms]
    return [term for term, smooth in found if smooth is None], [smooth for _, smooth in found if smooth]


def build_basis(smooth: Smooth, columns: list[Vector]) -> Basis:
    """The basis of a smooth over these rows.

    Raises BadInput if a column has fewer distinct values than knots.
    """
    knots, curvatures, wiggles = [], [], []
    for name, values in zip(smooth.columns, columns, strict=True):
        distinct = np.unique(values)
        if len(distinct) < smooth.knots:
            raise BadInput(
                f"'{name}' has {len(distinct)} distinct values, too few for the {smooth.knots} knots of "
                f"{smooth.label}; use a smaller k, or the predictor as it is."
            )
        own = np.quantile(distinct, np.linspace(0.0, 1.0, smooth.knots))
        curvature, wiggle = _second_derivatives(own)
        knots.append(own)
        curvatures.append(curvature)
        wiggles.append(wiggle)
    raw = _product(_bases(tuple(knots), tuple(curvatures), columns))
    # All coefficient vectors orthogonal to the column means: the smooth's mean over the rows is 0.
    centring = np.linalg.qr(raw.mean(axis=0)[:, None], mode="complete")[0][:, 1:]
    penalties = tuple(centring.T @ penalty @ centring for penalty in _penalties(wiggles))
    return Basis(smooth, tuple(knots), tuple(curvatures), centring, penalties)


def _second_derivatives(knots: Vector) -> tuple[Vector, Vector]:
    """From values at the knots to second derivatives, and the penalty (Wood 2017, table 5.1)."""
    h = np.diff(knots)
    k = len(knots)
    d = np.zeros((k - 2, k))
    b = np.zeros((k - 2, k - 2))
    for i in range(k - 2):
        d[i, i], d[i, i + 2] = 1.0 / h[i], 1.0 / h[i + 1]
        d[i, i + 1] = -d[i, i] - d[i, i + 2]
        b[i, i] = (h[i] + h[i + 1]) / 3.0
        if i + 1 < k - 2:
            b[i, i + 1] = b[i + 1, i] = h[i + 1] / 6.0
    inner = np.linalg.solve(b, d)
    return np.vstack([np.zeros(k), inner, np.zeros(k)]), d.T @ inner


def _bases(knots: tuple[Vector, ...], curvatures: tuple[Vector, ...], columns: list[Vector]) -> list[Vector]:
    parts = zip(knots, curvatures, columns, strict=True)
    return [_evaluate(own, curvature, values) for own, curvature, values in parts]


def _evaluate(knots: Vector, curvature: Vector, values: Vector) -> Vector:
    """A cubic regression spline's basis, linear outside the knots."""
    inside = np.clip(values, knots[0], knots[-1])
    j = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    h = knots[j + 1] - knots[j]
    left, right = knots[j + 1] - inside, inside - knots[j]
    rows = np.arange(len(values))
    out = ((left**3 / h - h * left) / 6.0)[:, None] * curvature[j] + ((right**3 / h - h * right) / 6.0)[
        :, None
    ] * curvature[j + 1]
    out[rows, j] += left / h
    out[rows, j + 1] += right / h
    # Beyond an end, add its slope times the distance.
    slope = ((h - 3.0 * left**2 / h) / 6.0)[:, None] * curvature[j] + ((3.0 * right**2 / h - h) / 6.0)[
        :, None
    ] * curvature[j + 1]
    slope[rows, j] -= 1.0 / h
    slope[rows, j + 1] += 1.0 / h
    return np.asarray(out + (values - inside)[:, None] * slope)


def _product(bases: list[Vector]) -> Vector:
    """All products of one column of each basis, the last varying fastest."""
    return reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), bases)


def _penalties(wiggles: list[Vector]) -> list[Vector]:
    """One penalty per direction, of unit size so that the search for their weights starts alike."""
    scaled = [wiggle / float(np.linalg.norm(wiggle, 2)) for wiggle in wiggles]
    if len(scaled) == 1:
        return scaled
    ones = [np.eye(len(wiggle)) for wiggle in scaled]
    return [np.asarray(np.kron(scaled[0], ones[1])), np.asarray(np.kron(ones[0], scaled[1]))]
