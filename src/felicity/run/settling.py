"""A run in half precision brought to the verdicts of float32."""

import polars as pl

from felicity.judge.pairs import judge_pairs
from felicity.measures.scoring import score_measures
from felicity.measures.unigram import Unigram
from felicity.run.folder import RunFolder
from felicity.run.model import Model
from felicity.run.pending import fix_pending
from felicity.run.precision import EXACT, Noise, Settled, settle
from felicity.run.scoring import read_mixed


def settle_run(
    lm: Model,
    folder: RunFolder,
    prompts: pl.DataFrame,
    measures: list[str],
    *,
    counts: Unigram | None,
    seed: int,
) -> tuple[Settled, Noise]:
    """Score again in float32 what half precision leaves open, round by round."""
    items, requests = folder.read("items"), folder.read("requests")
    fine = lm.exact.info.noise

    def requests_of(chosen: pl.Series) -> pl.DataFrame:
        return requests.filter(pl.col("item").is_in(chosen.implode()))

    def score_exactly(chosen: pl.Series, turn: int) -> None:
        part = prompts.join(requests_of(chosen), on="request", how="semi")
        lm.exact.score_all(fix_pending(lm.exact, folder, part, step=f"-{EXACT}-{turn}"))

    def judge(exact_items: pl.Series, *, noise: float) -> pl.DataFrame:
        each = Noise(rough=noise, fine=fine, exact=frozenset(requests_of(exact_items)["request"]))
        scores = pl.concat(
            score_measures(tokens, measures, noise=each.of(tokens["request"]), unigram=counts).scores
            for tokens in read_mixed(lm.store, prompts, lm.exact.store, each.exact)
        )
        error = (
            requests.select("request", "item")
            .join(scores, on="request")
            .group_by("item", "measure")
            .agg(pl.col("error").sum())
        )
        return judge_pairs(items, requests, scores).join(error, on=["item", "measure"])

    names = items["item"].unique(maintain_order=True)
    settled = settle(names, judge, score_exactly, least=fine, seed=seed)
    exact = frozenset(requests_of(settled.exact_items)["request"])
    return settled, Noise(rough=settled.noise, fine=fine, exact=exact)
