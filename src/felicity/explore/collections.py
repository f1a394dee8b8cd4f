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
PAGE = "report.html"


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
            found = open_texts(StudyFolder.open(path, check=check))
            texts[found.dataset, str(path.resolve())] = found
            continue
        for source, key in _read_sources(path, check=check):
            groups.setdefault(key, []).append(source)
            if source.home.path != source.run.path:
                studies[key] = source.home.path
    if not groups and not texts:
        raise BadInput("No run folder is given; make one with `felicity run starter`.")
    with tempfile.TemporaryDirectory(prefix="felicity-explore-") as place:
        names = _name_groups([*groups, *texts])
        judged = (
            _collect(names[key], _name_models(group), Path(place) / f"{number}.parquet", studies.get(key))
            for number, (key, group) in enumerate(groups.items())
        )
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
    if folders == [path] and not (path / "manifest.json").exists() and (path / PAGE).exists():
        raise BadInput(f"{path} holds a report but no run to explore; open {path / PAGE} in a browser.")
    for folder in folders:
        run = RunFolder(folder)
        manifest = _read_manifest(run, check=check)
        about = manifest["dataset"]
        home = RunFolder(path) if shared else run
        stimuli = f"{about.get('digest')} {manifest.get('options', {}).get('rule')}"
        source = Source(model=_model_name(manifest), run=run, home=home, manifest=manifest)
        yield source, (str(about.get("name")), str(path.resolve()) if shared else stimuli)


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


def _collect(name: str, sources: tuple[Source, ...], path: Path, study: Path | None) -> Collection:
    build_index(sources, path)
    judged = pl.scan_parquet(path).select(pl.col("measure").unique(maintain_order=True)).collect()
    known = judged["measure"].to_list()
    if not known:
        raise BadInput(
            f"{sources[0].run.path} has no judgements; explore a run whose stimuli a rule has judged."
        )
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
