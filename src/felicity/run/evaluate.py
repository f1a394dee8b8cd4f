"""Evaluate a model on a dataset: plan a run, carry it out in a folder, and read its tables."""

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.progress import Progress, notebook_progress
from felicity.core.wording import format_share
from felicity.data import (
    Columns,
    Dataset,
    find_entry,
    load_entries,
    read_dataset,
    sample_items,
    take_frame,
)
from felicity.design import build_requests
from felicity.measures import Unigram, check_measures, needs_priors, read_unigram
from felicity.run.audit import audit_rows
from felicity.run.background import MeasureSettings
from felicity.run.baselines import infer_language, measure_baselines
from felicity.run.folder import (
    EXTRAS,
    MANIFEST,
    RECORD,
    SHEETS,
    TABLES,
    RunFolder,
    export_tables,
    find_study,
    flatten_tokens,
)
from felicity.run.model import Model, open_model
from felicity.run.pipeline import UNSEEN_LIMIT, Plan, carry_out
from felicity.run.rules import RULES, impossible_rules, prepare_items, refuse_impossible
from felicity.stats import Units, average_region_surprisal, estimate_accuracy

# Tables that only one rule writes.
RULE_OF_TABLE = {"correlations": "rating", "fillers": "cloze", "regions": "formula"}
LEVELS = ("overall", "macro", "language", "phenomenon", "suite", "prediction")


