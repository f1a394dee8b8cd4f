"""Mixed models of reading times by reader and word, and where the times of a corpus line up with its words.

The random part is maximal and uncorrelated: intercepts and slopes of the critical predictors by reader,
intercepts by item. It is simplified by one rule, which is stated with the result: while the fit is singular,
the random effect with the smallest standard deviation (in units of the response per standard deviation of its
predictor) is left out, of equal ones a slope. Both models of a comparison have the same random part.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.core.wording import decimal
from felicity.stats.additive import build_additive
from felicity.stats.bootstrap import DRAWS, count_draws
from felicity.stats.frames import Frame, Vector, as_polars, one_thread
from felicity.stats.mixed import FittedModel, fit_lmm, lr_test
from felicity.stats.predictive_power import cluster_codes

SIMPLIFICATION = (
    "The random part was maximal without correlations; while the fit was singular, the random effect with "
    "the smallest standard deviation was left out, of equal ones a slope."
)
SHIFTS = (-2, -1, 0, 1, 2)
SHIFTS_EXPECTED = (0, 1)
EARLY_SHARE = 0.6
CHANCE_ERRORS = 2.0


@dataclass(frozen=True)
class MixedGain:
    """A mixed model of reading times with and without the critical predictors, by maximum likelihood.

    slopes: term, estimate, se, df, statistic, p, low, high, in units of the response per unit of predictor.
    dropped: random effects that were left out, in order.
    """

    target: FittedModel
    baseline: FittedModel
    slopes: pl.DataFrame
    delta: float
    chisq: float
    df: int
    p: float
    dropped: tuple[str, ...]

    @property
    def per_row(self) -> float:
        """Delta log-likelihood per row."""
        return self.delta / self.target.n


def fit_reading_times(
    frame: Frame,
    response: str,
    controls: Sequence[str],
    critical: Sequence[str],
    *,
    reader: str | None = "reader",
    item: str | None = "item",
    level: float = 0.95,
) -> MixedGain:
    """Fit `response ~ controls + critical` with and without the critical predictors, by reader and item.

    reader, item: the columns of the grouping factors; None leaves one out.

    Raises BadInput if neither is given or the data fit no model.
    """
    random = [(slope, reader) for slope in ("1", *critical) if reader is not None]
    random += [("1", item)] if item is not None else []
    if not random:
        raise BadInput("A mixed model needs readers or items; give the name of a column.")
    table = as_polars(frame)
    dropped: list[str] = []
    fixed = [*controls, *critical]
    while True:
        model = fit_lmm(_write(response, fixed, random), table, reml=False, level=level)
        if not model.singular or len(random) == 1:
            break
        weakest = _weakest(model, table, random)
        random.remove(weakest)
        dropped.append(f"{weakest[0]} by {weakest[1]}" if weakest[0] != "1" else f"intercept by {weakest[1]}")
    smaller = fit_lmm(_write(response, list(controls), random), table, reml=False, level=level)
    chisq, df, p = lr_test(smaller, model)
    return MixedGain(
        target=model,
        baseline=smaller,
        slopes=model.fixed.filter(pl.col("term").is_in(list(critical))),
        delta=model.log_likelihood - smaller.log_likelihood,
        chisq=chisq,
        df=df,
        p=p,
        dropped=tuple(dropped),
    )


def _write(response: str, fixed: Sequence[str], random: Sequence[tuple[str, str]]) -> str:
    terms = [f"({'1' if slope == '1' else f'0 + {slope}'} | {group})" for slope, group in random]
    return f"{response} ~ {' + '.join([*(fixed or ['1']), *terms])}"


def _weakest(model: FittedModel, table: pl.DataFrame, random: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The random effect with the smallest standard deviation; of equal ones a slope."""
    sizes: dict[tuple[str, str], float] = {}
    for slope, group in random:
        term = "(Intercept)" if slope == "1" else slope
        # lme4 labels the terms of a group 'g', 'g.1', 'g.2'.
        own = model.random.filter(
            (pl.col("term") == term) & pl.col("group").str.contains(rf"^{re.escape(group)}(\.\d+)?$")
        )
        spread = 1.0 if slope == "1" else float(np.std(table[slope].to_numpy()))
        sizes[slope, group] = float(own["sd"][0]) * spread
    return min(sizes, key=lambda term: (sizes[term], term[0] == "1"))


