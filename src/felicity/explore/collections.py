"""What can be explored: the runs that were named, grouped by their stimuli."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.errors import BadInput, UnknownName
from felicity.explore.index import Source, build_index
from felicity.explore.texts import TextCollection, has_texts, open_texts
from felicity.run import RunFolder, StudyFolder, check_record, find_headline, is_study, list_runs, read_record

MODELS = "models"
# Scores of a benchmark's tasks that are regressions on reading times.
WORD_SCORES = ("eye_tracking", "self_paced")
# Files of stimuli.
TABLES = (".csv", ".tsv", ".jsonl", ".json", ".toml", ".parquet", ".xlsx")
# Other folders that felicity writes, by a file that each has, and where to look at them.
A_MODEL = "is a model, not a run; try it with `felicity run starter -m {path}` and explore that run"
OTHERS = {
    "study.toml": "is a study for people, not a run; look at it with `felicity rate preview {path}`",
    "task.json": "holds proposed pairs, not a run; look at them with `felicity stimuli review {path}`",
    "trained.json": A_MODEL,
    "config.json": A_MODEL,
    "words.csv": "holds times of readers, not a run; analyse them with `felicity reading {path}/words.csv -m "
    "MODEL` and explore that study, or open {path}/report.html in a browser",
    "report.html": "holds a report but no run to explore; open {path}/report.html in a browser",
}
CHECKPOINTS = (
    "holds checkpoints, not a run; compare them with `felicity trajectory starter -m {path}` and explore "
    "that study"
)


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Runs of the same stimuli, one per model.

    name: short, unique, for addresses. sources: the runs. index: a Parquet file with one row per judgement
    (see `index`). study: the folder of the context study that the runs belong to, if any.
    """

    name: str
    dataset: str
    sources: tuple[Source, ...]
    index: Path
    headline: Headline
    measures: tuple[str, ...]
    study: Path | None = None

    @property
    def models(self) -> list[str]:
        """The names of the models, each once."""
        return [source.model for source in self.sources]

    def scan(self) -> pl.LazyFrame:
        """The table of judgements, read only as far as needed."""
        return pl.scan_parquet(self.index)

    def find(self, model: str) -> int:
        """The place of a model.

        Raises UnknownName.
        """
        if model not in self.models:
            raise UnknownName("model", model, self.models)
        return self.models.index(model)

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the index."""
        return self.scan().collect_schema().names()

    @cached_property
    def units(self) -> dict[str, str]:
        """What the margins of each measure are in: nats, bits, or nothing that has a name."""
        logs = ("lp", "shared_lp")
        given = {measure: "nats" if measure in logs else "" for measure in self.measures}
        return {name: "bits" if name == "surprisal_bits" else unit for name, unit in given.items()}

    def has(self, table: str) -> bool:
        """Whether a run of this collection has a table."""
        return any(source.run.file(table).exists() for source in self.sources)


@contextmanager
def open_collections(
    paths: Sequence[Path], *, check: bool = True
) -> Iterator[tuple[Collection | TextCollection, ...]]:
    """Open folders of runs, of several runs, or of studies; their tables stay on the disk.

    check: refuse a run that is unfinished or was changed since.

    Raises BadInput if a folder contains no run, or one that is refused.
    """
    groups: dict[tuple[str, str], list[Source]] = {}
    studies: dict[tuple[str, str], Path] = {}
    texts: dict[tuple[str, str], TextCollection] = {}
    for path in _without_repeats(paths):
        if is_study(path) and has_texts(StudyFolder(path, read_record(path, check=check))):
            read = open_texts(StudyFolder.open(path, check=check))
            texts[read.dataset, str(path.resolve())] = read
            continue
        for source, key in _read_sources(path, check=check):
            groups.setdefault(key, []).append(source)
            if source.home.path != source.run.path:
                studies[key] = source.home.path
    if not groups and not texts:
        raise BadInput("No run folder is given; make one with `felicity run starter`.")
    with tempfile.TemporaryDirectory(prefix="felicity-explore-") as place:
        names = _name_groups([*groups, *texts])
        found = (
            _collect(names[key], _name_models(group), Path(place) / f"{number}.parquet", studies.get(key))
            for number, (key, group) in enumerate(groups.items())
        )
        judged = [one for one in found if one is not None]
        if not judged and not texts:
            first = next(iter(groups.values()))[0].run.path
            raise BadInput(f"{first} has no judgements; explore a run whose stimuli a rule has judged.")
        yield (*judged, *(replace(one, name=names[key]) for key, one in texts.items()))


def _read_sources(path: Path, *, check: bool) -> Iterator[tuple[Source, tuple[str, str]]]:
    """The runs of a folder, each with what identifies its stimuli: the dataset and a digest.

    A folder is that of a run, of several, or of a study; the models of a context study share its stimuli.
    """
    shared = is_study(path) and RunFolder(path).file("items").exists()
    if shared and (path / MODELS).is_dir():
        for folder in (path / MODELS).iterdir():
            RunFolder(folder).refuse_links()
    folders = list_runs(path)
    if is_study(path):
        if folders == [path]:
            raise BadInput(f"The study in {path} has no finished run; run it again.")
        if check:
            check_record(path)
        folders = _leave_out_words(path, folders)
    if folders == [path] and not (path / "manifest.json").exists():
        _refuse_other(path)
    for folder in folders:
        run = RunFolder(folder)
        manifest = _read_manifest(run, check=check)
        about = manifest["dataset"]
        home = RunFolder(path) if shared else run
        stimuli = f"{about.get('digest')} {manifest.get('options', {}).get('rule')}"
        source = Source(model=_model_name(manifest), run=run, home=home, manifest=manifest)
        yield source, (str(about.get("name")), str(path.resolve()) if shared else stimuli)


def _leave_out_words(path: Path, folders: list[Path]) -> list[Path]:
    """Without the runs on words of a benchmark's reading times, which are regressed on, not judged."""
    tasks = read_record(path, check=False).get("facts", {}).get("tasks", [])
    words = tuple(one["dataset"] for one in tasks if one.get("score") in WORD_SCORES)
    kept = [folder for folder in folders if not (words and folder.name.startswith(words))]
    if folders and not kept:
        raise BadInput(f"{path} has reading times alone, which have no items to judge; open its report.")
    return kept


