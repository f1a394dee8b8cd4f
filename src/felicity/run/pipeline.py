"""The pipeline of every study: requests, audit, scores, precision, measures, judgements, estimates.

A study says what is scored and how it is judged (`Plan`); `carry_out` does it in a run folder, resuming if
necessary. `judge_tokens` is the second half, from stored tokens on, and needs no model; `write_verdicts`
is the last step, where replayed numbers enter.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import polars as pl

from felicity.core.contrasts import PAIR, Contrast, Headline
from felicity.core.errors import NotPossible
from felicity.core.progress import Progress, share_progress
from felicity.core.schemas import BOUNDED_TOKENS, SCORES, TOKENS
from felicity.design import build_prompts
from felicity.measures import (
    CORRECTED,
    MEASURES,
    PLAIN,
    Unigram,
    choose_boundary,
    needs_unigram,
    score_measures,
)
from felicity.run.audit import audit_requests, refuse_overlong
from felicity.run.background import Background, MeasureSettings, plan_background
from felicity.run.folder import EXTRAS, RunFolder, write_table
from felicity.run.manifest import build_manifest, describe_change, differs, refuse_other_run
from felicity.run.model import Model
from felicity.run.precision import Noise
from felicity.run.rules import RULES, JudgingInput, Verdicts, refuse_impossible
from felicity.run.scoring import SCORING, read_mixed
from felicity.run.steps import (
    K,
    find_frames,
    fix_pending,
    forget_pending,
    measure_close_calls,
    read_cloze,
    rescore_close_calls,
)
from felicity.stats import Units, add_people, estimate_accuracy

# A table of unigram counts that lacks more of a run's tokens than this was counted with another tokenizer.
UNSEEN_LIMIT = 0.05


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run scores and how it judges.

    dataset: its name. stimuli: the dataset's stimuli, which the manifest describes. items: the stimuli
        as they are judged; a study may count an item in each of its contexts as an item of its own.
    requests, contexts: what is scored, and the texts of the contexts.
    stages: columns `request` and `stage`, if the work is divided into stages, in the order of the table.
    audited: the requests that the audit covers, if not all; findings: rows of AUDIT known
        in advance.
    rule, measures, contrasts, unigram, targets, change: how it is judged. unseen_limit: the share of
        tokens that the unigram table may lack. also: measures that are scored
        but not judged. boundary: how the tokens of regions are summed, for rules that have regions.
    collect: converts verdicts and scores to the tables that are written.
    tables: further tables for the folder. ask: tables that need the opened model besides its scores, such as
        continuations, by name; each function resumes by itself. estimated: whether accuracies are estimated,
        and over which units.
    score: what the number and the sentences are called, where that is not the rule's.
    people: how often people chose the right sentence, by suite, to be shown beside the model's accuracy.
    settings: what measures are computed with. baselines: what needs no model, as rows of BASELINES.
    """

    dataset: str
    stimuli: pl.DataFrame
    items: pl.DataFrame
    requests: pl.DataFrame
    contexts: pl.DataFrame
    rule: str
    measures: tuple[str, ...]
    seed: int
    options: dict[str, Any]
    stages: pl.DataFrame | None = None
    audited: pl.DataFrame | None = None
    findings: pl.DataFrame | None = None
    contrasts: tuple[Contrast, ...] = (PAIR,)
    unigram: Unigram | None = None
    unseen_limit: float = UNSEEN_LIMIT
    targets: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    collect: Callable[[Verdicts, pl.DataFrame], Verdicts] | None = None
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    ask: Mapping[str, Callable[[Model, Progress | None], pl.DataFrame]] = field(default_factory=dict)
    estimated: bool = True
    score: Mapping[str, Any] = field(default_factory=dict)
    boundary: str = "auto"
    units: Units = "suites"
    people: pl.DataFrame | None = None
    settings: MeasureSettings = field(default_factory=MeasureSettings)
    baselines: pl.DataFrame | None = None

    def case(self, measures: tuple[str, ...], noise: Noise, *, boundary: str = PLAIN) -> JudgingInput:
        """The input of the rule."""
        return JudgingInput(
            items=self.items,
            requests=self.requests,
            measures=measures,
            noise=noise,
            contrasts=self.contrasts,
            unigram=self.unigram,
            boundary=boundary,
            exponent=self.settings.slln_exponent,
        )


