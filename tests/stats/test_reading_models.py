"""Mixed models of reading times against lme4, their simplification, and the check of alignment."""

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.stats import (
    check_alignment,
    correlate_shifts,
    estimate_slopes,
    fit_ols,
    fit_reading_times,
)


@pytest.fixture(scope="module")
def trials() -> pl.DataFrame:
    # r <- rep(0:11, each = 20); it <- rep(0:19, 12); s <- ((it*7) %% 20)/2; l <- 1 + (it*3) %% 7
    # rt <- 300 + 5*s + 3*l + ((r*13) %% 11 - 5)*8 + ((r*5) %% 7 - 3)*0.9*s + ((it*11) %% 13 - 6)*2 +
    #       (((r*20 + it)*97) %% 61 - 30)
    r, it = np.repeat(np.arange(12), 20), np.tile(np.arange(20), 12)
    s, length = (it * 7 % 20) / 2, 1 + it * 3 % 7
    rt = 300 + 5 * s + 3 * length + (r * 13 % 11 - 5) * 8 + (r * 5 % 7 - 3) * 0.9 * s + (it * 11 % 13 - 6) * 2
    rt = rt + ((r * 20 + it) * 97 % 61 - 30)
    return pl.DataFrame({"rt": rt, "s": s, "length": length.astype(float), "reader": r, "item": it})


def test_slopes_and_likelihoods_are_those_of_lme4(trials: pl.DataFrame) -> None:
    # m <- lmer(rt ~ l + s + (1|reader) + (0 + s|reader) + (1|item), REML = FALSE), and without s
    found = fit_reading_times(trials, "rt", ["length"], ["s"])
    assert found.slopes["estimate"].item() == pytest.approx(5.51126589, rel=1e-7)
    # lme4 stops at a relative tolerance of about 1e-6.
    assert found.slopes["se"].item() == pytest.approx(0.786115820, rel=2e-6)
    assert found.target.log_likelihood == pytest.approx(-1079.4618568, abs=1e-6)
    assert found.baseline.log_likelihood == pytest.approx(-1091.5994267, abs=1e-6)
    assert found.per_row == pytest.approx((1091.5994267 - 1079.4618568) / 240, abs=1e-8)
    assert found.dropped == ()


def test_a_slope_that_does_not_vary_is_left_out_and_said(trials: pl.DataFrame) -> None:
    flat = trials.with_columns(
        rt=300.0 + 5 * pl.col("s") + 10 * pl.col("reader") + ((pl.col("reader") + 3 * pl.col("item")) % 7)
    )
    found = fit_reading_times(flat, "rt", ["length"], ["s"])
    assert "s by reader" in found.dropped
    assert "(0 + s | reader)" not in found.target.formula
    assert not found.target.singular


def test_neither_readers_nor_items_is_refused(trials: pl.DataFrame) -> None:
    with pytest.raises(BadInput, match="readers or items"):
        fit_reading_times(trials, "rt", ["length"], ["s"], reader=None, item=None)


@pytest.fixture(scope="module")
def spillover() -> pl.DataFrame:
    """Times that rise with the surprisal of the word and, less, of the one before it."""
    rng = np.random.default_rng(2)
    surprisal = rng.gamma(2.0, 3.0, 2000)
    before = np.append(0.0, surprisal[:-1])
    rt = 4 * surprisal + 2 * before + rng.normal(0, 20, 2000)
    return pl.DataFrame({"text": np.arange(2000) // 200, "rt": rt, "surprisal": surprisal})


def test_aligned_times_raise_no_warning(spillover: pl.DataFrame) -> None:
    shifts = correlate_shifts(spillover, "rt", "surprisal", within=["text"])
    by_shift = dict(shifts.select("shift", "r").iter_rows())
    assert by_shift[0] > by_shift[1] > 0.2 > abs(by_shift[-1])
    assert shifts["n"].to_list() == [1980, 1990, 2000, 1990, 1980]
    assert check_alignment(shifts) is None


@pytest.mark.parametrize(
    ("shift", "said"), [(-1, "word 1 after"), (-2, "word 2 after"), (2, "word 2 before")]
)
def test_times_of_other_words_are_noticed(spillover: pl.DataFrame, shift: int, said: str) -> None:
    moved = spillover.with_columns(pl.col("rt").shift(shift).over("text"))
    complaint = check_alignment(correlate_shifts(moved, "rt", "surprisal", within=["text"]))
    assert complaint is not None
    assert said in complaint


def test_times_one_word_early_are_noticed_behind_a_peak_at_their_own_word(spillover: pl.DataFrame) -> None:
    # Natural Stories: the time of a word reflects the one before it most, and is listed one word early.
    before = pl.col("surprisal").shift(1, fill_value=0.0)
    slow = spillover.with_columns(rt=pl.col("rt") + 4 * before)
    early = slow.with_columns(pl.col("rt").shift(-1).over("text"))
    assert check_alignment(correlate_shifts(slow, "rt", "surprisal", within=["text"])) is None
    complaint = check_alignment(correlate_shifts(early, "rt", "surprisal", within=["text"]))
    assert complaint is not None
    assert "one word early" in complaint


def test_slopes_are_least_squares_and_their_errors_those_of_sentences() -> None:
    rng = np.random.default_rng(3)
    sentence = np.repeat(np.arange(150), 8)
    x = rng.normal(size=150)[sentence] + 0.1 * rng.normal(size=len(sentence))
    shared = rng.normal(size=150)[sentence]
    table = pl.DataFrame({"sentence": sentence, "x": x, "y": 2 * x + shared + 0.1 * rng.normal(size=len(x))})
    found = estimate_slopes(table, "y ~ x", ["x"], cluster="sentence", draws=1000).row(0, named=True)
    plain = fit_ols("y ~ x", table).fixed.filter(term="x").row(0, named=True)
    assert found["estimate"] == pytest.approx(plain["estimate"])
    # Words of a sentence share their error here, so that the usual standard error is far too small.
    assert found["se"] > 2 * plain["se"]
    assert found["low"] < 2 < found["high"]
    with pytest.raises(BadInput, match="two sentences"):
        estimate_slopes(table.head(8), "y ~ x", ["x"], cluster="sentence")
