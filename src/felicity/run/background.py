"""What measures need besides a run's own sentences: priors of words, weights fitted to ratings.

Both are prompts like any other. The pipeline scores them after the sentences, batch by batch into the score
cache, so that a stopped run resumes and another run with the same words scores nothing twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.progress import Progress, share_progress
from felicity.core.schemas import PROMPTS
from felicity.data import read_dataset
from felicity.measures import (
    NO_RATINGS,
    SLLN_EXPONENT,
    MorcelaWeights,
    Unigram,
    WordPriors,
    fit_morcela,
    needs_priors,
    needs_ratings,
    sum_tokens,
)
from felicity.run.folder import RunFolder
from felicity.run.model import Model
from felicity.run.priors import PRIOR_CONTEXTS, PRIOR_POWER, PRIOR_WEIGHT, PriorPlan, plan_priors
from felicity.run.steps import fix_pending

BUILT_IN_LANGUAGE = "en"
SCORING_PRIORS, SCORING_RATED = "Scoring priors of words", "Scoring rated sentences"


@dataclass(frozen=True, kw_only=True)
class MeasureSettings:
    """What measures are computed with; recorded in the manifest.

    prior_contexts, prior_seed: of word_pmi: how many neutral contexts, and the seed of their choice.
    prior_power: of word_pmi: of the mean over contexts; 1 is the arithmetic mean.
    prior_weight: of word_pmi: of the log-priors; 0 would be LP.
    prior_texts: a text file with sentences to take contexts from, by default felicity's own prose.
    slln_exponent: of slln_lp. ratings: a dataset or file of rated sentences that morcela is fitted to.
    """

    prior_contexts: int = PRIOR_CONTEXTS
    prior_seed: int = 0
    prior_power: float = PRIOR_POWER
    prior_weight: float = PRIOR_WEIGHT
    prior_texts: Path | None = None
    slln_exponent: float = SLLN_EXPONENT
    ratings: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.prior_power <= 100:
            raise BadInput(
                f"The power of the priors' mean is {self.prior_power}; it must be above 0, at most 100."
            )
        if not 0 < self.prior_weight <= 1:
            raise BadInput(f"The weight of the priors is {self.prior_weight}; it must be above 0, at most 1.")
        if not 0 < self.slln_exponent < 1:
            raise BadInput(f"The exponent of slln_lp is {self.slln_exponent}; it must be between 0 and 1.")


@dataclass(frozen=True)
class Rated:
    """Rated sentences as prompts, and their ratings in the same order."""

    name: str
    prompts: pl.DataFrame
    ratings: np.ndarray


@dataclass(frozen=True)
class Background:
    """What is to be scored besides the sentences of a run, if anything."""

    settings: MeasureSettings
    priors: PriorPlan | None = None
    rated: Rated | None = None

    def __len__(self) -> int:
        priors, rated = self.priors, self.rated
        return (len(priors.prompts) if priors else 0) + (len(rated.prompts) if rated else 0)

    def score_priors(
        self, lm: Model, folder: RunFolder, manifest: dict[str, Any], *, progress: Progress | None
    ) -> WordPriors | None:
        """The priors, in float32; words whose scores are in the cache are not scored again."""
        if self.priors is None:
            return None
        scorer = lm.in_float32.bounded if self.priors.corrected else lm.in_float32
        prompts = self.priors.prompts
        now = _score(
            scorer, folder, prompts, "-priors", SCORING_PRIORS, progress, after=len(self) - len(prompts)
        )
        manifest["priors"] = self.priors.describe() | {"now": now}
        return self.priors.read(scorer)

    def fit_weights(
        self,
        lm: Model,
        folder: RunFolder,
        manifest: dict[str, Any],
        *,
        unigram: Unigram | None,
        progress: Progress | None,
    ) -> MorcelaWeights | None:
        """The weights of morcela, fitted to the rated sentences."""
        if self.rated is None:
            return None
        before = share_progress(progress, before=len(self) - len(self.rated.prompts))
        now = _score(lm.in_float32, folder, self.rated.prompts, "-rated", SCORING_RATED, before)
        totals = sum_tokens(pl.concat(list(lm.in_float32.read(self.rated.prompts))), unigram)
        weights = fit_morcela(totals.lp, totals.unigram, totals.length, self.rated.ratings)
        manifest["morcela"] = {"ratings": self.rated.name} | weights.as_dict() | {"now": now}
        return weights


def plan_background(
    lm: Model,
    requests: pl.DataFrame,
    contexts: pl.DataFrame,
    *,
    measures: Sequence[str],
    settings: MeasureSettings,
    cancel: bool,
    languages: Sequence[str] = (),
) -> Background:
    """What these measures need besides the requests.

    cancel: whether words that items share are left out. languages: of the requests, if stated.

    Raises BadInput or NotPossible, before anything is scored.
    """
    priors = rated = None
    if needs_priors(measures):
        _refuse_other_language(settings, languages)
        priors = plan_priors(
            lm.in_float32,
            requests,
            contexts,
            path=settings.prior_texts,
            size=settings.prior_contexts,
            seed=settings.prior_seed,
            power=settings.prior_power,
            weight=settings.prior_weight,
            cancel=cancel,
        )
    if needs_ratings(measures):
        rated = read_rated(settings.ratings, requests["text"].to_list())
    return Background(settings, priors, rated)


def _refuse_other_language(settings: MeasureSettings, languages: Sequence[str]) -> None:
    """Refuse English contexts for words of another language.

    Raises NotPossible.
    """
    others = [tag for tag in languages if tag.partition("-")[0] != BUILT_IN_LANGUAGE]
    if others and settings.prior_texts is None:
        raise NotPossible(
            f"The built-in neutral contexts of word_pmi are English, but these sentences are in "
            f"'{others[0]}'; give a text in that language with --prior-texts."
        )


def read_rated(name: str | None, judged: Sequence[str]) -> Rated:
    """The rated sentences of a dataset or file, each once, with its mean rating.

    Raises NotPossible without a name, BadInput for sentences without ratings or that are judged themselves.
    """
    if name is None:
        raise NotPossible(NO_RATINGS)
    data = read_dataset(name)
    if "rating" not in data.items.columns:
        raise BadInput(f"'{name}' has no ratings, so no weights can be fitted to it; give rated sentences.")
    bare = data.items
    if "context_text" in bare.columns:
        bare = bare.filter(pl.col("context_text").is_null())
    rows = bare.group_by("text", maintain_order=True).agg(pl.col("rating").mean())
    both = set(map(_normalize, rows["text"])) & set(map(_normalize, judged))
    if both:
        raise BadInput(
            f"{len(both):,} of the rated sentences of '{name}' are judged in this run, such as "
            f"'{next(iter(sorted(both)))}'; morcela is fitted to other sentences than those it judges."
        )
    prompts = rows.select(
        pl.format("rated {}", "text").alias("request"),
        pl.lit(None, dtype=pl.String).alias("context_text"),
        "text",
    )
    return Rated(name, prompts.cast(PROMPTS), rows["rating"].cast(pl.Float64).to_numpy())  # type: ignore[arg-type]


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())


def _score(
    scorer: Model,
    folder: RunFolder,
    prompts: pl.DataFrame,
    step: str,
    name: str,
    progress: Progress | None,
    *,
    after: int = 0,
) -> int:
    pending = fix_pending(scorer, folder, prompts, step=step)
    known = len(prompts) - len(pending)
    return scorer.score_all(pending, step=name, progress=share_progress(progress, before=known, after=after))