def carry_out(
    lm: Model,
    plan: Plan,
    folder: RunFolder,
    *,
    progress: Progress | None = None,
    on_audit: Callable[[pl.DataFrame], None] | None = None,
    on_pending: Callable[[Mapping[str, pl.DataFrame]], int] | None = None,
    overwrite: bool | None = None,
) -> None:
    """Carry out the plan, resuming the run in the folder.

    on_pending: called with what is still to be scored, stage by stage; it may score some
    itself, and returns how many texts. overwrite: replace a run of other stimuli; cached scores are reused;
    None if the command has no such option.

    Raises BadInput if the folder contains another run or a text is too long for the model, NotPossible
    if the model does not support the rule.
    """
    lm = lm.choose_precision(exact=RULES[plan.rule].exact)
    refuse_impossible(plan.rule, lm.info, exact=lm.in_float32 is lm)
    boundary = choose_boundary(plan.boundary, lm.info) if RULES[plan.rule].regions else PLAIN
    lm = lm.bounded if boundary == CORRECTED else lm
    manifest = _begin(lm, plan, folder, boundary=boundary, overwrite=overwrite)
    audit = _audit(lm, plan)
    if on_audit:
        on_audit(audit)
    folder.write_manifest(manifest)
    for name, table in ({**plan.tables, "audit": audit}).items():
        folder.write(name, table)
    prompts = build_prompts(plan.requests, plan.contexts)
    background = _plan_background(lm, plan, manifest)
    stages = {name: fix_pending(lm, folder, part, step=step) for name, step, part in _stages(plan, prompts)}
    frames = find_frames(plan.items) if "fill" in RULES[plan.rule].needs else []
    scored = on_pending(stages) if on_pending else 0
    # Texts that are scored already count as done, so that the total is that of the run.
    cached = len(prompts) - sum(len(part) for part in stages.values())
    counted = share_progress(progress, before=cached, after=len(background) + len(frames))
    noted = _note_reading(lm, manifest, folder, counted)
    scored += _score_stages(lm, stages, noted)
    manifest["scored"] = {"texts": len(prompts), "now": scored}
    _take_notes(manifest, lm)
    case = plan.case(tuple(manifest["measures"]), Noise(rough=lm.info.noise), boundary=boundary)
    counted = share_progress(progress, before=len(prompts), after=len(frames))
    case = replace(
        case,
        priors=background.score_priors(lm, folder, manifest, progress=counted),
        weights=background.fit_weights(lm, folder, manifest, unigram=plan.unigram, progress=counted),
    )
    if lm.in_float32 is not lm:
        rescored, noise = rescore_close_calls(lm, folder, prompts, case, RULES[plan.rule], seed=plan.seed)
        manifest["precision"] = {"dtype": lm.info.dtype} | rescored.as_dict()
        case = replace(case, noise=noise)
    elif not RULES[plan.rule].needs:
        noise, manifest["noise"] = measure_close_calls(lm, folder, prompts, case, RULES[plan.rule])
        case = replace(case, noise=noise)
    if frames:
        done = len(prompts) + len(background)
        filled = lm.fill_all(frames, k=K, progress=share_progress(progress, before=done))
        fillers = read_cloze(lm, plan.items)
        case = replace(case, fillers=fillers, targets=plan.targets, change=plan.change)
        dropped = int(fillers["dropped"].sum())
        manifest["fill"] = {"k": K, "frames": len(frames), "now": filled, "tokens_dropped": dropped}
    schema = BOUNDED_TOKENS if boundary == CORRECTED else TOKENS
    folder.write_parts("tokens", schema, read_mixed(lm.read, prompts, lm.in_float32.read, case.noise.exact))
    for name, answer in plan.ask.items():
        write_table(answer(lm, progress), folder.path / f"{name}.parquet")
    manifest["asked"] = list(plan.ask)
    judge_tokens(folder, manifest, plan, replace(case, sampling=True))
    forget_pending(folder)


def judge_tokens(folder: RunFolder, manifest: dict[str, Any], plan: Plan, case: JudgingInput) -> None:
    """From stored tokens to estimates, without the model; marks the run as finished in the manifest."""
    rule = RULES[plan.rule]
    read = partial(folder.read_parts, "tokens")
    if plan.unigram:
        manifest = manifest | {
            "unigram_unseen_tokens": _count_unseen(plan.unigram, plan.unseen_limit, read())
        }
    folder.write_parts("scores", SCORES, _score(plan, case, read))
    scores = folder.read("scores")
    verdicts = rule.judge(case, scores.filter(pl.col("measure").is_in(case.measures)), read)
    if plan.collect:
        verdicts = plan.collect(verdicts, scores)
    if case.priors is not None:
        verdicts = replace(verdicts, tables={**verdicts.tables, "priors": case.priors.table()})
    if plan.baselines is not None:
        verdicts = replace(verdicts, tables={**verdicts.tables, "baselines": plan.baselines})
    verdicts = name_languages(verdicts, plan.items)
    if rule.judges:
        write_verdicts(folder, verdicts, units=plan.units, estimated=plan.estimated, people=plan.people)
    else:
        folder.write("judgements", verdicts.judgements)
    folder.finish(manifest)


