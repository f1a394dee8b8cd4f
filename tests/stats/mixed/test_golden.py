"""The golden models: lme4 and lmerTest's numbers on published and synthetic data.

"To k digits" is a relative difference below half a unit of the k-th digit. lme4's own optimizer stops
some 1e-6 (linear) to 2e-4 (binomial, with a convergence warning) short of the optimum; where that shows,
the criterion must be no worse than lme4's.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.linear import fit_lmm

Find = Callable[[str], Path]

pytestmark = pytest.mark.data


def golden(published: Find, name: str) -> dict[str, Any]:
    lines = published("lme4/golden.jsonl").read_text().splitlines()
    return next(entry for entry in map(json.loads, lines) if entry["name"] == name)


def check_linear(model: FittedModel, expected: dict[str, Any]) -> None:
    assert model.n == expected["n"]
    assert model.singular is expected["singular"]
    assert model.criterion == pytest.approx(expected["criterion"], abs=1e-3)
    assert model.fixed["term"].to_list() == [row["term"] for row in expected["fixed"]]
    for mine, theirs in zip(model.fixed.to_dicts(), expected["fixed"], strict=True):
        assert mine["estimate"] == pytest.approx(theirs["Estimate"], rel=5e-6)
        assert mine["se"] == pytest.approx(theirs["Std. Error"], rel=5e-5)
        assert mine["df"] == pytest.approx(theirs["df"], rel=5e-4)
        assert mine["p"] == pytest.approx(theirs["Pr(>|t|)"], rel=1e-3)
    for mine, theirs in zip(model.random.to_dicts(), expected["random"], strict=True):
        assert mine["group"] == theirs["group"]
        assert mine["sd"] ** 2 == pytest.approx(theirs["vcov"], rel=5e-4)


def test_huynh_study_1_from_the_raw_surprisals(published: Find) -> None:
    expected = golden(published, "huynh_study1")
    frame = pl.read_csv(published("huynh2022/experiment1_surprisals.csv.gz"))
    model = fit_lmm(expected["formula"], frame)
    check_linear(model, expected)
    # Protocol 5: Nakagawa's R2 of Huynh et al. (2022).
    assert model.r2_marginal == pytest.approx(0.14194, abs=5e-6)
    assert model.r2_conditional == pytest.approx(0.23006, abs=5e-6)


def test_huynh_study_2_on_the_model_frame(published: Find) -> None:
    expected = golden(published, "huynh_study2")
    frame = pl.read_csv(published("lme4/huynh_study2_model_frame.csv.gz"))
    model = fit_lmm(expected["formula"], frame)
    check_linear(model, expected)
    assert model.criterion <= expected["criterion"] + 1e-6


def test_huynh_study_2_from_the_raw_ratings(published: Find) -> None:
    # The frequency list lacks one rated verb, 'charmed'; the study's frame has a count of 311 for it.
    frequency = pl.read_csv(published("huynh2022/verb_bias_frequency.csv")).select("verb", "FREQcount")
    stimuli = pl.read_csv(published("huynh2022/experiment2_selection.csv")).select(
        "idx", "verb", "item", "bias"
    )
    ratings = pl.read_csv(published("huynh2022/ratings_long_anonymous.csv")).filter(pl.col("selected") == 1)
    frame = ratings.join(stimuli, on="idx").join(frequency, on="verb", how="left")
    frame = frame.with_columns(
        strength=pl.col("bias").abs(), lg=(pl.col("FREQcount").fill_null(311.0) + 1.0).log10()
    )
    formula = "rating ~ center(strength) * scale(lg) + (1 | idx) + (1 | participant) + (1 | item)"
    model = fit_lmm(formula, frame)
    rows = {row["term"]: row for row in model.fixed.to_dicts()}
    # Protocol 5.
    expected = {
        "center(strength)": (0.003303, 0.001362, 0.0155),
        "scale(lg)": (-0.12108, 0.03813, 0.00154),
        "center(strength):scale(lg)": (-0.006144, 0.001284, 2.0e-6),
    }
    for term, (estimate, se, p) in expected.items():
        assert rows[term]["estimate"] == pytest.approx(estimate, rel=2e-4)
        assert rows[term]["se"] == pytest.approx(se, rel=5e-4)
        assert rows[term]["p"] == pytest.approx(p, rel=1e-2)


def test_binomial_model_of_counts(published: Find) -> None:
    expected = golden(published, "sinha_like_glmm")
    frame = pl.read_csv(published("lme4/sinha_like_counts.csv.gz"))
    model = fit_glmm(expected["formula"], frame)
    assert model.n == expected["n"]
    assert not model.singular
    assert model.criterion == pytest.approx(expected["criterion"], abs=1e-3)
    assert model.criterion <= expected["criterion"]
    assert model.random["sd"][0] ** 2 == pytest.approx(expected["random"][0]["vcov"], rel=5e-4)
    for mine, theirs in zip(model.fixed.to_dicts(), expected["fixed"], strict=True):
        assert mine["term"] == theirs["term"]
        assert mine["se"] == pytest.approx(theirs["Std. Error"], rel=1e-4)
        # lme4 warns max|grad| = 0.005 here; a thousandth of a standard error is below its own error.
        assert mine["estimate"] == pytest.approx(theirs["Estimate"], abs=2e-3 * theirs["Std. Error"])
        assert mine["statistic"] == pytest.approx(theirs["z value"], abs=2e-3)


def test_binomial_estimates_to_six_digits_of_a_converged_optimizer(published: Find) -> None:
    # R: lme4's own deviance function, searched to its floor in units of the standard errors:
    #    fr <- glFormula(cbind(sum, size - sum) ~ ll * matched * acceptable + (1 | ph), d, binomial)
    #    f <- updateGlmerDevfun(do.call(mkGlmerDevfun, fr), fr$reTrms, nAGQ = 1L)
    #    m <- glmer(...); x <- c(getME(m, "theta"), fixef(m)); se <- c(.1, sqrt(diag(vcov(m))))
    #    optim(rep(0, 9), \(z) f(x + se * z), method = "BFGS", control = list(reltol = 1e-16))
    expected = [0.91077846, 0.0313377344, 0.103398862, 0.0941400628]
    expected += [0.01005178914, 0.0607039221, 0.0453200836, 0.0405886661]
    frame = pl.read_csv(published("lme4/sinha_like_counts.csv.gz"))
    model = fit_glmm("cbind(sum, size - sum) ~ ll * matched * acceptable + (1 | ph)", frame)
    assert model.fixed["estimate"].to_list() == pytest.approx(expected, rel=5e-6)


def test_squared_residuals_of_huynh_study_1_are_singular(published: Find) -> None:
    # Protocol 5: squared residuals ~ log frequency + (1 + log frequency | item), n 6328.
    surprisals = pl.read_csv(published("huynh2022/experiment1_surprisals.csv.gz"))
    first = fit_lmm("subject_preference ~ bias * subject_gender + (1 | item)", surprisals)
    frequency = pl.read_csv(published("huynh2022/verb_bias_frequency.csv")).select("verb", "Lg10WF")
    frame = surprisals.with_columns(pl.Series("squared", first.residuals**2)).join(frequency, on="verb")
    frame = frame.drop_nulls("Lg10WF")
    model = fit_lmm("squared ~ Lg10WF + (1 + Lg10WF | item)", frame)
    assert model.n == 6328
    assert model.singular
    assert "singular" in model.notes[0]
    row = model.fixed.row(1, named=True)
    assert row["estimate"] == pytest.approx(-0.04858, abs=5e-6)
    assert row["se"] == pytest.approx(0.01197, abs=5e-6)
