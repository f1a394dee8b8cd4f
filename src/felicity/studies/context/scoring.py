"""One model over a planned study: scored suite by suite, judged, and kept in a folder of its own."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import REGIONS, SCORES, TOKENS
from felicity.design.contexts.in_context import list_texts
from felicity.design.plain import build_prompts
from felicity.measures.scoring import score_measures
from felicity.run.audit import audit_requests, refuse_overlong
from felicity.run.folder import RunFolder
from felicity.run.manifest import build_manifest, now, refuse_other_run
from felicity.run.model import Model
from felicity.run.pending import fix_pending, forget_pending
from felicity.run.precision import Noise
from felicity.run.rules import RULES, Case, refuse_impossible
from felicity.run.scoring import find_missing, read_mixed
from felicity.run.settling import settle_run
from felicity.studies.context.forecast import Forecast, forecast_time
from felicity.studies.context.judging import PERPLEXITY_FROM, build_case, collect_judgements, collect_regions
from felicity.studies.context.planning import Planned

# Told the suite, and how many texts are scored of how many.
SuiteProgress = Callable[[str, int, int], None]


def score_model(
    lm: Model,
    planned: Planned,
    folder: RunFolder,
    *,
    seed: int,
    options: dict[str, Any],
    progress: SuiteProgress | None = None,
    on_forecast: Callable[[Forecast], None] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Judgements with their factors, and region surprisals where the rule has them.

    What was scored before, here or in another run, is not scored again.

    Raises BadInput where a context does not fit into the model's window.
    """
    rule = RULES[planned.dataset.rule]
    refuse_impossible(planned.dataset.rule, lm.info, exact=lm.exact is lm)
    measures = planned.measures
    manifest = build_manifest(
        dataset=planned.dataset.name,
        items=planned.items,
        info=lm.info,
        spec=lm.spec,
        measures=list(measures),
        options=options,
    )
    folder.prepare()
    if folder.has_manifest():
        refuse_other_run(folder.read_manifest(), manifest, str(folder.path))
    texts = list_texts(planned.contexts)
    _check_window(lm, planned, texts, folder)
    folder.write_manifest(manifest)
    manifest["scored"] = _score_suites(lm, planned, texts, folder, progress, on_forecast)
    manifest["model"] |= lm.info.as_dict()
    case = build_case(planned, measures=measures, noise=Noise(rough=lm.info.noise))
    prompts = build_prompts(case.requests, texts)
    if lm.exact is not lm:
        settled, noise = settle_run(lm, folder, prompts, case, rule, seed=seed)
        manifest["precision"] = {"dtype": lm.info.dtype} | settled.as_dict()
        case = build_case(planned, measures=measures, noise=noise)
    forget_pending(folder)
    folder.write_parts("tokens", TOKENS, read_mixed(lm.store, prompts, lm.exact.store, case.noise.exact))
    judgements, regions = judge_model(planned, case, folder)
    folder.write("judgements", judgements)
    if regions is not None:
        folder.write("regions", regions)
    folder.write_manifest(manifest | {"finished": now()})
    return judgements, regions


def judge_model(planned: Planned, case: Case, folder: RunFolder) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """From stored tokens to judgements, without the model."""
    rule = RULES[planned.dataset.rule]
    read = partial(folder.read_parts, "tokens")
    folder.write_parts("scores", SCORES, _score(case, planned.dataset.rule, read()))
    scores = folder.read("scores")
    own = scores.filter(pl.col("measure").is_in(case.measures))
    verdicts = rule.judge(case, own, read)
    regions = verdicts.tables.get("regions")
    if regions is not None:
        regions = collect_regions(regions.select(list(REGIONS)), planned)
    return collect_judgements(verdicts.judgements, scores, planned, case), regions


def _score(case: Case, rule: str, parts: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The measures of the rule, and what perplexities are made of."""
    extra = (PERPLEXITY_FROM,) if rule == "contrast" and PERPLEXITY_FROM not in case.measures else ()
    for tokens in parts:
        yield from RULES[rule].score(case, iter([tokens]))
        if extra:
            yield score_measures(tokens, extra, noise=case.noise.of(tokens["request"])).scores


def _check_window(lm: Model, planned: Planned, texts: pl.DataFrame, folder: RunFolder) -> None:
    """Count what would bias the result, and stop where a context is too long for the model."""
    bare = planned.requests.filter(pl.col("context").is_null())
    longest = planned.requests.filter(pl.col("length") == pl.col("length").max().over("series"))
    shown = pl.concat([bare, longest.filter(pl.col("context").is_not_null())])
    encodings = lm.engine.encode(build_prompts(shown.select("request", "context", "text"), texts))
    folder.write("audit", audit_requests(bare.drop("n_tokens"), encodings))
    try:
        refuse_overlong(shown.drop("n_tokens"), encodings, model=lm.info.name, window=lm.info.window)
    except BadInput as error:
        raise BadInput(f"{str(error).rstrip('.')}; or ask for shorter contexts with --lengths.") from error
    if encodings["n_dropped"].sum():
        raise BadInput(
            f"'{lm.info.name}' reads at most {lm.info.window} tokens, and --overflow drop would shorten "
            "contexts that the study counts as longer; ask for shorter ones with --lengths."
        )


def _score_suites(
    lm: Model,
    planned: Planned,
    texts: pl.DataFrame,
    folder: RunFolder,
    progress: SuiteProgress | None,
    on_forecast: Callable[[Forecast], None] | None,
) -> dict[str, int]:
    waiting = _list_pending(lm, planned, texts, folder)
    total = sum(len(pending) for pending in waiting.values())
    done = scored = 0
    if on_forecast is not None and total:
        scored = _tell_forecast(lm, planned.requests, waiting, on_forecast)
    for suite, pending in waiting.items():

        def tell(now_done: int, _: int, *, before: int = done, suite: str = suite) -> None:
            if progress:
                progress(suite, before + now_done, total)

        scored += lm.score_all(pending, progress=tell)
        done += len(pending)
    return {"texts": len(planned.requests), "now": scored}


def _list_pending(
    lm: Model, planned: Planned, texts: pl.DataFrame, folder: RunFolder
) -> dict[str, pl.DataFrame]:
    """What is still to be scored, suite by suite."""
    suites = planned.items.select("item", "suite").unique("item", maintain_order=True)
    named = planned.requests.join(suites, on="item", maintain_order="left")
    waiting = {}
    for number, part in enumerate(named.partition_by("suite", maintain_order=True)):
        prompts = build_prompts(part.select("request", "context", "text"), texts)
        waiting[str(part["suite"][0])] = fix_pending(lm, folder, prompts, step=f"-{number}")
    return waiting


def _tell_forecast(
    lm: Model,
    requests: pl.DataFrame,
    waiting: dict[str, pl.DataFrame],
    on_forecast: Callable[[Forecast], None],
) -> int:
    """Score one item's texts, after a first text that takes the loading of the model upon itself."""
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
    """How long a study would take; one item's texts are scored to know it, and kept."""
    told: list[Forecast] = []
    with tempfile.TemporaryDirectory(prefix="felicity-") as place:
        waiting = _list_pending(lm, planned, list_texts(planned.contexts), RunFolder(Path(place)))
    _tell_forecast(lm, planned.requests, waiting, told.append)
    return told[0] if told else Forecast(requests=0, tokens=0, seconds=0.0)
