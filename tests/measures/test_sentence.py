from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import NotPossible, UnknownName
from felicity.core.schemas import TOKENS
from felicity.measures.morcela import MorcelaWeights
from felicity.measures.sentence import MEASURES, Measure, ScoredTokens, Totals, score_measures


def build_totals(*lp: float) -> Totals:
    """One sentence of tokens with these log-probabilities, -3, -4 and -5 under the unigram model.

    Its words have log-priors of -9 together; it has 6 characters and 7 bytes.
    """
    tokens = ScoredTokens(
        np.array([0]), pl.Series(["A", "dog", "."]), np.array(lp), np.array([-3.0, -4.0, -5.0])
    )
    return Totals(
        np.array([sum(lp)]),
        np.array([-12.0]),
        np.array([3]),
        tokens,
        prior=np.array([-9.0]),
        characters=np.array([6]),
        size=np.array([7]),
        weights=MorcelaWeights(beta=0.5, gamma=3.0, n=100, r=0.7),
    )


# LP -1 - 2 - 3 = -6 nats over 3 tokens, -12 under the unigram model; worked by hand from Lau et al. (2020),
# Table 1: MeanLP -6/3, PenLP -6 / ((5+3)/6)^0.8, NormLP -(-6/-12), SLOR (-6 + 12)/3. SLLN-LP is -6 / 3^0.5,
# MORCELA (-6 - 0.5 * -12 + 3) / 3, word_pmi -6 + 9.
HAND = {
    "lp": -6.0,
    "mean_lp": -2.0,
    "pen_lp": -6 / (8 / 6) ** 0.8,
    "slln_lp": -6 / 3**0.5,
    "norm_lp": -0.5,
    "slor": 2.0,
    "char_lp": -1.0,
    "byte_lp": -6 / 7,
    "morcela": 1.0,
    "word_pmi": 3.0,
}


@pytest.mark.parametrize(("measure", "expected"), HAND.items())
def test_measures_give_the_hand_worked_values(measure: str, expected: float) -> None:
    assert MEASURES[measure](build_totals(-1.0, -2.0, -3.0))[0] == pytest.approx(expected)


def test_every_measure_has_a_hand_worked_value() -> None:
    assert set(MEASURES) == set(HAND)


@pytest.mark.parametrize("measure", list(MEASURES))
def test_every_measure_rises_with_model_probability(measure: str) -> None:
    worse, better = build_totals(-1.0, -2.0, -3.0), build_totals(-0.5, -1.0, -1.5)
    assert MEASURES[measure](better) > MEASURES[measure](worse)


def test_misspelt_measure_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'slor'"):
        MEASURES["sloor"]


def find_min(totals: Totals) -> np.ndarray:
    return totals.tokens.reduce(np.minimum, totals.tokens.lp)


def find_variance(totals: Totals) -> np.ndarray:
    deviation = totals.tokens.lp - totals.tokens.spread(totals.lp / totals.length)
    return totals.tokens.reduce(np.add, deviation**2) / totals.length


@pytest.fixture
def score_tokens(monkeypatch: pytest.MonkeyPatch) -> Callable[..., pl.DataFrame]:
    """Scores of a measure that reads the token list, on three sentences, one token of which has no score."""
    rows = {
        "request": ["a", "b", "c"],
        "tokens": [["The", "cat"], ["A", "dog", "."], ["Ha"]],
        "start": [[0, 4], [0, 2, 5], [0]],
        "end": [[3, 7], [1, 5, 6], [2]],
        "logprob": [[-1.0, -3.0], [None, -3.0, -1.5], [-2.0]],
    }

    def score(compute: Callable[[Totals], np.ndarray], *, noise: float = 0.0) -> pl.DataFrame:
        known = MEASURES._things | {"mine": Measure(compute, tokens=True)}
        monkeypatch.setattr(MEASURES, "_things", known)
        return score_measures(pl.DataFrame(rows, schema=TOKENS), ["mine"], noise=noise).scores

    return score


@pytest.mark.parametrize(
    ("measure", "expected"),
    # Variance: deviations of 1 from a mean of -2, of 0.75 from -2.25, of 0 from -2.
    [(find_min, [-3.0, -3.0, -2.0]), (find_variance, [1.0, 0.75**2, 0.0])],
)
def test_a_measure_may_read_the_scored_tokens(
    score_tokens: Callable[..., pl.DataFrame],
    measure: Callable[[Totals], np.ndarray],
    expected: list[float],
) -> None:
    assert score_tokens(measure)["value"].to_list() == pytest.approx(expected)


def test_the_error_of_a_token_measure_is_what_noise_on_any_one_token_does(
    score_tokens: Callable[..., pl.DataFrame],
) -> None:
    assert score_tokens(find_min, noise=0.1)["error"].to_list() == pytest.approx([0.1, 0.1, 0.1])
    # Variance of -1 and -3.1 is 1.05 squared, of -1.5 and -3.1 is 0.8 squared; of one token it stays 0.
    expected = [1.05**2 - 1, 0.8**2 - 0.75**2, 0.0]
    assert score_tokens(find_variance, noise=0.1)["error"].to_list() == pytest.approx(expected)


def test_a_measure_that_gives_one_number_per_token_is_refused(
    score_tokens: Callable[..., pl.DataFrame],
) -> None:
    with pytest.raises(NotPossible, match="'mine' gave an array of shape"):
        score_tokens(lambda totals: totals.tokens.lp)