def _refuse_other(path: Path) -> None:
    """Refuse a folder of another kind, or a file, naming what to do with it.

    Raises BadInput.
    """
    if path.is_file():
        raise BadInput(
            f"{path} is a file; explore the folder of a run, such as that of `felicity run {path} -o FOLDER`."
            if path.suffix.lower() in TABLES
            else f"{path} is a file; give the folder of a run or of a study."
        )
    for name, told in OTHERS.items():
        if (path / name).is_file():
            raise BadInput(f"{path} {told.format(path=path)}.")
    models = ("config.json", "trained.json")
    if path.is_dir() and any((one / name).is_file() for one in path.iterdir() for name in models):
        raise BadInput(f"{path} {CHECKPOINTS.format(path=path)}.")
    if path.is_dir():
        raise BadInput(f"{path} holds no run; give the folder of a run, of several runs, or of a study.")


def _read_manifest(run: RunFolder, *, check: bool) -> dict[str, Any]:
    manifest = run.read_manifest()
    if check:
        run.refuse_altered(manifest)
    for name in ("judgements", "tokens", "scores"):
        if not run.file(name).exists():
            raise BadInput(f"{run.path} has no {run.file(name).name}; finish the run first.")
    return manifest


def _model_name(manifest: dict[str, Any]) -> str:
    return str(manifest["model"].get("name") or "model")


def _name_models(group: Sequence[Source]) -> tuple[Source, ...]:
    """Runs of one model are told apart by their folders."""
    names = [source.model for source in group]
    if len(set(names)) < len(names):
        names = [f"{source.model} ({source.run.path})" for source in group]
    return tuple(replace(source, model=name) for source, name in zip(group, names, strict=True))


def _name_groups(keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    datasets = [Path(dataset).name for dataset, _ in keys]
    return {
        key: name if datasets.count(name) == 1 else f"{name}-{1 + datasets[:place].count(name)}"
        for place, (key, name) in enumerate(zip(keys, datasets, strict=True))
    }


def _collect(name: str, sources: tuple[Source, ...], path: Path, study: Path | None) -> Collection | None:
    """Runs of the same stimuli; None if nothing was judged, as the words of a reading task are not."""
    build_index(sources, path)
    judged = pl.scan_parquet(path).select(pl.col("measure").unique(maintain_order=True)).collect()
    known = judged["measure"].to_list()
    if not known:
        return None
    asked = [measure for measure in sources[0].manifest.get("measures", []) if measure in known]
    tables = [
        table for table in ("correlations", "fillers", "regions") if sources[0].run.file(table).exists()
    ]
    return Collection(
        name=name,
        dataset=Path(str(sources[0].manifest["dataset"].get("name"))).name,
        sources=sources,
        index=path,
        headline=find_headline(sources[0].manifest, tables),
        measures=(*asked, *(measure for measure in known if measure not in asked)),
        study=study,
    )


def read_study_estimates(study: Path) -> tuple[pl.DataFrame, str]:
    """Accuracy by kind and length of context, as the study wrote it, and what the lengths are counted in.

    Raises BadInput if the study is not finished.
    """
    folder = StudyFolder.open(study, check=False)
    return folder.read_tables()["estimates"], str(folder.facts["design"]["unit"])


def _without_repeats(paths: Sequence[Path]) -> list[Path]:
    seen: dict[Path, Path] = {}
    for path in paths:
        seen.setdefault(path.resolve(), path)
    return list(seen.values())
