"""Measures: a function of the sums, or of the token list, that gives one number per sentence."""

import numpy as np

from felicity.measures import Measure, Totals


def find_min_lp(totals: Totals) -> np.ndarray:
    """Log-probability of the least likely token."""
    tokens = totals.tokens
    return tokens.reduce(np.minimum, tokens.lp)


def find_variance(totals: Totals) -> np.ndarray:
    """Variance of surprisal over the tokens, negated, so that even sentences rank higher."""
    tokens = totals.tokens
    deviation = tokens.lp - tokens.spread(totals.lp / totals.length)
    return -tokens.reduce(np.add, deviation**2) / totals.length


def find_mean_pmi(totals: Totals) -> np.ndarray:
    """Pointwise mutual information of token and preceding text, averaged over the tokens."""
    tokens = totals.tokens
    return tokens.reduce(np.add, tokens.lp - tokens.unigram) / totals.length


min_lp = Measure(find_min_lp, tokens=True)
surprisal_variance = Measure(find_variance, tokens=True)
mean_pmi = Measure(find_mean_pmi, tokens=True, unigram=True)