@one_thread
def estimate_slopes(
    frame: Frame,
    formula: str,
    terms: Sequence[str],
    *,
    cluster: str | Sequence[str],
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> pl.DataFrame:
    """Least-squares slopes of a linear formula, with intervals that resample whole sentences.

    Columns term, estimate, se, low, high, p. Words of a sentence are not independent, so that the usual
    standard errors are too small. The bootstrap gives the standard error, Student's t with one degree of
    freedom fewer than there are sentences the interval and p.

    Raises BadInput if there are fewer sentences than two.
    """
    table = as_polars(frame)
    data = build_additive(formula, table)
    codes = cluster_codes(table, cluster)
    units = 0 if codes is None else int(codes.max(initial=-1)) + 1
    if codes is None or units < 2:
        raise BadInput("Slopes with intervals need at least two sentences.")
    p = data.x.shape[1]
    grams, products = np.zeros((units, p, p)), np.zeros((units, p))
    for unit in range(units):
        own = data.x[codes == unit]
        grams[unit], products[unit] = own.T @ own, own.T @ data.y[codes == unit]
    times = count_draws(units, seed=seed, draws=draws)
    found = _solve(times, grams, products)
    estimate = _solve(np.ones((1, units)), grams, products)[0]
    se = found.std(axis=0) * np.sqrt(units / (units - 1))
    half = float(stats.t.ppf(0.5 + level / 2.0, units - 1)) * se
    places = [data.names.index(term) for term in terms]
    return pl.DataFrame(
        {
            "term": list(terms),
            "estimate": estimate[places],
            "se": se[places],
            "low": (estimate - half)[places],
            "high": (estimate + half)[places],
            "p": 2.0 * stats.t.sf(np.abs(estimate / se), units - 1)[places],
        }
    )


def _solve(times: Vector, grams: Vector, products: Vector) -> Vector:
    """Coefficients of each draw, whose clusters count so many times; a draw that has none is left out."""
    p = products.shape[1]
    left = (times @ grams.reshape(len(grams), -1)).reshape(-1, p, p)
    right = times @ products
    solvable = np.linalg.matrix_rank(left, hermitian=True) == p if len(times) > 1 else np.array([True])
    return np.asarray(np.linalg.solve(left[solvable], right[solvable][..., None])[..., 0])


def correlate_shifts(
    frame: Frame, response: str, predictor: str, *, within: Sequence[str], shifts: Sequence[int] = SHIFTS
) -> pl.DataFrame:
    """Correlation of times with the predictor of words before and after: shift, r, n.

    A shift of 1 pairs each time with the predictor of the word before it, as spillover does; -1 with that of
    the word after it, which no reader can have seen. The rows of each text in `within` must be in order.
    """
    table = as_polars(frame)
    rows = []
    for shift in shifts:
        moved = table.select(
            pl.col(response).alias("y"), pl.col(predictor).shift(shift).over(list(within)).alias("x")
        ).drop_nulls()
        moved = moved.filter(pl.col("x").is_finite() & pl.col("y").is_finite())
        enough = moved.height > 2 and moved["x"].std() and moved["y"].std()
        r = float(np.corrcoef(moved["x"], moved["y"])[0, 1]) if enough else None
        rows.append({"shift": shift, "r": r, "n": moved.height})
    return pl.DataFrame(rows, schema={"shift": pl.Int64, "r": pl.Float64, "n": pl.Int64})


def check_alignment(shifts: pl.DataFrame) -> str | None:
    """A sentence if the times seem to be listed at other words than they belong to, else None.

    The correlation should be largest at shift 0 or, with spillover, 1; and readers do not know the next word,
    so that at shift -1 it should be small, not larger than at 1 and near the largest (0.6 of it or more). A
    difference of two correlations within two standard errors, about 2 sqrt(2 / n), says nothing.
    """
    told = shifts.drop_nulls("r")
    known = {row["shift"]: abs(row["r"]) for row in told.to_dicts()}
    if not known:
        return None
    noise = CHANCE_ERRORS * float(np.sqrt(2.0 / told["n"].to_numpy().min()))
    peak = max(known, key=lambda shift: known[shift])
    expected = max(known.get(shift, 0.0) for shift in SHIFTS_EXPECTED)
    if peak not in SHIFTS_EXPECTED and known[peak] - expected > noise:
        side = "after" if peak < 0 else "before"
        return (
            f"The times correlate most with the surprisal of the word {abs(peak)} {side} (|r| = "
            f"{decimal(known[peak], 3)}), not with that of their own word: they may belong to other words."
        )
    next_word, word_before = known.get(-1, 0.0), known.get(1, 0.0)
    if next_word - word_before > noise and next_word > EARLY_SHARE * known[peak]:
        return (
            f"The times correlate with the surprisal of the next word, which was not yet seen (|r| = "
            f"{decimal(next_word, 3)}), more than with that of the word before (|r| = "
            f"{decimal(word_before, 3)}): they may be listed one word early."
        )
    return None
