"""Scoring a planned study with one model: the plan for the pipeline, its tables, and a time forecast."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput
from felicity.core.progress import Progress
from felicity.core.schemas import REGIONS
from felicity.core.sweep import FACTORS, SWEEP_JUDGEMENTS
from felicity.design import build_prompts, list_texts
from felicity.run import RULES, Model, Plan, RunFolder, Verdicts, carry_out, find_missing, refuse_overlong
from felicity.studies.context.plan import Planned

# Characters per token in English, accurate enough for a forecast.
CHARACTERS_PER_TOKEN = 4
PERPLEXITY_FROM = "mean_lp"


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """requests: texts still to be scored. tokens: how many the model must process for them."""

    requests: int
    tokens: int
    seconds: float

    def __str__(self) -> str:
        work = f"{self.requests:,} texts to score, {self.tokens:,} tokens to process"
        return f"{work}: about {format_duration(self.seconds)}."


def weigh(requests: pl.DataFrame, *, shared: bool) -> float:
    """Tokens that a model processes for these requests; `shared`: each context counts once."""
    texts = float((requests["text"].str.len_chars() / CHARACTERS_PER_TOKEN).sum())
    if not shared:
        return texts + float(requests["n_tokens"].cast(pl.Float64).sum())
    longest = requests.filter(pl.col("series").is_not_null()).group_by("series").agg(pl.col("n_tokens").max())
    return texts + float(longest["n_tokens"].cast(pl.Float64).sum())


def forecast_time(
    pending: pl.DataFrame, pilot: pl.DataFrame, score: Callable[[], object], *, shared: bool
) -> Forecast:
    """Score the pilot, which is part of the work, and estimate from it how long the rest will take."""
    begin = time.monotonic()
    score()
    spent = time.monotonic() - begin
    whole, part = weigh(pending, shared=shared), weigh(pilot, shared=shared)
    return Forecast(
        requests=len(pending) - len(pilot),
        tokens=round(whole - part),
        seconds=spent / part * max(whole - part, 0.0) if part else 0.0,
    )


def format_duration(seconds: float) -> str:
    """Seconds in words.

    >>> format_duration(40), format_duration(300), format_duration(9000)
    ('40 seconds', '5 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


def build_plan(planned: Planned, *, seed: int, options: dict[str, Any]) -> Plan:
    """The study as a plan for the pipeline: an item in one context counts as a separate item."""
    cases = planned.requests.select("request", pl.col("case").alias("item"), "condition", "context", "text")
    about = planned.items.drop("text", "context_text", strict=False)
    items = (
        planned.requests.select("case", "item", "condition", "text")
        .join(about, on=["item", "condition"], maintain_order="left")
        .drop("item")
        .rename({"case": "item"})
    )
    suites = planned.items.select("item", pl.col("suite").alias("stage")).unique("item", maintain_order=True)
    stages = planned.requests.select("request", "item").join(suites, on="item", maintain_order="left")
    return Plan(
        dataset=planned.dataset.name,
        stimuli=planned.items,
        items=items,
        requests=cases,
        contexts=list_texts(planned.contexts),
        stages=stages.drop("item"),
        audited=planned.requests.filter(pl.col("context").is_null()).drop("n_tokens"),
        rule=planned.dataset.rule,
        measures=planned.measures,
        contrasts=planned.dataset.contrasts,
        score=planned.dataset.score,
        boundary=planned.dataset.boundary,
        also=(PERPLEXITY_FROM,) if planned.dataset.rule == "contrast" else (),
        collect=partial(collect_verdicts, planned),
        estimated=False,
        seed=seed,
        options=options,
    )


def collect_verdicts(planned: Planned, verdicts: Verdicts, scores: pl.DataFrame) -> Verdicts:
    """Judgements and regions with the factors of the context."""
    judgements = collect_judgements(verdicts.judgements, scores, planned)
    regions = verdicts.tables.get("regions")
    if regions is None:
        return Verdicts(judgements=judgements)
    return Verdicts(
        judgements=judgements, tables={"regions": collect_regions(regions.select(list(REGIONS)), planned)}
    )


def name_factors(judged: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Rows about cases as rows about items, with the factors of the context."""
    factors = requests.select("case", "item", "context", *FACTORS).unique("case", maintain_order=True)
    return judged.rename({"item": "case"}).join(factors, on="case", maintain_order="left").drop("case")


def collect_judgements(judged: pl.DataFrame, scores: pl.DataFrame, planned: Planned) -> pl.DataFrame:
    """Rows of SWEEP_JUDGEMENTS, with the margin of perplexities if sentences were compared."""
    cases = planned.requests.select("request", pl.col("case").alias("item"), "condition")
    margins = find_ppl_margins(scores, cases, planned.dataset.contrasts)
    whole = judged.join(margins, on=["item", "rule"], how="left", maintain_order="left")
    return name_factors(whole, planned.requests).select(list(SWEEP_JUDGEMENTS))


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


def collect_regions(regions: pl.DataFrame, planned: Planned) -> pl.DataFrame:
    """Rows of REGIONS with the factors of the context; `n_tokens` stays that of the region."""
    named = name_factors(regions, planned.requests)
    return named.select(*REGIONS, *(name for name in FACTORS if name not in REGIONS))


def score_model(
    lm: Model,
    planned: Planned,
    folder: RunFolder,
    *,
    seed: int,
    options: dict[str, Any],
    progress: Progress | None = None,
    on_forecast: Callable[[Forecast], None] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Judgements with their factors, and region surprisals if the rule has them.

    What was scored before, here or in another run, is not scored again.

    Raises BadInput if a context does not fit into the model's window.
    """

    def forecast(waiting: Mapping[str, pl.DataFrame]) -> int:
        return _tell_forecast(lm, planned.requests, waiting, on_forecast) if on_forecast else 0

    plan = build_plan(planned, seed=seed, options=options)
    lm = lm.choose_precision(exact=RULES[plan.rule].exact)
    _check_window(lm, planned, plan.contexts)
    carry_out(lm, plan, folder, progress=progress, on_pending=forecast)
    regions = folder.read_file(folder.file("regions")) if folder.file("regions").exists() else None
    return folder.read_file(folder.file("judgements")), regions


def _check_window(lm: Model, planned: Planned, texts: pl.DataFrame) -> None:
    """Refuse contexts that are too long for the model; checking the longest of each series is enough."""
    in_context = planned.requests.filter(pl.col("context").is_not_null())
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


def _tell_forecast(
    lm: Model,
    requests: pl.DataFrame,
    waiting: Mapping[str, pl.DataFrame],
    on_forecast: Callable[[Forecast], None],
) -> int:
    """Score one item's texts, after a first text that includes the time to load the model."""
    prompts = pl.concat([find_missing(lm.store, pending) for pending in waiting.values()])
    if prompts.is_empty():
        return 0
    left = prompts.select("request").join(requests, on="request", maintain_order="left")
    mine = left.filter(pl.col("item") == left["item"][0])
    pilot = prompts.join(mine, on="request", how="semi", maintain_order="left")
    scored = lm.score_all(pilot.head(1))
    shared = lm.info.notes.get("scheduler") == "trie"
    on_forecast(forecast_time(left, mine, lambda: lm.score_all(pilot), shared=shared))
    return scored + len(pilot) - 1


def forecast_model(lm: Model, planned: Planned) -> Forecast:
    """How long a study would take; one item's texts are scored for this, and saved."""
    told: list[Forecast] = []
    plan = build_plan(planned, seed=0, options={})
    _tell_forecast(lm, planned.requests, {"": build_prompts(plan.requests, plan.contexts)}, told.append)
    return told[0] if told else Forecast(requests=0, tokens=0, seconds=0.0)
