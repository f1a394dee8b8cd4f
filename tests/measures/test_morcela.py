"""MORCELA's weights: those that made the ratings, and what cannot be fitted."""

import numpy as np
import pytest

from felicity.core.errors import BadInput
from felicity.measures.morcela import fit_morcela


def draw(n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-probabilities, unigram log-probabilities and lengths of n sentences."""
    rng = np.random.default_rng(2)
    length = rng.integers(4, 20, size=n).astype(np.float64)
    return -4.0 * length + rng.normal(size=n), -8.0 * length + rng.normal(scale=4, size=n), length


def test_weights_that_made_the_ratings_are_found_again() -> None:
    lp, unigram, length = draw()
    ratings = 2.0 + 0.5 * (lp - 0.7 * unigram + 3.0) / length
    found = fit_morcela(lp, unigram, length, ratings)
    assert (found.beta, found.gamma, found.n) == (pytest.approx(0.7), pytest.approx(3.0), 40)
    assert found.r == pytest.approx(1.0)


def test_slor_is_the_case_of_whole_weights() -> None:
    lp, unigram, length = draw()
    found = fit_morcela(lp, unigram, length, (lp - unigram) / length)
    assert (found.beta, found.gamma) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-9))


def test_few_sentences_equal_lengths_and_falling_ratings_are_refused() -> None:
    lp, unigram, length = draw()
    with pytest.raises(BadInput, match="10 rated sentences"):
        fit_morcela(*(values[:10] for values in (lp, unigram, length)), np.ones(10))
    with pytest.raises(BadInput, match="do not differ enough in length"):
        fit_morcela(lp, unigram, np.full(40, 5.0), np.ones(40))
    with pytest.raises(BadInput, match="do not rise with the log-probability"):
        fit_morcela(lp, unigram, length, -lp / length)