def write_verdicts(
    folder: RunFolder,
    verdicts: Verdicts,
    *,
    units: Units = "suites",
    estimates: pl.DataFrame | None = None,
    estimated: bool = True,
    people: pl.DataFrame | None = None,
) -> None:
    """Write judgements and estimates, and remove tables that another rule may have left.

    units: what intervals generalize over. estimates: if they are already known. people: their accuracy by
    suite, which the estimates then have in the column `people`.

    Raises NotPossible if nothing was judged.
    """
    if verdicts.judgements.is_empty():
        raise NotPossible(
            "None of these items can be judged: no prediction applies to them, or all ratings are equal; use "
            "more suites."
        )
    folder.write("judgements", verdicts.judgements)
    tables = dict(verdicts.tables)
    if verdicts.predictions is not None:
        tables["predictions"] = verdicts.predictions
    for name in EXTRAS:
        if name in tables:
            folder.write(name, tables[name])
        else:
            folder.file(name).unlink(missing_ok=True)
    if estimated:
        found = estimate_verdicts(verdicts, units=units) if estimates is None else estimates
        folder.write("estimates", found if people is None else add_people(found, verdicts.judgements, people))


def name_languages(verdicts: Verdicts, items: pl.DataFrame) -> Verdicts:
    """Verdicts whose judgements name the language of their items, if the items are in several."""
    if "language" not in items.columns or items["language"].n_unique() < 2:
        return verdicts
    languages = items.select("item", "language").unique("item")
    join = partial(pl.DataFrame.join, other=languages, on="item", how="left", maintain_order="left")
    single = verdicts.predictions
    named = single if single is None else join(single)
    return replace(verdicts, judgements=join(verdicts.judgements), predictions=named)


def estimate_verdicts(verdicts: Verdicts, *, units: Units = "suites") -> pl.DataFrame:
    """Accuracy overall, by phenomenon, by suite, and of every single prediction."""
    estimates = estimate_accuracy(verdicts.judgements, units=units)
    if verdicts.predictions is None:
        return estimates
    by_rule = verdicts.predictions.with_columns(pl.col("rule").alias("phenomenon"))
    single = estimate_accuracy(by_rule, units=units).filter(pl.col("level") == "phenomenon")
    return pl.concat([estimates, single.with_columns(pl.lit("prediction").alias("level"))])


def _note_reading(
    lm: Model, manifest: dict[str, Any], folder: RunFolder, progress: Progress | None
) -> Progress:
    """Progress that also writes the engine's notes to the manifest as soon as they are known.

    After a kill, the rest of the run may need no model; the manifest still says how it was scored.
    """
    noted = False

    def note(step: str, done: int, total: int) -> None:
        nonlocal noted
        if not noted and lm.info.notes != manifest["model"]["notes"]:
            noted = True
            _take_notes(manifest, lm)
            folder.write_manifest(manifest)
        if progress:
            progress(step, done, total)

    return note


def _take_notes(manifest: dict[str, Any], lm: Model) -> None:
    notes = manifest["model"].get("notes", {}) | lm.info.notes
    manifest["model"] |= lm.info.as_dict() | {"notes": notes}


def _begin(
    lm: Model, plan: Plan, folder: RunFolder, *, boundary: str, overwrite: bool | None
) -> dict[str, Any]:
    """The manifest of the run, continuing the one in the folder, if any."""
    manifest = build_manifest(
        dataset=plan.dataset,
        items=plan.stimuli,
        info=lm.info,
        spec=lm.spec,
        measures=list(plan.measures),
        score=Headline.read(plan.score, default=RULES[plan.rule].headline).as_dict(),
        options=plan.options,
    )
    if "slln_lp" in plan.measures:
        manifest["slln_lp"] = {"exponent": plan.settings.slln_exponent}
    if RULES[plan.rule].regions:
        manifest["regions"] = {"boundary": boundary}
    if lm.dtype:
        manifest["dtype"] = lm.dtype.as_dict()
    folder.prepare()
    if folder.has_manifest():
        old = folder.read_manifest()
        if overwrite and differs(old, manifest):
            folder.clear()
            return manifest
        folder.refuse_changed_manifest(old)
        changed, replaceable = _describe_change(folder, plan.stimuli), overwrite is not None
        refuse_other_run(old, manifest, str(folder.path), changed=changed, replaceable=replaceable)
        manifest["created"] = old.get("created", manifest["created"])
        manifest["command"] = manifest["command"] or old.get("command", "")
        if isinstance(old["model"].get("notes"), dict):
            manifest["model"]["notes"] = old["model"]["notes"] | manifest["model"]["notes"]
        manifest["measures"] = _keep_measures(manifest, old, folder, counted=plan.unigram is not None)
    return manifest


