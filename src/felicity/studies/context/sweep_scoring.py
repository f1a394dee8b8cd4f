"""Scoring a sweep of contexts: the plan for the pipeline, what its verdicts become, and a time forecast."""

import time
from collections.abc import Iterator, Mapping
from functools import partial

import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput
from felicity.core.schemas import REGIONS
from felicity.core.sweep import FACTORS, SWEEP_JUDGEMENTS
from felicity.design import build_prompts, list_texts
from felicity.run import RULES, Model, Plan, Verdicts, find_missing, refuse_overlong
from felicity.studies.context.sweep_design import Sweep
from felicity.studies.definition import Forecast, Job, Models

# Characters per token in English, accurate enough for a forecast.
CHARACTERS_PER_TOKEN = 4
PERPLEXITY_FROM = "mean_lp"


def weigh(requests: pl.DataFrame, *, shared: bool) -> float:
    """Tokens that a model processes for these requests; `shared`: each context counts once."""
    texts = float((requests["text"].str.len_chars() / CHARACTERS_PER_TOKEN).sum())
    if not shared:
        return texts + float(requests["n_tokens"].cast(pl.Float64).sum())
    longest = requests.filter(pl.col("series").is_not_null()).group_by("series").agg(pl.col("n_tokens").max())
    return texts + float(longest["n_tokens"].cast(pl.Float64).sum())


def forecast_job(lm: Model, requests: pl.DataFrame, waiting: Mapping[str, pl.DataFrame]) -> Forecast:
    """How long the rest takes, from the texts of one item, which are scored and saved for this.

    A first text is scored before, since it includes the time to load the model.
    """
    prompts = pl.concat([find_missing(lm.store, pending) for pending in waiting.values()])
    if prompts.is_empty():
        return Forecast()
    left = prompts.select("request").join(requests, on="request", maintain_order="left")
    mine = left.filter(pl.col("item") == left["item"][0])
    pilot = prompts.join(mine, on="request", how="semi", maintain_order="left")
    scored = lm.score_all(pilot.head(1))
    shared = lm.info.notes.get("scheduler") == "trie"
    begin = time.monotonic()
    lm.score_all(pilot)
    spent = time.monotonic() - begin
    whole, part = weigh(left, shared=shared), weigh(mine, shared=shared)
    return Forecast(
        texts=len(left) - len(mine),
        tokens=round(whole - part),
        seconds=spent / part * max(whole - part, 0.0) if part else 0.0,
        scored=scored + len(pilot) - 1,
    )


def make_jobs(sweep: Sweep, models: Models) -> Iterator[Job]:
    """One run per model.

    Raises BadInput if a context does not fit into a model's window.
    """
    plan = build_plan(sweep)
    for model in models:
        # The forecast scores as the run will.
        lm = model.open().choose_precision(exact=RULES[plan.rule].exact)
        _check_window(lm, sweep, plan.contexts)
        yield Job(model=model.name, lm=lm, plan=plan, forecast=partial(forecast_job, lm, sweep.requests))


def _check_window(lm: Model, sweep: Sweep, texts: pl.DataFrame) -> None:
    """Refuse contexts that are too long for the model; checking the longest of each series is enough."""
    in_context = sweep.requests.filter(pl.col("context").is_not_null())
    longest = in_context.filter(pl.col("length") == pl.col("length").max().over("series")).drop("n_tokens")
    encodings = lm.engine.encode(build_prompts(longest.select("request", "context", "text"), texts))
    try:
        refuse_overlong(longest, encodings, model=lm.info.name, window=lm.info.window)
    except BadInput as error:
        raise BadInput(f"{str(error).rstrip('.')}; or request shorter contexts with --lengths.") from error
    if encodings["n_dropped"].sum():
        raise BadInput(
            f"'{lm.info.name}' reads at most {lm.info.window} tokens, and --overflow drop would shorten "
            "contexts that the study counts as longer; request shorter ones with --lengths."
        )


def build_plan(sweep: Sweep) -> Plan:
    """The study as a plan for the pipeline: an item in one context counts as a separate item."""
    cases = sweep.requests.select("request", pl.col("case").alias("item"), "condition", "context", "text")
    about = sweep.items.drop("text", "context_text", strict=False)
    items = (
        sweep.requests.select("case", "item", "condition", "text")
        .join(about, on=["item", "condition"], maintain_order="left")
        .drop("item")
        .rename({"case": "item"})
    )
    suites = sweep.items.select("item", pl.col("suite").alias("stage")).unique("item", maintain_order=True)
    stages = sweep.requests.select("request", "item").join(suites, on="item", maintain_order="left")
    return Plan(
        dataset=sweep.dataset.name,
        stimuli=sweep.items,
        items=items,
        requests=cases,
        contexts=list_texts(sweep.contexts),
        stages=stages.drop("item"),
        audited=sweep.requests.filter(pl.col("context").is_null()).drop("n_tokens"),
        rule=sweep.dataset.rule,
        measures=sweep.measures,
        contrasts=sweep.dataset.contrasts,
        score=sweep.dataset.score,
        boundary=sweep.dataset.boundary,
        also=(PERPLEXITY_FROM,) if sweep.dataset.rule == "contrast" else (),
        collect=partial(collect_verdicts, sweep),
        estimated=False,
        seed=sweep.design.seed,
        options={"rule": sweep.dataset.method, "measure": sweep.measures[0]} | sweep.design.as_dict(),
    )


def collect_verdicts(sweep: Sweep, verdicts: Verdicts, scores: pl.DataFrame) -> Verdicts:
    """Judgements and regions with the factors of the context."""
    judgements = collect_judgements(verdicts.judgements, scores, sweep)
    regions = verdicts.tables.get("regions")
    if regions is None:
        return Verdicts(judgements=judgements)
    return Verdicts(
        judgements=judgements, tables={"regions": collect_regions(regions.select(list(REGIONS)), sweep)}
    )


def name_factors(judged: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Rows about cases as rows about items, with the factors of the context."""
    factors = requests.select("case", "item", "context", *FACTORS).unique("case", maintain_order=True)
    return judged.rename({"item": "case"}).join(factors, on="case", maintain_order="left").drop("case")


def collect_judgements(judged: pl.DataFrame, scores: pl.DataFrame, sweep: Sweep) -> pl.DataFrame:
    """Rows of SWEEP_JUDGEMENTS, with the margin of perplexities if sentences were compared."""
    cases = sweep.requests.select("request", pl.col("case").alias("item"), "condition")
    margins = find_ppl_margins(scores, cases, sweep.dataset.contrasts)
    whole = judged.join(margins, on=["item", "rule"], how="left", maintain_order="left")
    return name_factors(whole, sweep.requests).select(list(SWEEP_JUDGEMENTS))


def find_ppl_margins(
    scores: pl.DataFrame, requests: pl.DataFrame, contrasts: tuple[Contrast, ...]
) -> pl.DataFrame:
    """item, rule, ppl_margin: perplexity of the better sentence minus the lowest of the worse ones."""
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
                # Two infinite perplexities are level; their difference would not be a number.
                pl.when(pl.col("ppl") == pl.col("other"))
                .then(0.0)
                .otherwise(pl.col("ppl") - pl.col("other"))
                .alias("ppl_margin"),
            )
        )
    return pl.concat([empty, *rows])


def collect_regions(regions: pl.DataFrame, sweep: Sweep) -> pl.DataFrame:
    """Rows of REGIONS with the factors of the context; `n_tokens` stays that of the region."""
    named = name_factors(regions, sweep.requests)
    return named.select(*REGIONS, *(name for name in FACTORS if name not in REGIONS))