@dataclass(frozen=True)
class Run:
    """A finished run: its manifest and tables, and the folder it is kept in, if any."""

    manifest: dict[str, Any]
    tables: dict[str, pl.DataFrame]
    folder: Path | None = None

    def __repr__(self) -> str:
        overall = self.accuracy().row(0, named=True)
        model, dataset = (self.manifest[part].get("name") for part in ("model", "dataset"))
        share = f"{format_share(overall['accuracy'])} of {overall['n']:,} items"
        return f"Run({model} on {dataset}: {self.headline.noun} {share})"

    def _repr_html_(self) -> str:
        from felicity.report import draw_accuracy, render_result

        level = "phenomenon" if self.accuracy("phenomenon").height else "suite"
        measure = self.manifest["measures"][0]
        table = self.accuracy(level).filter(measure=measure)
        shown = table.select("name", "n", "suites", "accuracy", "low", "high")
        return render_result(
            repr(self), f"By {level}, judged by {measure}.", table=shown, figure=draw_accuracy(table)
        )

    @property
    def headline(self) -> Headline:
        """What the run's number and its sentences are called."""
        return find_headline(self.manifest, self.tables)

    def report(self, folder: str | Path | None = None) -> Path:
        """Write report.html and its figures into the run's folder, or another; returns the page's path.

        Raises BadInput if the run is not kept in a folder and none is given.
        """
        if folder is None and self.folder is None:
            raise BadInput("This run is not kept in a folder; name one for the report: run.report('folder').")
        return report_run(self, folder or self.folder or "")

    def export(self, target: str | Path, *, to: str = "csv", safe: bool = False) -> list[Path]:
        """Write every table into a folder as CSV or JSON lines, tokens as one row per token."""
        tables = dict(self.tables)
        tables["tokens"] = flatten_tokens(tables["tokens"], tables["requests"])
        return export_tables(tables, Path(target), to=to, safe=safe)

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by name: items, requests, tokens, scores, judgements, estimates, audit.

        Some rules add tables: predictions, regions, correlations, baselines.
        """
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return self.tables[name]

    def accuracy(self, by: str = "overall") -> pl.DataFrame:
        """Accuracy with 95% intervals, `by` overall, macro, language, phenomenon, suite or prediction."""
        if by not in LEVELS:
            raise UnknownName("level", by, LEVELS)
        return self["estimates"].filter(pl.col("level") == by)


def evaluate(
    dataset: str | Path | Any,
    lm: Model | str = "smollm2",
    *,
    measures: str | Sequence[str] | None = None,
    rule: str | None = None,
    source: str | Path | None = None,
    out: str | Path | None = None,
    unigram: str | Path | None = None,
    unseen: float = UNSEEN_LIMIT,
    columns: Columns | None = None,
    affirmative: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    units: Units = "suites",
    settings: MeasureSettings | None = None,
    progress: Progress | None = None,
    on_audit: Callable[[pl.DataFrame], None] | None = None,
    overwrite: bool | None = False,
) -> Run:
    """Score every stimulus of a dataset, judge it, and estimate accuracy.

    `dataset` is a name, a file, or a polars or pandas frame with the columns of such a file.

    With `out` the run is kept in that folder and resumes where it stopped; `overwrite` replaces a run of
    other stimuli there (None: the refusal does not suggest it). `sample` takes this many items of each suite.
    `rule` is another judging rule of the dataset; `source` is a folder with a copy of it. `unseen` is the
    share of tokens that the unigram table may lack. Without `measures`, those of the rule are computed (`lp`
    for most). `affirmative` is the condition of a cloze file whose targets are looked for, by default all.
    Intervals are over `units`: suites, or the items of these suites. `settings` are those of
    single measures, such as the neutral contexts of `word_pmi`.

    >>> import felicity as fe
    >>> run = fe.evaluate("starter", fe.model("smollm2"), sample=1)
    >>> run.accuracy(by="phenomenon").height
    12
    """
    if not isinstance(lm, str | Model):
        raise BadInput(f"The model is {lm!r}; give a name, or a model opened with felicity.model().")
    counts = read_unigram(Path(unigram)) if unigram else None
    if isinstance(lm, str):
        # Whatever is misspelt is reported before a model is fetched.
        check_request(
            dataset,
            measures=measures,
            rule=rule,
            source=source,
            columns=columns,
            counted=counts is not None,
            affirmative=affirmative,
        )
        lm = open_model(lm)
    data = check_request(
        dataset,
        measures=measures,
        rule=rule,
        source=source,
        columns=columns,
        counted=counts is not None,
        without=impossible_rules(lm.info.can),
        affirmative=affirmative,
    )
    progress = progress or notebook_progress()
    items = sample_items(data.items, sample, seed=seed)
    plan = plan_run(
        data,
        items,
        lm,
        measures=_as_names(measures),
        counts=counts,
        unseen=unseen,
        seed=seed,
        options={"sample": sample, "unigram": str(unigram) if unigram else None},
    )
    plan = replace(plan, units=units, settings=settings or MeasureSettings())
    plan = _add_baselines(plan, data)
    # The memory of the work is freed before its results are read back.
    if out is not None:
        carry_out(lm, plan, RunFolder(Path(out)), progress=progress, on_audit=on_audit, overwrite=overwrite)
        return read_run(out)
    with tempfile.TemporaryDirectory(prefix="felicity-") as place:
        carry_out(lm, plan, RunFolder(Path(place)), progress=progress, on_audit=on_audit)
        return replace(read_run(place), folder=None)


def _add_baselines(plan: Plan, data: Dataset) -> Plan:
    """The plan with what word frequency, length and a 5-gram would score, if it compares sentences."""
    if not RULES[data.rule].compares:
        return plan
    language = infer_language(plan.requests["text"].to_list(), data.languages)
    found = measure_baselines(plan.items, plan.requests, plan.contrasts, language=language)
    audited = [frame for frame in (plan.findings, found.audit()) if frame is not None]
    return replace(plan, baselines=found.table, findings=pl.concat(audited))


def check_request(
    dataset: str | Path | Any,
    *,
    measures: str | Sequence[str] | None = None,
    rule: str | None = None,
    source: str | Path | None = None,
    columns: Columns | None = None,
    counted: bool = False,
    without: Collection[str] = (),
    affirmative: str | None = None,
) -> Dataset:
    """The dataset of a run, after a check of all names and options that needs no model.

    dataset: also one that was read before; it is read again only if its rule is among those in `without`.
    counted: whether unigram counts are at hand. affirmative: as in `evaluate`.

    Raises BadInput or UnknownName, or NotPossible if a measure lacks what it needs.
    """
    if isinstance(dataset, Dataset) and (rule or dataset.rule not in without):
        data = dataset
    elif isinstance(dataset, str | Path | Dataset):
        name = dataset.name if isinstance(dataset, Dataset) else str(dataset)
        folder = Path(source) if source else None
        read = read_dataset(name, columns, rule=rule, folder=folder, without=without, affirmative=affirmative)
        data = replace(read, name=name)
    else:
        data = take_frame(dataset, columns, affirmative=affirmative)
    judging = RULES[data.rule]
    chosen = judging.choose_measures(data.method, _as_names(measures) or data.measures)
    if not judging.fixed:
        check_measures(chosen, counted)
    return data


def _as_names(measures: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Measures as a tuple.

    Raises BadInput if one is not a name.
    """
    if measures is None or isinstance(measures, str):
        return (measures,) if measures else None
    if not isinstance(measures, Sequence) or not all(isinstance(name, str) for name in measures):
        raise BadInput(f"The measures are {measures!r}; give a name or a list of names.")
    return tuple(measures) or None


