"""The one door to regressions, tables from files, words, and the room's own shop window."""

from collections.abc import Callable

import polars as pl
import pytest

from felicity import stats
from felicity.core.errors import BadInput, UnknownName
from felicity.stats.fit import Regression, describe_fit, fit_model
from felicity.stats.mixed.fitted import FittedModel

Classic = Callable[[str], pl.DataFrame]


def test_formula_and_family_say_which_model(classic: Classic) -> None:
    sleep, cbpp = classic("sleepstudy"), classic("cbpp")
    assert isinstance(fit_model("Reaction ~ Days", sleep), Regression)
    mixed = fit_model("Reaction ~ Days + (1 | Subject)", sleep, reml=False)
    assert isinstance(mixed, FittedModel)
    assert mixed.method == "ML"
    counts = "cbind(incidence, size - incidence) ~ period + (1 | herd)"
    binomial = fit_model(counts, cbpp, family="binomial")
    assert isinstance(binomial, FittedModel)
    assert binomial.family == "binomial"


def test_the_level_moves_the_interval(classic: Classic) -> None:
    wide = fit_model("Reaction ~ Days + (1 | Subject)", classic("sleepstudy"), level=0.99).fixed
    narrow = fit_model("Reaction ~ Days + (1 | Subject)", classic("sleepstudy"), level=0.9).fixed
    assert (wide["low"] < narrow["low"]).all()
    with pytest.raises(BadInput, match="between 0 and 1"):
        fit_model("Reaction ~ Days", classic("sleepstudy"), level=95)
    with pytest.raises(UnknownName, match="no family 'poisson'"):
        fit_model("Reaction ~ Days", classic("sleepstudy"), family="poisson")  # type: ignore[arg-type]


def test_a_model_in_words_states_test_df_p_and_interval(classic: Classic) -> None:
    said = describe_fit(fit_model("Reaction ~ Days + (Days | Subject)", classic("sleepstudy")))
    assert "fitted by REML to 180 rows" in said
    assert "Days: b = 10.47, SE = 1.55, t(17) = 6.77, p < .001, 95% CI [7.21, 13.73]." in said
    assert "Nakagawa's marginal and conditional R2" in said
    said = describe_fit(fit_model("Yield ~ 1 + (1 | Batch)", classic("dyestuff2")))
    assert "singular" in said


def test_binomial_words_have_z_and_no_df(classic: Classic) -> None:
    model = fit_model(
        "cbind(incidence, size - incidence) ~ period + (1 | herd)", classic("cbpp"), family="binomial"
    )
    assert "period2: b = −0.99, SE = 0.31, z = −3.24, p = .001" in describe_fit(model)


def test_everything_in_the_window_is_there() -> None:
    shown = [name for name in dir(stats) if not name.startswith("_")]
    assert "fit_lmm" in shown
    for name in shown:
        assert getattr(stats, name) is not None
    with pytest.raises(AttributeError, match="fit_gam"):
        _ = stats.fit_gam
