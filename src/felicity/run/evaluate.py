"""A dataset through a model into a run folder: the rooms in order."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import NotPossible, UnknownName
from felicity.core.schemas import SCORES, TOKENS
from felicity.data.catalogue import Dataset, read_dataset
from felicity.data.pairs import Columns
from felicity.data.sample import sample_items
from felicity.design.plain import build_prompts, build_requests
from felicity.measures.scoring import check_measures
from felicity.measures.sentence import UNIGRAM_MEASURES
from felicity.measures.unigram import Unigram, read_unigram
from felicity.run.audit import audit_requests, audit_rows, refuse_overlong
from felicity.run.filling import K, find_frames, read_cloze
from felicity.run.folder import EXTRAS, SHEETS, TABLES, RunFolder
from felicity.run.manifest import build_manifest, now, refuse_other_run
from felicity.run.model import Model, open_model
from felicity.run.pending import fix_pending, forget_pending
from felicity.run.precision import Noise
from felicity.run.rules import RULES, Case, Rule, impossible_rules, needs, prepare_items, refuse_impossible
from felicity.run.scoring import Progress, read_mixed, share_progress
from felicity.run.settling import settle_run
from felicity.run.verdicts import write_verdicts

LEVELS = ("overall", "macro", "phenomenon", "suite", "prediction")


@dataclass(frozen=True)
class Run:
    """A finished run: its manifest and tables."""

    manifest: dict[str, Any]
    tables: dict[str, pl.DataFrame]

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by name: items, requests, tokens, scores, judgements, estimates, audit.

        Some rules add tables: predictions, regions, correlations.
        """
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return self.tables[name]

    def accuracy(self, by: str = "overall") -> pl.DataFrame:
        """Accuracy with 95% intervals, `by` overall, macro, phenomenon, suite or prediction."""
        if by not in LEVELS:
            raise UnknownName("level", by, LEVELS)
        return self["estimates"].filter(pl.col("level") == by)


