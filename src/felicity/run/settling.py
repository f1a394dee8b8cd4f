"""A run in half precision brought to the verdicts of float32."""

from dataclasses import replace
from functools import partial

import polars as pl

from felicity.run.folder import RunFolder
from felicity.run.model import Model
from felicity.run.pending import fix_pending
from felicity.run.precision import EXACT, Noise, Settled, settle
from felicity.run.rules import Case, Rule
from felicity.run.scoring import read_mixed


def settle_run(
    lm: Model,
    folder: RunFolder,
    prompts: pl.DataFrame,
    case: Case,
    rule: Rule,
    *,
    seed: int,
) -> tuple[Settled, Noise]:
    """Score again in float32 what half precision leaves open, round by round."""
    items, requests = case.items, case.requests
    fine = lm.exact.info.noise

    def requests_of(chosen: pl.Series) -> pl.DataFrame:
        return requests.filter(pl.col("item").is_in(chosen.implode()))

    def score_exactly(chosen: pl.Series, turn: int) -> None:
        part = prompts.join(requests_of(chosen), on="request", how="semi")
        lm.exact.score_all(fix_pending(lm.exact, folder, part, step=f"-{EXACT}-{turn}"))

    def judge(exact_items: pl.Series, *, noise: float) -> pl.DataFrame:
        each = Noise(rough=noise, fine=fine, exact=frozenset(requests_of(exact_items)["request"]))
        read = partial(read_mixed, lm.store, prompts, lm.exact.store, each.exact)
        here = replace(case, noise=each)
        scores = pl.concat(list(rule.score(here, read())))
        return rule.judge(here, scores, read).judgements

    names = items["item"].unique(maintain_order=True)
    settled = settle(names, judge, score_exactly, least=fine, seed=seed)
    exact = frozenset(requests_of(settled.exact_items)["request"])
    return settled, Noise(rough=settled.noise, fine=fine, exact=exact)