def plan_run(
    data: Dataset,
    items: pl.DataFrame,
    lm: Model,
    *,
    measures: Sequence[str] | None = None,
    counts: Unigram | None = None,
    unseen: float = UNSEEN_LIMIT,
    seed: int = 0,
    options: dict[str, Any] | None = None,
) -> Plan:
    """These items of a dataset, each scored as it is and judged by the dataset's rule.

    Raises NotPossible if the model cannot serve the rule, or a measure lacks what it needs.
    """
    refuse_impossible(data.rule, lm.info, exact=lm.in_float32 is lm)
    rule = RULES[data.rule]
    if not rule.judges:
        raise NotPossible(f"The rule '{data.rule}' gives no verdicts; it belongs to `felicity reading`.")
    chosen = rule.choose_measures(data.method, tuple(measures or data.measures))
    if not rule.fixed:
        check_measures(chosen, counts is not None)
        # What a word adds is shown beside what the words of a sentence amount to.
        chosen = (*chosen, "lp") if needs_priors(chosen) and "lp" not in chosen else chosen
    requests, contexts = build_requests(prepare_items(items, cross=data.cross))
    digest = {"unigram_digest": counts.key} if counts else {}
    languages = {"languages": list(data.languages)} if data.languages else {}
    return Plan(
        dataset=data.name,
        stimuli=items,
        items=items,
        requests=requests,
        contexts=contexts,
        tables={"items": items, "contexts": contexts, "requests": requests},
        findings=audit_rows(data, items, compares=rule.compares),
        rule=data.rule,
        measures=chosen,
        contrasts=data.contrasts,
        unigram=counts,
        unseen_limit=unseen,
        targets=data.targets,
        change=data.change,
        score=_name_score(data),
        boundary=data.boundary,
        people=data.people,
        seed=seed,
        options=(options or {}) | {"seed": seed, "rule": data.method} | languages | digest,
    )


def _name_score(data: Dataset) -> dict[str, Any]:
    """What the dataset's number is called; of cloze frames in several conditions, whose targets count."""
    several = data.items["condition"].n_unique() > 1
    if data.rule != "cloze" or "passed" in data.score or not several:
        return dict(data.score)
    passed = f"{RULES[data.rule].headline.passed} ({list_target_conditions(data)})"
    return dict(data.score) | {"passed": passed}


def list_target_conditions(data: Dataset) -> str:
    """The conditions of a cloze dataset whose targets are looked for.

    >>> from felicity.data import take_frame
    >>> rows = {"item": [1, 1], "condition": ["aff", "neg"], "context_text": ["A", "B"], "text": ["c", "c"]}
    >>> list_target_conditions(take_frame(pl.DataFrame(rows)))
    'targets of the frames of every condition (aff, neg)'
    >>> list_target_conditions(take_frame(pl.DataFrame(rows), affirmative="aff"))
    'targets of the frames of aff only, not of neg'
    """
    others = [
        name for name in data.items["condition"].unique(maintain_order=True) if name not in data.targets
    ]
    if not others:
        return f"targets of the frames of every condition ({', '.join(data.targets)})"
    return f"targets of the frames of {', '.join(data.targets)} only, not of {', '.join(others)}"


