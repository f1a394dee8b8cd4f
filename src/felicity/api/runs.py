"""Runs of one model or several on a dataset, and what is read back from a folder: tables, page, export."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from felicity.api.comparison import Comparison, compare, write_comparisons
from felicity.api.scoring import take_model
from felicity.core.errors import BadInput, UnknownName
from felicity.core.progress import Progress
from felicity.data import Columns
from felicity.report import EXPLORER, leave_note, read_command, render_result
from felicity.run import (
    MeasureSettings,
    Model,
    Run,
    check_request,
    evaluate,
    export_tables,
    find_runs,
    is_study,
    list_runs,
    name_folder,
    read_run,
    report_run,
)
from felicity.studies import Study, name_data, read_study, report_study

GivenModel = str | Path | Model


@dataclass(frozen=True)
class Runs:
    """Runs of several models on the same stimuli, by the names of the models.

    folder: where they are kept, each below it, with one page on all of them.
    """

    runs: dict[str, Run]
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"Runs({', '.join(map(repr, self.runs.values()))})"

    def __getitem__(self, model: str) -> Run:
        """The run of one model."""
        if model not in self.runs:
            raise UnknownName("model", model, self.runs)
        return self.runs[model]

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs.values())

    def __len__(self) -> int:
        return len(self.runs)

    def accuracy(self, by: str = "overall") -> pl.DataFrame:
        """Accuracy of every model with 95% intervals: the table of `Run.accuracy`, with a column `model`."""
        parts = [run.accuracy(by).insert_column(0, pl.lit(name).alias("model")) for name, run in self._named]
        return pl.concat(parts)

    @property
    def _named(self) -> list[tuple[str, Run]]:
        return list(self.runs.items())

    def compare(self, **options: Any) -> Comparison:
        """Every pair of models, item by item; the options are those of `felicity.compare`."""
        return compare(*self.runs.values(), **options)

    def report(self, page: str | Path | None = None, *, items: bool = False) -> Path:
        """Write one page on all models: paired comparisons over all items and within each phenomenon.

        items: intervals and p over items instead of over suites.

        Raises BadInput if the runs are not kept in a folder and no page is named.
        """
        if page is None and self.folder is None:
            raise BadInput("These runs are not kept in a folder; name a page: runs.report('page.html').")
        parts = {"Over all items": None, "By phenomenon": "phenomenon"}
        found = {title: self.compare(by=by, items=items) for title, by in parts.items()}
        target = Path(page or self.folder / "report.html")  # type: ignore[operator]
        links = {
            name: quote(f"{name_folder(name)}/report.html")
            for name in self.runs
            if (target.parent / name_folder(name) / "report.html").exists()
        }
        manifest = next(iter(self)).manifest
        if page is None:
            leave_note(target.parent)
        return write_comparisons(
            found,
            target,
            dataset=name_data(manifest["dataset"].get("name", "")),
            links=links,
            explorer=EXPLORER if (target.parent / EXPLORER).exists() else "",
            command=read_command(manifest) if page is None else "",
        )

    def _repr_html_(self) -> str:
        shown = self.accuracy().select("model", "measure", "n", "suites", "accuracy", "low", "high")
        return render_result(f"{len(self)} models", table=shown)


@dataclass(frozen=True, kw_only=True)
class RunHooks:
    """What a program sees and decides while models are run one after another.

    open_one: opens a model. choose_folder: where the run of a model of this name is kept. watch: a context in
    which a model is scored, such as a progress bar. on_audit: called before scoring. on_run: called after
    each run, with its page and its model.
    """

    open_one: Callable[[Any], Model] = take_model
    choose_folder: Callable[[str], Path | None] | None = None
    watch: Callable[[], AbstractContextManager[Progress | None]] = nullcontext
    on_audit: Callable[[pl.DataFrame], None] | None = None
    on_run: Callable[[Run, Path | None, Model], None] | None = None


NO_HOOKS = RunHooks()


def run(
    dataset: str | Path | Any,
    models: GivenModel | Sequence[GivenModel] = "smollm2",
    *,
    measures: str | Sequence[str] | None = None,
    rule: str | None = None,
    out: str | Path | None = None,
    source: str | Path | None = None,
    columns: Columns | None = None,
    affirmative: str | None = None,
    unigram: str | Path | None = None,
    unseen: float = 0.05,
    settings: MeasureSettings | None = None,
    sample: int | None = None,
    seed: int = 0,
    items: bool = False,
    overwrite: bool = False,
    report: bool = True,
    hooks: RunHooks = NO_HOOKS,
) -> Runs:
    """Score every stimulus of a dataset with each model and judge it, as `felicity run` does.

    dataset: a name, a file, or a polars or pandas frame. models: names or opened models. out: the folder of
    the run, or with several models that of their runs; a run that stopped resumes there. measures, rule,
    source, columns, affirmative, unigram, unseen, settings, sample, seed: as in `evaluate`, which gives a
    single run. items: intervals over the items of these suites instead of over suites. report: write the
    pages.
    hooks: what a program wants to see and decide on the way.

    Raises BadInput, UnknownName or NotPossible before anything is scored.

    >>> import felicity as fe
    >>> runs = fe.run("starter", ["smollm2"], sample=1)
    >>> runs["smollm2"].accuracy()["n"].item()
    48
    """
    given = [models] if isinstance(models, str | Path | Model) else list(models)
    data = check_request(
        dataset,
        measures=measures,
        rule=rule,
        source=source,
        columns=columns,
        counted=unigram is not None,
        affirmative=affirmative,
    )
    choose = hooks.choose_folder or partial(_find_folder, out, several=len(given) > 1)
    done: dict[str, Run] = {}
    for one in given:
        lm = hooks.open_one(one)
        if lm.info.name in done:
            raise BadInput(f"Two models are called '{lm.info.name}'; name each once, or rename a folder.")
        folder = choose(lm.info.name)
        with hooks.watch() as progress:
            found = evaluate(
                data,
                lm,
                measures=measures,
                rule=rule,
                source=source,
                out=folder,
                unigram=unigram,
                unseen=unseen,
                settings=settings,
                columns=columns,
                affirmative=affirmative,
                sample=sample,
                seed=seed,
                units="items" if items else "suites",
                progress=progress,
                on_audit=hooks.on_audit,
                overwrite=overwrite,
            )
        # Several models share one page of the explorer, above their runs.
        shared = Path(out) / EXPLORER if out is not None and len(given) > 1 else None
        page = report_run(found, folder, explorer=shared) if report and folder else None
        done[lm.info.name] = found
        if hooks.on_run:
            hooks.on_run(found, page, lm)
    runs = Runs(done, Path(out) if out is not None else None)
    if report and len(runs) > 1 and runs.folder:
        runs.report(items=items)
    return runs


def _find_folder(out: str | Path | None, model: str, *, several: bool) -> Path | None:
    """The folder for the run of a model: with several models, one of its own below `out`."""
    if out is None:
        return None
    return Path(out) / name_folder(model) if several else Path(out)


def read(folder: str | Path, *, check: bool = True) -> Run | Runs | Study:
    """What a folder holds: a run, the runs of several models, or a study.

    check: refuse what is unfinished, or was changed since it was written.

    Raises BadInput if it holds none of them.

    >>> import felicity as fe, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = fe.evaluate("starter", "smollm2", sample=1, out=folder)
    ...     fe.read(folder).accuracy()["n"].item()
    48
    """
    path = Path(folder)
    if is_study(path):
        return read_study(path, check=check)
    found = list_runs(path)
    if found == [path]:
        return read_run(path, check=check)
    runs = [read_run(one, check=check) for one in found]
    return Runs({str(one.manifest["model"].get("name")): one for one in runs}, path)


def report(folder: str | Path, *, check: bool = True, **changes: Any) -> Path:
    """Write report.html and its figures again from the tables of a run, of several, or of a study.

    check: refuse what is unfinished, or was changed since it was written. changes: of a study, other values
    of settings that affect only the analysis, such as `ratings`; it is made again with them, and keeps them.
    Gives the path of the page.

    Raises BadInput if a run is given with such settings, which it does not have.
    """
    if is_study(Path(folder)):
        return report_study(Path(folder), check=check, **changes)
    if changes:
        raise BadInput(f"{folder} is not the folder of a study; leave out {', '.join(changes)}.")
    kept = read(folder, check=check)
    return kept.report()


def export(
    folder: str | Path,
    target: str | Path | None = None,
    *,
    to: str = "csv",
    safe: bool = False,
    check: bool = True,
) -> list[Path]:
    """Write every table of a run as CSV or JSON lines, tokens as one row per token; gives their paths.

    folder: of a run, several runs or a study; the tables of several runs are in folders of their own.
    target: where to, by default FOLDER/export. to: csv or jsonl. safe: put ' before texts that a spreadsheet
    would run.
    """
    path = Path(folder)
    below = Path(target) if target is not None else path / "export"
    written = []
    if is_study(path):
        written += export_tables(_read_tables(path, check=check), below, to=to, safe=safe)
    for name, run in find_runs(path).items():
        place = below if run == path else below / name
        written += read_run(run, check=check).export(place, to=to, safe=safe)
    return written


def _read_tables(path: Path, *, check: bool) -> Mapping[str, pl.DataFrame]:
    """The tables of a study: those of its plan, then those of its analysis."""
    study = read_study(path, check=check)
    return {name: study.place.read(name) for name in study.record["kept"]} | dict(study.tables)