def _describe_change(folder: RunFolder, stimuli: pl.DataFrame) -> str:
    """How the stimuli differ from those of the folder's run, if it has kept them."""
    path = folder.file("items")
    return describe_change(folder.read_file(path), stimuli) if path.exists() else ""


def _keep_measures(
    new: dict[str, Any], old: dict[str, Any], folder: RunFolder, *, counted: bool
) -> list[str]:
    """The measures that the folder already has, then the requested ones; the main one does not change.

    Raises NotPossible if an old one needs unigram counts that were not given again.
    """
    kept = old.get("measures", [])
    lost = [name for name in kept if name not in new["measures"]]
    needy = needs_unigram([name for name in lost if name in MEASURES])
    if needy and not counted:
        raise NotPossible(
            f"{folder.path} has '{needy[0]}' too, which would be lost; pass its --unigram table again, or "
            "choose another folder with -o."
        )
    return [*kept, *(name for name in new["measures"] if name not in kept)]


def _audit(lm: Model, plan: Plan) -> pl.DataFrame:
    """What could bias the result; a text that is too long for the model is refused here."""
    requests = plan.requests if plan.audited is None else plan.audited
    encodings = lm.engine.encode(build_prompts(requests, plan.contexts))
    refuse_overlong(requests, encodings, model=lm.info.name, window=lm.info.window)
    compared = plan.contrasts if RULES[plan.rule].compares else ()
    sentences = plan.score.get("sentences", {})
    rows = audit_requests(requests, encodings, items=plan.stimuli, contrasts=compared, sentences=sentences)
    return rows if plan.findings is None else pl.concat([rows, plan.findings])


def _stages(plan: Plan, prompts: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Name, suffix of the pending file, and prompts of every stage."""
    if plan.stages is None:
        yield SCORING, "", prompts
        return
    staged = prompts.join(plan.stages, on="request", maintain_order="left")
    for number, ((name,), part) in enumerate(staged.group_by("stage", maintain_order=True)):
        yield str(name), f"-{number}", part.drop("stage")


def _score_stages(lm: Model, stages: Mapping[str, pl.DataFrame], progress: Progress | None) -> int:
    total = sum(len(pending) for pending in stages.values())
    done = scored = 0
    for name, pending in stages.items():
        left = total - done - len(pending)
        scored += lm.score_all(pending, step=name, progress=share_progress(progress, before=done, after=left))
        done += len(pending)
    return scored


def _plan_background(lm: Model, plan: Plan, manifest: dict[str, Any]) -> Background:
    """What the measures of the run need besides its sentences."""
    rule = RULES[plan.rule]
    return plan_background(
        lm,
        plan.requests,
        plan.contexts,
        measures=() if rule.fixed else manifest["measures"],
        settings=plan.settings,
        cancel=rule.compares,
        languages=plan.options.get("languages", ()),
    )


def _count_unseen(unigram: Unigram, limit: float, parts: Iterator[pl.DataFrame]) -> int:
    """How many tokens have no count.

    Raises NotPossible if these are more than the limit: the counts are those of another tokenizer.
    """
    unseen = total = 0
    for part in parts:
        tokens = part["tokens"].explode(empty_as_null=False)
        unseen += unigram.unseen(tokens)
        total += len(tokens)
    if total and unseen / total > limit:
        raise NotPossible(
            f"The unigram table lacks {unseen:,} of {total:,} tokens, so it was counted with another "
            "tokenizer; count again with `felicity measures count CORPUS.txt -m MODEL`, or allow a larger "
            "share with --unseen."
        )
    return unseen


def _score(
    plan: Plan, case: JudgingInput, read: Callable[[], Iterator[pl.DataFrame]]
) -> Iterator[pl.DataFrame]:
    """The measures that are judged, then the others."""
    yield from RULES[plan.rule].score(case, read())
    also = tuple(name for name in plan.also if name not in case.measures)
    if also:
        for tokens in read():
            yield score_measures(tokens, also, noise=case.noise.of(tokens["request"])).scores
