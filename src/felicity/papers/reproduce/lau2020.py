"""Human acceptability in context (Lau et al. 2020), from the released ratings.

`none`, `real` and `random` are the settings: no context (H0), the sentence's own context (H+), another
context (H-). The released ratings are already cleaned.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from felicity.papers.reproduce.computations import COMPUTATIONS, pick, select
from felicity.papers.reproduce.inputs import Files
from felicity.stats import compare_lines, correlate, half_against_half, one_against_rest, signed_rank

SEED = 0
TRIALS = 1000
CEILINGS: dict[str, Callable[..., pl.DataFrame]] = {"UB1": one_against_rest, "UB2": half_against_half}


def _ratings(files: Files, setting: str) -> pl.DataFrame:
    return files.table(f"lau2020/human-ratings/context-{setting}-ratings.csv").sort("ID")


def _means(files: Files, setting: str) -> np.ndarray:
    return _ratings(files, setting)["mean-ratings"].to_numpy()


@COMPUTATIONS.add("lau2020.sentences")
def count_sentences(files: Files, *, setting: str, translated: int | None = None) -> float:
    """Sentences rated in a setting; translated 1 or 0 narrows to those (not) translated there and back."""
    return float(
        select(_ratings(files, setting), {} if translated is None else {"translated": translated}).height
    )


@COMPUTATIONS.add("lau2020.correlation")
def correlate_settings(files: Files, *, x: str, y: str) -> float:
    """Pearson's r of the sentences' mean ratings in two settings."""
    return pick(correlate(_means(files, x), _means(files, y)), "r")


@COMPUTATIONS.add("lau2020.signed_rank")
def compare_contexts(files: Files) -> float:
    """p of the one-sided Wilcoxon signed-rank test that H+ is above H-."""
    return pick(signed_rank(_means(files, "real"), _means(files, "random"), alternative="greater"), "p")


@COMPUTATIONS.add("lau2020.regression")
def compare_regression_lines(files: Files, *, term: str) -> float:
    """p of offset (ctx) or slope (x:ctx) in y ~ x + ctx + x:ctx, with x from H0 and y from H+ and H-."""
    fitted = compare_lines(_means(files, "none"), _means(files, "real"), _means(files, "random"))
    return pick(fitted.fixed.filter(term=term), "p")


@COMPUTATIONS.add("lau2020.shift")
def shift_of(files: Files, *, sentences: str, figure: str = "mean") -> float:
    """Mean of H+ minus H0 (or n) over good sentences (H0 at least 3.5) or bad ones (at most 1.5)."""
    none, real = _means(files, "none"), _means(files, "real")
    chosen = none >= 3.5 if sentences == "good" else none <= 1.5
    return float(chosen.sum()) if figure == "n" else float((real - none)[chosen].mean())


@COMPUTATIONS.add("lau2020.upper_bound")
def upper_bound(files: Files, *, bound: str, setting: str) -> float:
    """UB1: one random rating against the mean of the rest; UB2: random halves; mean of 1000 trials."""
    ratings = [[float(x) for x in text.split(",")] for text in _ratings(files, setting)["full-ratings"]]
    return pick(CEILINGS[bound](ratings, trials=TRIALS, seed=SEED), "r")