def read_run(path: str | Path, *, check: bool = True) -> Run:
    """A finished run from its folder.

    check: refuse a run that is unfinished, or whose tables have changed since it finished.

    Raises BadInput if the folder contains no run, or one that is refused.
    """
    folder = RunFolder(_find_run(Path(path)))
    manifest = folder.read_manifest()
    if check:
        folder.refuse_altered(manifest)
    estimated = folder.file("estimates").exists()
    present = [name for name in (*SHEETS, *EXTRAS) if name != "estimates" or estimated]
    present = [name for name in present if name == "audit" or folder.file(name).exists()]
    tables = {name: folder.read(name) for name in (*TABLES, *present)}
    if not estimated and find_study(folder.path.resolve()):
        # The run of a study is estimated together with the others, in the study's own tables.
        tables["estimates"] = estimate_accuracy(tables["judgements"])
    elif not estimated:
        folder.read("estimates")
    return Run(manifest, tables, folder.path)


def _find_run(path: Path) -> Path:
    """The folder of the run: of a study with one model, that of the model.

    Raises BadInput for a study with several runs.
    """
    if (path / MANIFEST).exists() or not (path / RECORD).is_file():
        return path
    patterns = ("*/*", "*/*/*")
    runs = sorted(file.parent for pattern in patterns for file in path.glob(f"{pattern}/{MANIFEST}"))
    if len(runs) == 1:
        return runs[0]
    named = f"; give the folder of one, such as {runs[0]}" if runs else ""
    raise BadInput(f"{path} is a study with {len(runs)} runs{named}, or read it with read_study.")


def find_headline(manifest: Mapping[str, Any], tables: Collection[str]) -> Headline:
    """What a run's number and its sentences are called: as its manifest says.

    Replayed and older manifests do not say it: then as the dataset's entry says, and by the rule, recognized
    by the names of the run's tables.
    """
    if manifest.get("score"):
        return Headline.read(manifest["score"])
    rule = next((rule for table, rule in RULE_OF_TABLE.items() if table in tables), "contrast")
    name = manifest.get("dataset", {}).get("name")
    entry = find_entry(name) if name in load_entries() else None
    method = entry.methods.get(manifest.get("options", {}).get("rule")) if entry else None
    return Headline.read(method.score if method else {}, default=RULES[rule].headline)


def report_run(run: Run, path: str | Path, *, explorer: Path | None = None) -> Path:
    """Write report.html and its figures into the run's folder.

    explorer: a page of `felicity explore --static` to link to; by default explore.html in the folder, or in
    the one above, which several runs share. If there is none, a note is written that says how to open it.
    """
    from felicity.report import ReportInput, leave_note, write_report

    needed = ("items", "contexts", "requests", "tokens", "scores", "judgements", "estimates", "audit")
    regions = run.tables.get("regions")
    report = ReportInput(
        manifest=run.manifest,
        regions=None if regions is None else average_region_surprisal(regions),
        correlations=run.tables.get("correlations"),
        fillers=run.tables.get("fillers"),
        baselines=run.tables.get("baselines"),
        headline=run.headline,
        explorer=_find_explorer(Path(path), explorer),
        **{name: run[name] for name in needed},
    )
    page = write_report(report, Path(path))
    if explorer is None:
        leave_note(_choose_explorer(Path(path)).parent)
    return page


def _choose_explorer(folder: Path) -> Path:
    """The explorer's page that a report links to: its own, or one above it that has this run."""
    from felicity.report import EXPLORER, holds_run

    own, shared = folder / EXPLORER, folder.parent / EXPLORER
    return shared if not own.exists() and holds_run(shared, folder) else own


def _find_explorer(folder: Path, given: Path | None) -> str:
    """The address of the explorer's page as seen from the report, with the run as seen from the page."""
    from felicity.report import name_run

    page = given or _choose_explorer(folder)
    address = quote(os.path.relpath(page, folder).replace(os.sep, "/"))
    run = quote(name_run(folder, page.parent))
    return address if run == "." else f"{address}#run={run}"
