import numpy as np
import pytest

from felicity.core.errors import UnknownName
from felicity.measures.sentence import MEASURES, Totals

# LP -6 nats over 3 tokens, -12 under the unigram model; worked by hand from Lau et al. (2020), Table 1:
# MeanLP -6/3, PenLP -6 / ((5+3)/6)^0.8, NormLP -(-6/-12), SLOR (-6 + 12)/3.
HAND = {"lp": -6.0, "mean_lp": -2.0, "pen_lp": -6 / (8 / 6) ** 0.8, "norm_lp": -0.5, "slor": 2.0}


@pytest.mark.parametrize(("measure", "expected"), HAND.items())
def test_measures_give_the_hand_worked_values(measure: str, expected: float) -> None:
    totals = Totals(np.array([-6.0]), np.array([-12.0]), np.array([3]))
    assert MEASURES[measure](totals)[0] == pytest.approx(expected)


def test_every_measure_has_a_hand_worked_value() -> None:
    assert set(MEASURES) == set(HAND)


@pytest.mark.parametrize("measure", list(MEASURES))
def test_every_measure_rises_with_model_probability(measure: str) -> None:
    worse = Totals(np.array([-6.0]), np.array([-12.0]), np.array([3]))
    better = worse._replace(lp=np.array([-3.0]))
    assert MEASURES[measure](better) > MEASURES[measure](worse)


def test_misspelt_measure_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'slor'"):
        MEASURES["sloor"]