def evaluate(
    dataset: str,
    lm: Model | str = "smollm2",
    *,
    measures: Sequence[str] | None = None,
    rule: str | None = None,
    source: str | Path | None = None,
    out: str | Path | None = None,
    unigram: str | Path | None = None,
    columns: Columns | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    on_audit: Callable[[pl.DataFrame], None] | None = None,
) -> Run:
    """Score every stimulus of a dataset, judge it, and estimate accuracy.

    With `out` the run is kept in that folder and goes on there where it stopped. `sample` takes that
    many items of each suite. `rule` is another way of judging that the dataset knows; `source` a folder
    with a copy of it. Without `measures`, what the rule reads is computed (`lp` for most).

    >>> import felicity as fe
    >>> run = fe.evaluate("starter", fe.model("smollm2"), sample=1)
    >>> run.accuracy(by="phenomenon").height
    12
    """
    lm = open_model(lm) if isinstance(lm, str) else lm
    counts = read_unigram(Path(unigram)) if unigram else None
    data = read_dataset(
        dataset,
        columns,
        rule=rule,
        folder=Path(source) if source else None,
        without=impossible_rules(lm.info.can),
    )
    refuse_impossible(data.rule, lm.info, exact=lm.exact is lm)
    items = sample_items(data.items, sample, seed=seed)
    judging = RULES[data.rule]
    chosen = judging.choose_measures(data.method, tuple(measures) if measures else None)
    if not judging.fixed:
        check_measures(chosen, counts is not None)
    options = {"sample": sample, "seed": seed, "unigram": str(unigram) if unigram else None}
    options |= {"rule": data.method} | ({"unigram_digest": counts.key} if counts else {})
    manifest = build_manifest(
        dataset=dataset, items=items, info=lm.info, spec=lm.spec, measures=list(chosen), options=options
    )
    plan = Plan(dataset=data, items=items, rule=judging, counts=counts, seed=seed)
    # What the work holds in memory is let go before its results are read back.
    if out is not None:
        _carry_out(lm, plan, manifest, RunFolder(Path(out)), progress, on_audit)
        return read_run(out)
    with tempfile.TemporaryDirectory(prefix="felicity-") as place:
        _carry_out(lm, plan, manifest, RunFolder(Path(place)), progress, on_audit)
        return read_run(place)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to do: these items, by this rule."""

    dataset: Dataset
    items: pl.DataFrame
    rule: Rule
    counts: Unigram | None
    seed: int

    def case(self, requests: pl.DataFrame, measures: tuple[str, ...], noise: Noise) -> Case:
        """What the rule is handed to judge by."""
        return Case(
            items=self.items,
            requests=requests,
            measures=measures,
            noise=noise,
            contrasts=self.dataset.contrasts,
            unigram=self.counts,
        )


def _carry_out(
    lm: Model,
    plan: Plan,
    manifest: dict[str, Any],
    folder: RunFolder,
    progress: Progress | None,
    on_audit: Callable[[pl.DataFrame], None] | None,
) -> None:
    folder.prepare()
    if folder.has_manifest():
        old = folder.read_manifest()
        refuse_other_run(old, manifest, str(folder.path))
        manifest["created"] = old.get("created", manifest["created"])
        manifest["command"] = manifest["command"] or old.get("command", "")
        manifest["measures"] = keep_measures(manifest, old, str(folder.path), counted=plan.counts is not None)
    requests, contexts = build_requests(prepare_items(plan.items, cross=plan.dataset.cross))
    prompts = build_prompts(requests, contexts)
    encodings = lm.engine.encode(prompts)
    audit = pl.concat([audit_requests(requests, encodings), audit_rows(plan.dataset)])
    if on_audit:
        on_audit(audit)
    refuse_overlong(requests, encodings, model=lm.info.name, window=lm.info.window)
    folder.write_manifest(manifest)
    tables = {"items": plan.items, "contexts": contexts, "requests": requests, "audit": audit}
    for name, table in tables.items():
        folder.write(name, table)
    pending = fix_pending(lm, folder, prompts)
    frames = find_frames(plan.items) if "fill" in needs(plan.dataset.rule) else []
    scored = lm.score_all(pending, progress=share_progress(progress, after=len(frames)))
    manifest["scored"] = {"texts": len(prompts), "now": scored}
    manifest["model"] |= lm.info.as_dict()
    case = plan.case(requests, tuple(manifest["measures"]), Noise(rough=lm.info.noise))
    if lm.exact is not lm:
        settled, noise = settle_run(lm, folder, prompts, case, plan.rule, seed=plan.seed)
        manifest["precision"] = {"dtype": lm.info.dtype} | settled.as_dict()
        case = replace(case, noise=noise)
    if frames:
        filled = lm.fill_all(frames, k=K, progress=share_progress(progress, before=len(pending)))
        fillers = read_cloze(lm, plan.items)
        case = replace(case, fillers=fillers, targets=plan.dataset.targets, change=plan.dataset.change)
        dropped = int(fillers["dropped"].sum())
        manifest["fill"] = {"k": K, "frames": len(frames), "now": filled, "tokens_dropped": dropped}
    folder.write_parts("tokens", TOKENS, read_mixed(lm.store, prompts, lm.exact.store, case.noise.exact))
    finish_run(folder, manifest, plan, case)
    forget_pending(folder)


def keep_measures(new: dict[str, Any], old: dict[str, Any], folder: str, *, counted: bool) -> list[str]:
    """The measures asked for, then those that the folder has already.

    Raises NotPossible where an old one needs unigram counts that were not given again.
    """
    kept = [name for name in old.get("measures", []) if name not in new["measures"]]
    needy = [name for name in kept if name in UNIGRAM_MEASURES and not counted]
    if needy:
        raise NotPossible(
            f"{folder} has '{needy[0]}' too, which would be lost; pass its --unigram table again, or choose "
            "another folder with -o."
        )
    return [*new["measures"], *kept]


def finish_run(folder: RunFolder, manifest: dict[str, Any], plan: Plan, case: Case) -> None:
    """From stored tokens to estimates, without the model."""
    read = partial(folder.read_parts, "tokens")
    folder.write_parts("scores", SCORES, plan.rule.score(case, read()))
    verdicts = plan.rule.judge(case, folder.read("scores"), read)
    write_verdicts(folder, verdicts, seed=plan.seed)
    if plan.counts:
        unseen = sum(plan.counts.unseen(part["tokens"].explode(empty_as_null=False)) for part in read())
        manifest = manifest | {"unigram_unseen_tokens": unseen}
    folder.write_manifest(manifest | {"finished": now()})


def read_run(path: str | Path) -> Run:
    """A finished run from its folder.

    Raises BadInput where the folder holds no run, or one that was not finished.
    """
    folder = RunFolder(Path(path))
    manifest = folder.read_manifest()
    present = [name for name in EXTRAS if folder.file(name).exists()]
    return Run(manifest, {name: folder.read(name) for name in (*TABLES, *SHEETS, *present)})


def report_run(run: Run, path: str | Path) -> Path:
    """Write report.html and its figures into the run's folder."""
    from felicity.report.input import ReportInput
    from felicity.report.page import write_report

    needed = ("items", "contexts", "requests", "tokens", "scores", "judgements", "estimates", "audit")
    report = ReportInput(
        manifest=run.manifest,
        regions=run.tables.get("regions"),
        correlations=run.tables.get("correlations"),
        **{name: run[name] for name in needed},
    )
    return write_report(report, Path(path))
