"""Additive models by penalized least squares: `rt ~ surprisal + te(freq, len)` or `rt ~ s(surprisal) + len`.

The weights of the penalties minimize generalized cross-validation, n RSS / (n - edf)^2, as in mgcv's `gam()`
for a normal response. Without a smooth this is ordinary least squares. The residual variance is
RSS / (n - edf). Where a penalty's best weight is infinite, mgcv's result depends on rounding, and the two can
differ in the fourth digit of a held-out likelihood.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl
from scipy import stats
from scipy.linalg.lapack import dpstrf

from felicity.core.errors import BadInput
from felicity.stats.frames import Codes, Frame, Vector, as_polars, one_thread
from felicity.stats.mixed import Coder, check_design, parse_formula, read_response
from felicity.stats.smooths import Basis, Smooth, build_basis, split_smooths

STEPS = 400
LEAST_STEPS = 2
NEWTON_HALVINGS = 3
HALVINGS = 22
LONGEST_STEP = 5.0
TOLERANCE = 1e-7
PUSHES, PUSH = 5, 2.0
START_SHARE = 0.4
GRID = 100


@dataclass(frozen=True)
class AdditiveData:
    """A model's columns over all rows, from which fits to some of them are made."""

    formula: str
    y: Vector
    x: Vector
    names: tuple[str, ...]
    smooths: tuple[Smooth, ...]
    columns: dict[str, Vector]

    def design(self, bases: tuple[Basis, ...], rows: Codes | slice) -> Vector:
        """The design of some rows: the linear columns, then the bases of the smooths."""
        parts = [
            basis.evaluate([self.columns[name][rows] for name in basis.smooth.columns]) for basis in bases
        ]
        return np.hstack([self.x[rows], *parts])


