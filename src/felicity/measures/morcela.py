"""MORCELA: how much length and frequency count, fitted to people's ratings (Tjuatja et al. 2024).

MORCELA = (LP - beta LPu + gamma) / n. Its weights are those of the linear regression

    rating = a LP/n + b LPu/n + c /n + d,    beta = -b / a,  gamma = c / a,

on rated sentences that are not the ones to be judged. SLOR is the case beta = 1, gamma = 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from felicity.core.errors import BadInput

LEAST_RATED = 20


@dataclass(frozen=True, kw_only=True)
class MorcelaWeights:
    """Fitted weights, the number of rated sentences, and the multiple correlation of the fit."""

    beta: float
    gamma: float
    n: int
    r: float

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"beta": self.beta, "gamma": self.gamma, "n": self.n, "r": self.r}


def fit_morcela(
    lp: np.ndarray, unigram: np.ndarray, length: np.ndarray, ratings: np.ndarray
) -> MorcelaWeights:
    """The weights under which MORCELA goes best with the ratings of these sentences.

    Raises BadInput for too few sentences, or if ratings do not rise with log-probability.
    """
    if len(ratings) < LEAST_RATED:
        raise BadInput(
            f"MORCELA is fitted to {len(ratings)} rated sentences; its weights need at least {LEAST_RATED}."
        )
    columns = [lp / length, unigram / length, 1 / length, np.ones(len(lp))]
    design = np.column_stack(columns)
    if np.linalg.matrix_rank(design) < len(columns):
        raise BadInput("MORCELA cannot be fitted: the rated sentences do not differ enough in length.")
    slope, of_unigram, of_length, _ = weights = np.linalg.lstsq(design, ratings, rcond=None)[0]
    if slope <= 0:
        raise BadInput(
            "MORCELA cannot be fitted: these ratings do not rise with the log-probability of a sentence."
        )
    r = float(np.corrcoef(design @ weights, ratings)[0, 1])
    return MorcelaWeights(beta=float(-of_unigram / slope), gamma=float(of_length / slope), n=len(lp), r=r)
