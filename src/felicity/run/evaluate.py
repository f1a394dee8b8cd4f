"""A dataset through a model into a run folder: the rooms in order."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import UnknownName
from felicity.core.schemas import SCORES, TOKENS
from felicity.data.catalogue import read_items
from felicity.data.pairs import Columns
from felicity.data.sample import sample_items
from felicity.design.plain import build_prompts, build_requests
from felicity.judge.pairs import judge_pairs
from felicity.measures.scoring import check_measures, score_measures
from felicity.measures.unigram import Unigram, read_unigram
from felicity.run.audit import audit_requests, refuse_overlong
from felicity.run.folder import SHEETS, TABLES, RunFolder
from felicity.run.manifest import build_manifest, now, refuse_other_run
from felicity.run.model import Model, open_model
from felicity.run.pending import fix_pending, forget_pending
from felicity.run.precision import Noise
from felicity.run.scoring import Progress, read_mixed
from felicity.run.settling import settle_run
from felicity.stats.proportions import estimate_accuracy

LEVELS = ("overall", "macro", "phenomenon", "suite")


@dataclass(frozen=True)
class Run:
    """A finished run: its manifest and tables."""

    manifest: dict[str, Any]
    tables: dict[str, pl.DataFrame]

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by name: items, requests, tokens, scores, judgements, estimates, audit."""
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return self.tables[name]

    def accuracy(self, by: str = "overall") -> pl.DataFrame:
        """Accuracy with 95% intervals, `by` overall, macro, phenomenon or suite."""
        if by not in LEVELS:
            raise UnknownName("level", by, LEVELS)
        return self["estimates"].filter(pl.col("level") == by)


def evaluate(
    dataset: str,
    lm: Model | str = "smollm2",
    *,
    measures: Sequence[str] = ("lp",),
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
    many items of each suite.

    >>> import felicity as fe
    >>> run = fe.evaluate("starter", fe.model("smollm2"), sample=1)
    >>> run.accuracy(by="phenomenon").height
    12
    """
    lm = open_model(lm) if isinstance(lm, str) else lm
    counts = read_unigram(Path(unigram)) if unigram else None
    check_measures(measures, counts is not None)
    items = sample_items(read_items(dataset, columns), sample, seed=seed)
    options = {"sample": sample, "seed": seed, "unigram": str(unigram) if unigram else None}
    options |= {"unigram_digest": counts.key} if counts else {}
    manifest = build_manifest(
        dataset=dataset, items=items, info=lm.info, spec=lm.spec, measures=list(measures), options=options
    )
    if out is not None:
        return _evaluate(lm, items, manifest, RunFolder(Path(out)), counts, seed, progress, on_audit)
    with tempfile.TemporaryDirectory(prefix="felicity-") as place:
        return _evaluate(lm, items, manifest, RunFolder(Path(place)), counts, seed, progress, on_audit)


def _evaluate(
    lm: Model,
    items: pl.DataFrame,
    manifest: dict[str, Any],
    folder: RunFolder,
    counts: Unigram | None,
    seed: int,
    progress: Progress | None,
    on_audit: Callable[[pl.DataFrame], None] | None,
) -> Run:
    folder.prepare()
    if folder.has_manifest():
        old = folder.read_manifest()
        refuse_other_run(old, manifest, str(folder.path))
        manifest["created"] = old.get("created", manifest["created"])
    requests, contexts = build_requests(items)
    prompts = build_prompts(requests, contexts)
    encodings = lm.engine.encode(prompts)
    audit = audit_requests(requests, encodings)
    if on_audit:
        on_audit(audit)
    refuse_overlong(requests, encodings, model=lm.info.name, window=lm.info.window)
    folder.write_manifest(manifest)
    for name, table in (("items", items), ("contexts", contexts), ("requests", requests), ("audit", audit)):
        folder.write(name, table)
    pending = fix_pending(lm, folder, prompts)
    scored = lm.score_all(pending, progress=progress)
    manifest["scored"] = {"texts": len(prompts), "now": scored}
    manifest["model"] |= lm.info.as_dict()
    noise = Noise(rough=lm.info.noise)
    if lm.exact is not lm:
        settled, noise = settle_run(lm, folder, prompts, manifest["measures"], counts=counts, seed=seed)
        manifest["precision"] = {"dtype": lm.info.dtype} | settled.as_dict()
    folder.write_parts("tokens", TOKENS, read_mixed(lm.store, prompts, lm.exact.store, noise.exact))
    finish_run(folder, manifest, noise=noise, counts=counts, seed=seed)
    forget_pending(folder)
    return read_run(folder.path)


def finish_run(
    folder: RunFolder, manifest: dict[str, Any], *, noise: Noise, counts: Unigram | None, seed: int
) -> None:
    """From stored tokens to estimates, without the model."""
    measures = manifest["measures"]
    unseen = 0

    def scored() -> Iterator[pl.DataFrame]:
        nonlocal unseen
        for tokens in folder.read_parts("tokens"):
            result = score_measures(tokens, measures, noise=noise.of(tokens["request"]), unigram=counts)
            unseen += result.unseen
            yield result.scores

    folder.write_parts("scores", SCORES, scored())
    judgements = judge_pairs(folder.read("items"), folder.read("requests"), folder.read("scores"))
    folder.write("judgements", judgements)
    folder.write("estimates", estimate_accuracy(judgements, seed=seed))
    if counts:
        manifest = manifest | {"unigram_unseen_tokens": unseen}
    folder.write_manifest(manifest | {"finished": now()})


def read_run(path: str | Path) -> Run:
    """A finished run from its folder.

    Raises BadInput where the folder holds no run, or one that was not finished.
    """
    folder = RunFolder(Path(path))
    manifest = folder.read_manifest()
    return Run(manifest, {name: folder.read(name) for name in (*TABLES, *SHEETS)})


def report_run(run: Run, path: str | Path) -> Path:
    """Write report.html and its figures into the run's folder."""
    from felicity.report.input import ReportInput
    from felicity.report.page import write_report

    needed = ("items", "contexts", "requests", "tokens", "scores", "judgements", "estimates", "audit")
    return write_report(
        ReportInput(manifest=run.manifest, **{name: run[name] for name in needed}), Path(path)
    )
