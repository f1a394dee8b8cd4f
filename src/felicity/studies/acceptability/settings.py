"""The settings of the study of acceptability in context."""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.settings import Data, argument, option
from felicity.studies.definition import StudyDefinition


@dataclass(frozen=True, kw_only=True)
class AcceptabilitySettings:
    """Correlate models' scores with people's ratings, with and without context (Lau et al. 2020).

    Every model scores every sentence without a context and in every context that people saw; every measure is
    correlated with the ratings of every setting, beside the upper bounds given by the agreement among people
    (UB1, UB2). Masked models are scored in both ways of masking, XLNet in both orders, unless --policy says
    which.

    \b
    A table has the columns text and rating, and as needed:
      item, condition   the sentence, and the setting: none, real, random, or another name; or
                        an item and which of its sentences this is (an item x condition design)
      context           the text before the sentence, in every setting except none
      rater             one row per answer; such ratings can be cleaned (--clean lau2020)
      ratings           without raters: the single ratings behind a mean, such as 4,3,3

    \b
    Examples:
      felicity acceptability lau2020
      felicity acceptability lau2020 -m smollm2 -m ./my-lstm -m ./my-tdlm --corpus corpus.txt -o runs/lau
      felicity acceptability lau2020 -m gpt2 --compat lau2020 --unigram counts.tsv
      felicity acceptability my_ratings/ -m gpt2 -m bert-base-cased
    """

    ratings: Data = argument(
        "lau2020, a folder of `felicity rate export`, or a table of ratings.", metavar="RATINGS"
    )
    measures: tuple[str, ...] = option(
        (), "A measure; repeatable.  [default: lp, mean_lp, pen_lp, norm_lp, slor]", flag="--measure"
    )
    unigram: tuple[str, ...] = option(
        (),
        "token<TAB>count table for norm_lp and slor, for one model or for all that it fits; repeatable.",
        metavar="[MODEL=]FILE",
    )
    corpus: Path | None = option(None, "Text to count tokens in, once per tokenizer, for norm_lp and slor.")
    unseen: float = option(0.05, "Share of tokens that a unigram table may lack.", least=0, most=1)
    sample: int | None = option(None, "Use only this many sentences per suite.", least=1)
    clean: str | None = option(
        None,
        "Clean ratings that have rater ids by the rules of a paper: lau2020. They were made for a scale of 1 "
        "to 4; for another one their bounds are the same shares of the range.  [default: not cleaned]",
        metavar="RULES",
        choices=("lau2020",),
    )
    scale: str | tuple[float, float] | None = option(
        None,
        "The lowest and highest rating possible.  [default: the lowest and highest given]",
        metavar="LOW:HIGH",
    )
    seed: int = option(0, "Seed of the sample, the bootstrap and the bounds.", least=0)
    source: Path | None = option(
        None, "A folder with your own copy of the dataset.", flag="--from", metavar="DIR"
    )


STUDY = StudyDefinition(
    name="acceptability",
    title="Acceptability in context",
    settings=AcceptabilitySettings,
    code="felicity.studies.acceptability",
)