@dataclass(frozen=True)
class AdditiveFit:
    """A fitted additive model.

    edf: per column of the design, the effective degrees of freedom; sigma2: RSS / (n - their sum).
    vcov: of the coefficients, the posterior covariance that intervals of smooths are made of (Wood 2006).
    """

    data: AdditiveData
    bases: tuple[Basis, ...]
    beta: Vector
    edf: Vector
    rss: float
    sigma2: float
    vcov: Vector
    n: int

    def predict(self, rows: Codes | slice) -> Vector:
        """What the model predicts for rows of its data, fitted to or not."""
        return np.asarray(self.data.design(self.bases, rows) @ self.beta)

    @property
    def slices(self) -> list[slice]:
        """Where the coefficients of each smooth stand."""
        ends = np.cumsum([self.data.x.shape[1], *(basis.centring.shape[1] for basis in self.bases)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def curve(self, column: str, *, level: float = 0.95, points: int = GRID) -> pl.DataFrame:
        """The smooth of one predictor over its range: x, y (0 at the smallest x), low, high, edf.

        Raises BadInput if it is no smooth of that predictor alone.
        """
        for basis, part in zip(self.bases, self.slices, strict=True):
            if basis.smooth.columns == (column,):
                grid = np.linspace(self.data.columns[column].min(), self.data.columns[column].max(), points)
                # A smooth is known up to its mean: relative to its start it is a contrast like any other.
                design = basis.evaluate([grid])
                design = design - design[0]
                y = design @ self.beta[part]
                se = np.sqrt(np.einsum("ni,ij,nj->n", design, self.vcov[part, part], design))
                half = stats.norm.ppf(0.5 + level / 2.0) * se
                edf = float(self.edf[part].sum())
                return pl.DataFrame({"x": grid, "y": y, "low": y - half, "high": y + half, "edf": edf})
        raise BadInput(f"'{self.data.formula}' has no smooth of '{column}' alone; write s({column}).")


def build_additive(formula: str, frame: Frame) -> AdditiveData:
    """The columns of a formula with linear terms, `s(x, k = 6)` and `te(x, y)`.

    Raises BadInput or UnknownName in a sentence for data that no model can be fitted to.
    """
    left, tilde, right = formula.partition("~")
    linear, smooths = split_smooths(right)
    parsed = parse_formula(f"{left.strip()} {tilde} {' + '.join(linear) or '1'}")
    if parsed.random:
        raise BadInput(f"The formula '{formula}' has random terms; use fit_lmm for those.")
    coder = Coder(as_polars(frame), None, sides=parsed.sides)
    y = read_response(coder, parsed.response)
    x, names, _ = coder.matrix(parsed.fixed)
    check_design(x, names)
    wanted = dict.fromkeys(name for smooth in smooths for name in smooth.columns)
    columns = {name: coder.vector(name) for name in wanted}
    return AdditiveData(formula, y, x, tuple(names), tuple(smooths), columns)


@one_thread
def fit_additive(data: AdditiveData, rows: Codes | slice = slice(None)) -> AdditiveFit:
    """Fit a model to some of its rows, or to all."""
    bases = tuple(
        build_basis(smooth, [data.columns[name][rows] for name in smooth.columns]) for smooth in data.smooths
    )
    design, y = data.design(bases, rows), data.y[rows]
    n, p = design.shape
    if n <= p:
        raise BadInput(f"{n} rows cannot support the {p} coefficients of '{data.formula}'; simplify it.")
    basis, r = np.linalg.qr(design)
    f = basis.T @ y
    outside = max(float(y @ y - f @ f), 0.0)
    best = _minimize_gcv(_Point(r, f, outside, n, _embed(data, bases, p)))
    inverse = best.scaled @ best.scaled.T
    edf = np.einsum("ij,ji->i", inverse, r.T @ r)
    left = y - design @ best.beta
    rss = float(left @ left)
    sigma2 = rss / (n - float(edf.sum()))
    return AdditiveFit(data, bases, best.beta, edf, rss, sigma2, inverse * sigma2, n)


def _embed(data: AdditiveData, bases: tuple[Basis, ...], p: int) -> list[Vector]:
    """The penalties of all smooths, each on all coefficients."""
    out, start = [], data.x.shape[1]
    for basis in bases:
        end = start + basis.centring.shape[1]
        for penalty in basis.penalties:
            whole = np.zeros((p, p))
            whole[start:end, start:end] = penalty
            out.append(whole)
        start = end
    return out


def _minimize_gcv(point: "_Point") -> "_Point":
    """The nearest minimum of generalized cross-validation.

    The score can have several minima. The start and the steps in logarithms, Newton's where the score is
    convex and else steepest descent, are those of mgcv's `magic`, so that the same one is found.
    """
    if not point.penalties:
        return point
    point = point.move(np.log(_start_weights((point.r**2).sum(axis=0), point.penalties)))
    for step_number in range(STEPS):
        curvatures, directions = np.linalg.eigh(point.hessian)
        step = steepest = -point.slope / np.abs(point.slope).max()
        if curvatures[0] >= 0:
            step = -directions @ ((directions.T @ point.slope) / curvatures)
        step = step * min(1.0, LONGEST_STEP / float(np.abs(step).max()))
        found = _descend(point, step, steepest)
        if found is None:
            break
        flat = float(np.linalg.norm(point.slope)) <= np.cbrt(TOLERANCE) * (1.0 + found.value)
        gain = point.value - found.value
        point = found
        if step_number >= LEAST_STEPS and flat and gain <= TOLERANCE * (1.0 + found.value):
            break
    return _push_out(point)


def _root(penalty: Vector) -> Vector:
    """The rows of a square root of the penalty, by Cholesky's method with pivots, as mgcv does it."""
    factor, order, rank, _ = dpstrf(penalty)
    out = np.zeros((rank, len(penalty)))
    out[:, order - 1] = np.triu(factor)[:rank]
    return out


def _start_weights(sizes: Vector, penalties: list[Vector]) -> Vector:
    """Weights at which penalties are as large as the design, then scaled until most of it is shrunk."""
    total = np.zeros(len(sizes))
    weights = np.empty(len(penalties))
    for i, penalty in enumerate(penalties):
        diagonal = np.diag(penalty)
        on = diagonal > 0
        weights[i] = sizes[on].mean() / diagonal[on].mean()
        total += weights[i] * diagonal
    penalized = total > 0
    sizes, total = sizes[penalized], total[penalized]
    scale = 1.0
    while float(np.mean(sizes / (sizes + scale * total))) > START_SHARE:
        scale *= 10.0
    while float(np.mean(sizes / (sizes + scale * total))) < START_SHARE:
        scale /= 10.0
    return weights * scale


def _descend(point: "_Point", step: Vector, steepest: Vector) -> "_Point | None":
    """Where the score is lower: after a step, its half or quarter, else down the slope; None if nowhere."""
    tries = [step / 2**i for i in range(NEWTON_HALVINGS)] + [steepest / 2**i for i in range(HALVINGS)]
    for tried in tries:
        new = point.move(point.logs + tried)
        if new.value < point.value:
            return new
    return None


def _push_out(point: "_Point") -> "_Point":
    """The point with weights that have their minimum at 0 or infinity moved on towards it."""
    for i, slope in enumerate(point.slope):
        for _ in range(PUSHES):
            moved = point.logs.copy()
            moved[i] -= np.copysign(PUSH, slope)
            new = point.move(moved)
            if new.value >= point.value:
                break
            point = new
    return point


@dataclass(frozen=True)
class _Point:
    """The generalized cross-validation score at the logarithms of the weights, with both derivatives.

    With A = X'X + S and B_j = A^-1 S_j, all from the singular values of the stacked design and penalty roots
    (Wood 2004): d beta / d log_j = -B_j beta, d edf / d log_j = -tr(B_j A^-1 X'X).
    """

    r: Vector
    f: Vector
    outside: float
    n: int
    penalties: list[Vector]
    logs: Vector = field(default_factory=lambda: np.zeros(0))

    def move(self, logs: Vector) -> "_Point":
        """The score elsewhere."""
        return replace(self, logs=logs)

    @property
    def scaled(self) -> Vector:
        """A square root of A^-1."""
        return self._svd[1]

    @cached_property
    def _svd(self) -> tuple[Vector, Vector]:
        """U's upper part and V / d, without directions that are numerically null."""
        total = sum(
            (np.exp(log) * s for log, s in zip(self.logs, self.penalties, strict=True)), np.zeros_like(self.r)
        )
        root = _root(total) if len(self.logs) else np.zeros((0, len(self.r)))
        u, d, vt = np.linalg.svd(np.vstack([self.r, root]), full_matrices=False)
        kept = d > d[0] * np.sqrt(np.finfo(float).eps)
        return u[: len(self.r), kept], vt[kept].T / d[kept]

    @cached_property
    def beta(self) -> Vector:
        """The coefficients."""
        upper, scaled = self._svd
        return np.asarray(scaled @ (upper.T @ self.f))

    @cached_property
    def rss(self) -> float:
        """The residual sum of squares."""
        left = self.f - self.r @ self.beta
        return self.outside + float(left @ left)

    @cached_property
    def df(self) -> float:
        """Residual degrees of freedom."""
        return self.n - float((self._svd[0] ** 2).sum())

    @cached_property
    def value(self) -> float:
        """n RSS / (n - edf)^2."""
        return self.n * self.rss / self.df**2

    @cached_property
    def _parts(self) -> tuple[Vector, list[Vector], list[Vector], list[Vector], Vector, Vector]:
        """S beta, then per penalty B_j, B_j beta and B_j F, and the derivatives of RSS and edf."""
        inverse = self.scaled @ self.scaled.T
        share = inverse @ (self.r.T @ self.r)
        weighted = [np.exp(log) * s for log, s in zip(self.logs, self.penalties, strict=True)]
        pulled = np.sum([s @ self.beta for s in weighted], axis=0)
        b = [inverse @ s for s in weighted]
        moved = [own @ self.beta for own in b]
        shared = [own @ share for own in b]
        of_rss = np.array([2.0 * float(pulled @ own) for own in moved])
        of_edf = np.array([-float(np.trace(own)) for own in shared])
        return pulled, b, moved, shared, of_rss, of_edf

    @cached_property
    def slope(self) -> Vector:
        """Derivative in the logarithms."""
        of_rss, of_edf = self._parts[4:]
        return np.asarray(self.n * (of_rss / self.df**2 + 2.0 * self.rss * of_edf / self.df**3))

    @cached_property
    def hessian(self) -> Vector:
        """Second derivatives in the logarithms."""
        pulled, b, moved, shared, of_rss, of_edf = self._parts
        gram, k = self.r.T @ self.r, len(b)
        rss, edf = np.empty((k, k)), np.empty((k, k))
        for i in range(k):
            for j in range(k):
                twice = b[j] @ moved[i] + b[i] @ moved[j] - (i == j) * moved[i]
                rss[i, j] = 2.0 * float(moved[i] @ gram @ moved[j]) - 2.0 * float(pulled @ twice)
                edf[i, j] = np.einsum("ij,ji->", b[j], shared[i]) + np.einsum("ij,ji->", b[i], shared[j])
                edf[i, j] += (i == j) * of_edf[i]
        crossed = np.outer(of_rss, of_edf)
        total = (
            rss / self.df**2
            + 2.0 * (crossed + crossed.T + self.rss * edf) / self.df**3
            + 6.0 * self.rss * np.outer(of_edf, of_edf) / self.df**4
        )
        return np.asarray(self.n * total)
