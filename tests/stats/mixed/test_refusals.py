"""Data that no mixed model can be fitted to are refused in a sentence that names the culprit."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.linear import fit_lmm


def make_frame(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    group = np.arange(n) % 6
    return pl.DataFrame(
        {
            "y": x + rng.normal(size=6)[group] + rng.normal(size=n),
            "hit": (rng.random(n) < 0.5).astype(int),
            "x": x,
            "twice": 2 * x + 1,
            "same": np.ones(n),
            "cond": ["a", "b"] * (n // 2),
            "group": [f"g{i}" for i in group],
            "one": ["only"] * n,
            "row": [f"r{i}" for i in range(n)],
        }
    )


Change = Callable[[pl.DataFrame], pl.DataFrame]


def kept(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def with_gap(column: str) -> Change:
    return lambda frame: frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col(column)).alias(column)
    )


CASES: list[tuple[str, Change, str]] = [
    ("y ~ x + same + (1 | group)", kept, "'same' is 1 in every row"),
    ("y ~ x + one + (1 | group)", kept, "'one' has only one level"),
    ("y ~ x + twice + (1 | group)", kept, "rank-deficient: 'twice'"),
    ("y ~ x + (1 | one)", kept, "'one' has only one level"),
    ("y ~ x + (1 | row)", kept, "cannot be told from the residual"),
    ("y ~ x + (1 | group)", with_gap("x"), "'x' has 1 missing value"),
    ("y ~ x + (1 | group)", with_gap("y"), "'y' has 1 missing value"),
    ("y ~ x + (1 | group)", with_gap("group"), "'group' has 1 missing value"),
    ("y ~ x + (1 | group)", lambda f: f.with_columns(y=pl.lit(float("nan"))), "'y' has 60 missing values"),
    ("y ~ x + (1 | group)", lambda f: f.with_columns(x=pl.col("x") / 0.0), "infinite"),
    ("y ~ x + (1 | group)", lambda f: f.head(0), "no rows"),
    ("y ~ x + (1 | group)", lambda f: f.with_columns(y=pl.lit(2.0)), "nothing to explain"),
    ("x ~ twice + (1 | group)", kept, "explain the response exactly"),
    ("y ~ x", kept, "no random term"),
    ("y ~ 0 + (1 | group)", kept, "no fixed effect"),
    ("cond ~ x + (1 | group)", kept, "'cond' is a factor"),
    ("cbind(hit, 1 - hit) ~ x + (1 | group)", kept, "needs a binomial model"),
    ("y ~ x + (0 + same | group)", lambda f: f.with_columns(same=pl.lit(0.0)), "is 0 in every row"),
]


@pytest.mark.parametrize(("formula", "change", "complaint"), CASES)
def test_linear(formula: str, change: Change, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        fit_lmm(formula, change(make_frame()))


def with_separation(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(hit=pl.when(pl.col("cond") == "b").then(1).otherwise(pl.col("hit")))


BINOMIAL: list[tuple[str, Change, str]] = [
    ("hit ~ cond + (1 | group)", with_separation, "'condb' separates hits from misses"),
    ("hit ~ x + (1 | group)", lambda f: f.with_columns(hit=(pl.col("x") > 0).cast(int)), "'x' separates"),
    ("hit ~ x + (1 | group)", lambda f: f.with_columns(hit=pl.lit(0.5)), "ties have to be dropped"),
    ("hit ~ x + (1 | group)", lambda f: f.with_columns(hit=pl.lit(1)), "the same in every row"),
    ("cbind(hit, 0 - hit) ~ x + (1 | group)", kept, "whole counts"),
    ("cbind(hit) ~ x + (1 | group)", kept, "cbind\\(hits, misses\\)"),
    ("row ~ x + (1 | group)", kept, "60 levels; two are needed"),
    ("hit ~ x + twice + (1 | group)", kept, "rank-deficient: 'twice'"),
    ("hit ~ x + (1 | one)", kept, "'one' has only one level"),
    ("hit ~ x + (1 | group)", with_gap("hit"), "missing value"),
    ("hit ~ x + (1 | group)", lambda f: f.head(0), "no rows"),
]


@pytest.mark.parametrize(("formula", "change", "complaint"), BINOMIAL)
def test_binomial(formula: str, change: Change, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        fit_glmm(formula, change(make_frame()))


def test_an_unknown_column_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'group'"):
        fit_lmm("y ~ x + (1 | grup)", make_frame())


def test_something_that_is_no_frame_is_refused() -> None:
    with pytest.raises(BadInput, match="not a dict"):
        fit_lmm("y ~ x + (1 | g)", {"y": [1.0]})
