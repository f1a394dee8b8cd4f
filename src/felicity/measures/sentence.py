"""Sentence acceptability: token log-probabilities in, one number per sentence out.

Every measure reads three things: the log-probability of the sentence under the model and under a
unigram model, both in nats, and its length in tokens. Higher is always more acceptable.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from felicity.core.registry import Registry

PENALTY_OFFSET = 5
PENALTY_POWER = 0.8


class Totals(NamedTuple):
    """Per-sentence sums over the scored tokens, one array entry a sentence."""

    lp: np.ndarray
    unigram: np.ndarray
    length: np.ndarray


Measure = Callable[[Totals], np.ndarray]
MEASURES: Registry[Measure] = Registry("measure")

# Those that read `Totals.unigram` and so need a table of counts.
UNIGRAM_MEASURES = frozenset({"norm_lp", "slor"})


@MEASURES.add("lp")
def lp(totals: Totals) -> np.ndarray:
    """Log-probability of the sentence: the sum over its tokens, in nats."""
    return totals.lp


@MEASURES.add("mean_lp")
def mean_lp(totals: Totals) -> np.ndarray:
    """Log-probability per token (Lau et al. 2020): length taken out linearly."""
    return np.asarray(totals.lp / totals.length)


@MEASURES.add("pen_lp")
def pen_lp(totals: Totals) -> np.ndarray:
    """Length taken out less than linearly, as beam search does (Wu et al. 2016; Lau et al. 2020)."""
    penalty = (PENALTY_OFFSET + totals.length) / (PENALTY_OFFSET + 1)
    return np.asarray(totals.lp / penalty**PENALTY_POWER)


@MEASURES.add("norm_lp")
def norm_lp(totals: Totals) -> np.ndarray:
    """Log-probability over that of the unigram model, negated (Lau et al. 2020): frequency taken out."""
    return np.asarray(-totals.lp / totals.unigram)


@MEASURES.add("slor")
def slor(totals: Totals) -> np.ndarray:
    """Log-odds against the unigram model per token: length and word frequency both taken out."""
    return np.asarray((totals.lp - totals.unigram) / totals.length)
