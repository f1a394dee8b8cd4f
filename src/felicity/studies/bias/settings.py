"""The settings of the study of token-length bias."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from felicity.core.settings import Data, option
from felicity.studies.data_settings import DataSettings
from felicity.studies.definition import StudyDefinition

if TYPE_CHECKING:
    from felicity.run import MeasureSettings

MEASURES = "Single measures"


@dataclass(frozen=True, kw_only=True)
class BiasSettings(DataSettings):
    """Split pairs by token length and show accuracy within each split.

    A is the acceptable sentence, U the unacceptable one (of crows_pairs: the more and the less stereotyping
    one); the splits are A=U, A>U and A<U under each model's own tokenizer. A measure that is not biased by
    length gives the same accuracy in all splits, and a slope of zero of accuracy over the difference in
    length (mixed logistic model over suites). A folder with only a tokenizer can be given as a model; it
    has splits but no accuracies. With --debias, another set with the same suites is scored as well and
    shown beside this one. After Ueda et al. (2024).

    \b
    Examples:
      felicity bias crows_pairs -m ./gpt2-tokenizer -m ./bert-tokenizer
      felicity bias blimp --sample 20 --measure lp --measure mean_lp --measure pen_lp
      felicity bias blimp --sample 20 --measure lp --measure word_pmi
      felicity bias my_pairs.csv -m smollm2 --json
      felicity bias twin.parquet --debias fair.parquet -m smollm2
    """

    measures: tuple[str, ...] = option(
        (),
        "A measure; repeatable.  [default: lp; with --debias lp, mean_lp and pen_lp]",
        flag="--measure",
    )
    unigram: Path | None = option(
        None, "token<TAB>count table for norm_lp and slor (.tsv or .tsv.gz).", panel=MEASURES
    )
    unseen: float = option(
        0.05, "Share of tokens that the unigram table may lack.", least=0, most=1, panel=MEASURES
    )
    prior_texts: Path | None = option(
        None,
        "Text file whose sentences are word_pmi's neutral contexts.  [default: built-in prose]",
        panel=MEASURES,
    )
    prior_contexts: int = option(128, "Number of neutral contexts of word_pmi.", least=2, panel=MEASURES)
    prior_power: float = option(
        2.0, "Power of word_pmi's mean over neutral contexts; 1 is the arithmetic one.", panel=MEASURES
    )
    prior_weight: float = option(
        1.0, "Weight of word_pmi's log-priors, above 0 and at most 1.", panel=MEASURES
    )
    slln_exponent: float = option(
        0.5, "Exponent of slln_lp, between 0 and 1.", least=0, most=1, panel=MEASURES
    )
    ratings: str | None = option(
        None,
        "Rated sentences, other than those of the study, that morcela is fitted to.",
        metavar="DATASET",
        panel=MEASURES,
    )
    score: bool = option(True, "Score with models that have weights; --no-score only splits.")
    debias: Data | None = option(
        None, "A debiased set with the same suites, to compare with this one.", metavar="DATASET"
    )

    @property
    def measuring(self) -> "MeasureSettings":
        """What the measures are computed with."""
        from felicity.run import MeasureSettings

        return MeasureSettings(
            prior_texts=self.prior_texts,
            prior_contexts=self.prior_contexts,
            prior_power=self.prior_power,
            prior_weight=self.prior_weight,
            slln_exponent=self.slln_exponent,
            ratings=self.ratings,
        )


STUDY = StudyDefinition(
    name="bias", title="Token-length bias", settings=BiasSettings, code="felicity.studies.bias"
)
