"""Delta log-likelihood: folds as R cuts them, densities as a plain loop gives them, refusals."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from felicity.core.errors import BadInput, UnknownName
from felicity.stats import Scheme, columns_of, compare_in_sample, complete_rows, cut_folds, measure_gain
from felicity.stats.predictive_power import Cut, Variance


@pytest.fixture(scope="module")
def words() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    n = 203
    surprisal, length = rng.gamma(2.0, 3.0, n), rng.integers(1, 10, n).astype(float)
    rt = 250 + 3 * surprisal + 2 * length + rng.normal(0, 20, n)
    return pl.DataFrame({"rt": rt, "surprisal": surprisal, "length": length, "sentence": np.arange(n) // 9})


def test_width_folds_are_those_of_r() -> None:
    # table(cut(1:23, 5, labels = FALSE))
    assert np.bincount(cut_folds(23, 5, "width")).tolist() == [5, 4, 5, 4, 5]


def test_folds_of_sentences_keep_each_together(words: pl.DataFrame) -> None:
    groups = words["sentence"].to_numpy()
    folds = cut_folds(203, 10, "groups", groups=groups)
    assert words.select("sentence", fold=folds).unique().height == words["sentence"].n_unique()
    assert (np.diff(folds) >= 0).all()
    assert len(np.unique(folds)) == 10


def test_scattered_sentences_are_refused() -> None:
    with pytest.raises(BadInput, match="not together"):
        cut_folds(6, 2, "groups", groups=np.array([0, 1, 0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("cut", "variance"), [("width", "training"), ("even", "test"), ("groups", "training")]
)
def test_held_out_gain_is_that_of_a_plain_loop(words: pl.DataFrame, cut: Cut, variance: Variance) -> None:
    gain = measure_gain(
        words,
        "rt ~ length",
        "rt ~ length + surprisal",
        scheme=Scheme(5, cut, variance),
        cluster="sentence",
        draws=50,
    )
    y, n = words["rt"].to_numpy(), words.height
    small = np.column_stack([np.ones(n), words["length"]])
    large = np.column_stack([small, words["surprisal"]])
    expected = np.zeros(n)
    for fold in range(5):
        test = gain.folds == fold
        for x, sign in ((large, 1.0), (small, -1.0)):
            beta, rss, *_ = np.linalg.lstsq(x[~test], y[~test], rcond=None)
            errors = y[test] - x[test] @ beta
            sd = (
                np.sqrt(rss[0] / ((~test).sum() - x.shape[1]))
                if variance == "training"
                else errors.std(mean=0)
            )
            expected[test] += sign * stats.norm.logpdf(errors, scale=sd)
    assert gain.per_row == pytest.approx(expected)
    assert gain.delta == pytest.approx(expected.mean())
    assert gain.test.p < 0.01
    assert gain.interval.low > 0


def test_a_predictor_of_noise_adds_nothing(words: pl.DataFrame) -> None:
    noise = words.with_columns(noise=pl.Series(np.random.default_rng(1).normal(size=words.height)))
    gain = measure_gain(noise, "rt ~ length", "rt ~ length + noise", cluster="sentence", draws=200)
    assert gain.delta < 0.01
    assert gain.test.p > 0.05


def test_in_sample_gain_counts_coefficients(words: pl.DataFrame) -> None:
    found = compare_in_sample(words, "rt ~ length", "rt ~ length + surprisal")
    y, n = words["rt"].to_numpy(), words.height
    left = [
        float(np.linalg.lstsq(x, y, rcond=None)[1][0])
        for x in (
            np.column_stack([np.ones(n), words["length"]]),
            np.column_stack([np.ones(n), words["length"], words["surprisal"]]),
        )
    ]
    assert found.delta == pytest.approx(n / 2 * np.log(left[0] / left[1]))
    assert found.delta_aic == pytest.approx(2 - 2 * found.delta)
    assert found.r2_share == pytest.approx(1 - left[1] / left[0])


def test_rows_are_those_that_both_models_can_use(words: pl.DataFrame) -> None:
    holes = words.with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("length").alias("length"),
        pl.when(pl.int_range(pl.len()) == 7).then(float("inf")).otherwise("surprisal").alias("surprisal"),
    )
    kept, missing = complete_rows(holes, ["rt ~ length", "rt ~ length + s(surprisal)"])
    assert kept.height == words.height - 2
    assert missing.rows() == [("length", 1), ("surprisal", 1)]


def test_columns_of_a_formula_are_named_once() -> None:
    assert columns_of("rt ~ log(freq) * len + te(freq, x)") == ["rt", "freq", "len", "x"]


@pytest.mark.parametrize("wrong", [{"cut": "random"}, {"variance": "mine"}])
def test_unknown_schemes_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UnknownName, match=r"random|mine"):
        Scheme(**wrong)  # type: ignore[arg-type]
