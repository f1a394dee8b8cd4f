"""A judging rule: tokens into scores, scores into judgements."""

from collections.abc import Callable, Iterable, Iterator

import polars as pl

from felicity.judge import judge_contrasts
from felicity.measures import score_measures
from felicity.run import JudgingInput, Rule, Verdicts


def score(case: JudgingInput, parts: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The least likely token of every sentence."""
    for tokens in parts:
        noise = case.noise.of(tokens["request"])
        yield score_measures(tokens, ("min_lp",), noise=noise).scores


def judge(case: JudgingInput, scores: pl.DataFrame, _: Callable[[], Iterable[pl.DataFrame]]) -> Verdicts:
    """The better condition passes where its least likely token is the likelier one."""
    return Verdicts(judgements=judge_contrasts(case.items, case.requests, scores, case.contrasts))


WEAKEST_TOKEN = Rule(
    meaning="the least likely token of one condition above that of others",
    score=score,
    judge=judge,
    measures=("min_lp",),
    fixed=True,
)
