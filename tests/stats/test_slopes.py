"""Slopes of accuracy over a difference: lme4's, their comparison, and what has none."""

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from felicity.core.errors import NotPossible
from felicity.stats import compare_slopes, fit_slopes


def draw(suites: int = 8, items: int = 40) -> pl.DataFrame:
    """Answers of two measures to the same items: one depends on the difference, the other hardly."""
    rng = np.random.default_rng(7)
    rows = []
    for suite in range(suites):
        intercept, slope = rng.normal(0.8, 0.7), rng.normal(0, 0.3)
        for item in range(items):
            difference, chance = int(rng.integers(-3, 4)), rng.uniform()
            for measure, own in (("lp", -0.6), ("word_pmi", 0.05)):
                right = float(chance < expit(intercept + (slope + own) * difference))
                rows.append((f"{suite}/{item}", f"s{suite}", measure, right, difference))
    return pl.DataFrame(rows, schema=["item", "suite", "measure", "passed", "difference"], orient="row")


# R 4, lme4: glmer(passed ~ difference + (1 + difference | suite), d[d$measure == m, ], family = binomial,
# control = glmerControl(optimizer = "bobyqa")); the standard error of lme4 is that of its own Hessian.
def test_slopes_are_those_of_lme4() -> None:
    found = fit_slopes(draw())
    assert found["slope"].to_list() == pytest.approx([-0.83731393, -0.10480017], abs=2e-4)
    assert found["se"].to_list() == pytest.approx([0.10886403, 0.08971801], rel=0.01)
    assert found["p"].to_list() == pytest.approx([1.46e-14, 0.2428], rel=0.2)
    assert found["formula"].unique().to_list() == ["passed ~ difference + (1 + difference | suite)"]


# R: glm(passed ~ difference, binomial, d[d$measure == m & d$suite == "s1", ]).
def test_one_suite_has_a_plain_logistic_regression() -> None:
    found = fit_slopes(draw().filter(suite="s1"))
    assert found["slope"].to_list() == pytest.approx([-0.95077210, -0.04564352], abs=1e-6)
    assert found["se"].to_list() == pytest.approx([0.28509461, 0.15956736], abs=1e-6)


# R: the slopes of glmer without each suite in turn, jackknifed; 2 * pt(-abs(delta / se), 7).
def test_two_measures_are_compared_over_suites() -> None:
    row = compare_slopes(draw()).row(0, named=True)
    assert (row["first"], row["second"], row["df"], row["units"]) == ("lp", "word_pmi", 7, "suites")
    assert row["difference"] == pytest.approx(-0.73251376, abs=5e-4)
    assert row["se"] == pytest.approx(0.056413678, rel=0.02)
    assert row["p"] == pytest.approx(3.74e-6, rel=0.1)


def test_few_suites_are_compared_over_items() -> None:
    row = compare_slopes(draw(suites=2, items=200)).row(0, named=True)
    assert (row["units"], row["df"]) == ("items", 19)
    assert row["p"] < 1e-4


def test_the_same_answers_have_no_difference() -> None:
    answers = draw().filter(measure="lp")
    both = pl.concat([answers, answers.with_columns(measure=pl.lit("mean_lp"))])
    row = compare_slopes(both).row(0, named=True)
    assert (row["difference"], row["p"]) == (0.0, 1.0)


def test_equal_lengths_and_equal_answers_have_no_slope_and_say_so() -> None:
    flat = fit_slopes(draw().with_columns(difference=pl.lit(0)))
    assert flat["slope"].to_list() == [None, None]
    assert flat["note"][0].startswith("All pairs have the same difference")
    right = fit_slopes(draw().with_columns(passed=pl.lit(1.0)))
    assert right["note"][0].startswith("All answers are alike")
    assert compare_slopes(draw().with_columns(difference=pl.lit(0)))["p"].to_list() == [None]


def test_ties_are_left_out_and_counted() -> None:
    tied = draw().with_columns(passed=pl.when(pl.col("item") == "0/0").then(0.5).otherwise("passed"))
    assert fit_slopes(tied)["ties"].to_list() == [1, 1]


def test_a_model_without_standard_errors_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotPossible("The likelihood is flat.")

    monkeypatch.setattr("felicity.stats.slopes.fit_glmm", refuse)
    row = fit_slopes(draw().filter(measure="lp")).row(0, named=True)
    assert (row["slope"], row["note"]) == (None, "The likelihood is flat.")
    assert compare_slopes(draw())["p"].to_list() == [None]
