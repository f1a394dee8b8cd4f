"""Scores of items in contexts into judgements: the dataset's own rule, with the context as it was."""

import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.schemas import REGIONS
from felicity.core.sweep import FACTORS, SWEEP_JUDGEMENTS
from felicity.run.precision import Noise
from felicity.run.rules import Case
from felicity.studies.context.planning import Planned

PERPLEXITY_FROM = "mean_lp"


def build_case(planned: Planned, *, measures: tuple[str, ...], noise: Noise) -> Case:
    """What a rule is handed: an item in one context counts as an item of its own."""
    cases = planned.requests.select("request", pl.col("case").alias("item"), "condition", "context", "text")
    about = planned.items.drop("text", "context_text", strict=False)
    items = (
        planned.requests.select("case", "item", "condition", "text")
        .join(about, on=["item", "condition"], maintain_order="left")
        .drop("item")
        .rename({"case": "item"})
    )
    return Case(
        items=items, requests=cases, measures=measures, noise=noise, contrasts=planned.dataset.contrasts
    )


def name_factors(judged: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Rows about cases as rows about items, with the factors of the context."""
    factors = requests.select("case", "item", "context", *FACTORS).unique("case", maintain_order=True)
    return judged.rename({"item": "case"}).join(factors, on="case", maintain_order="left").drop("case")


def collect_judgements(
    judged: pl.DataFrame, scores: pl.DataFrame, planned: Planned, case: Case
) -> pl.DataFrame:
    """Rows of SWEEP_JUDGEMENTS; where sentences were compared, with the margin of their perplexities."""
    margins = find_ppl_margins(scores, case.requests, case.contrasts)
    whole = judged.join(margins, on=["item", "rule"], how="left", maintain_order="left")
    return name_factors(whole, planned.requests).select(list(SWEEP_JUDGEMENTS))


def find_ppl_margins(
    scores: pl.DataFrame, requests: pl.DataFrame, contrasts: tuple[Contrast, ...]
) -> pl.DataFrame:
    """item, rule, ppl_margin: perplexity of the better sentence less the lowest of the worse ones."""
    ppl = (
        scores.filter(pl.col("measure") == PERPLEXITY_FROM)
        .join(requests.select("request", "item", "condition"), on="request")
        .select("item", "condition", (-pl.col("value")).exp().alias("ppl"))
    )
    empty = pl.DataFrame(schema={"item": pl.String, "rule": pl.String, "ppl_margin": pl.Float64})
    if ppl.is_empty():
        return empty
    rows = []
    for contrast in contrasts:
        better = ppl.filter(pl.col("condition") == contrast.better)
        worse = (
            ppl.filter(pl.col("condition").is_in(contrast.worse))
            .group_by("item")
            .agg(pl.col("ppl").min().alias("other"))
        )
        rows.append(
            better.join(worse, on="item").select(
                "item",
                pl.lit(contrast.name).alias("rule"),
                (pl.col("ppl") - pl.col("other")).alias("ppl_margin"),
            )
        )
    return pl.concat([empty, *rows])


def collect_regions(regions: pl.DataFrame, planned: Planned) -> pl.DataFrame:
    """Rows of REGIONS with the factors of the context; `n_tokens` stays that of the region."""
    named = name_factors(regions, planned.requests)
    return named.select(*REGIONS, *(name for name in FACTORS if name not in REGIONS))
