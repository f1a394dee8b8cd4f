"""Study folders: the record and tables of a study, the names of its models, and their runs below it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.policy import describe_policies
from felicity.run.evaluate import Run, read_run
from felicity.run.folder import (
    MANIFEST,
    RECORD,
    RunFolder,
    check_record,
    read_record,
    write_record,
    write_table,
)
from felicity.run.manifest import command_line, installed, now
from felicity.run.model import Model

# Where a study keeps the runs of its models; `felicity run` with several models keeps them side by side.
PLACES = ("models", "runs", ".")
CONTEXT = "context"


@dataclass(frozen=True)
class Study:
    """The folder of a study: its record, its tables by name, and the folders of its runs by name.

    kind: the command that made it, such as context or cloze.
    """

    kind: str
    folder: Path
    record: dict[str, Any]
    tables: dict[str, pl.DataFrame]
    runs: dict[str, Path]

    def __repr__(self) -> str:
        return f"Study({self.kind} in {self.folder}: {len(self.runs)} runs; {', '.join(self.tables)})"

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by name, as its file is called."""
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return self.tables[name]

    def run(self, name: str) -> Run:
        """The run of one model."""
        if name not in self.runs:
            raise UnknownName("run", name, self.runs)
        return read_run(self.runs[name])


def describe_study(kind: str) -> dict[str, Any]:
    """The part of a record that every study has: its kind, the version, the time and the command."""
    return {"study": kind, "felicity": installed("felicity"), "created": now(), "command": command_line()}


def write_study(folder: Path, kind: str, *, files: Iterable[str] = (), **told: Any) -> None:
    """Write the record of a study, by which its folder is recognized later.

    files: its files, whose digests are kept.
    """
    write_record(folder, describe_study(kind) | told, files)


def is_study(path: Path) -> bool:
    """Whether a folder is that of a study."""
    return (path / RECORD).is_file()


def write_sheets(folder: Path, tables: Mapping[str, pl.DataFrame]) -> list[Path]:
    """Write the tables of a study as CSV files, each under its name; returns their paths."""
    paths = {folder / f"{name}.csv": table for name, table in tables.items()}
    for path, table in paths.items():
        write_table(table, path)
    return list(paths)


def name_models(
    models: Sequence[Callable[[], Model]], *, short: bool = False
) -> dict[str, Callable[[], Model]]:
    """A study's models by name; each is opened for its name alone, before the first is scored.

    short: by the last part of the name.

    Raises BadInput if two have the same name.
    """
    opened = [open_one() for open_one in models]
    names = [shorten_name(lm.info.name) if short else lm.info.name for lm in opened]
    refuse_namesakes(names)
    # A single model is opened once; of several, no more than one is in memory at a time.
    kept = [partial(_give, opened[0])] if len(opened) == 1 else models
    return dict(zip(names, kept, strict=True))


def _give(lm: Model) -> Model:
    return lm


def refuse_namesakes(names: Sequence[str]) -> None:
    """Refuse two models of the same name, which would share a folder.

    Raises BadInput.

    >>> refuse_namesakes(["gpt2", "smollm2"])
    """
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"Two models are called '{name}'; give each once, or rename a folder.")


def name_folder(model: str) -> str:
    """The name of a model's folder: its whole name.

    >>> name_folder("org/model")
    'org--model'
    """
    return model.replace("/", "--")


def shorten_name(model: str) -> str:
    """The last part of a model's name, in characters that a file name may have.

    >>> shorten_name("org/my model")
    'my-model'
    """
    return re.sub(r"[^\w.-]+", "-", Path(model).name).strip("-") or "model"


def read_study(path: str | Path, *, check: bool = True) -> Study:
    """The study in a folder: its record, its tables and where its runs are.

    check: refuse a study whose files have changed since it wrote them.

    Raises BadInput if the folder is not that of a study, or one that is refused.
    """
    folder = Path(path)
    if not is_study(folder) and (folder / MANIFEST).exists():
        raise BadInput(f"{folder} is not a study folder: it has no {RECORD}; read it with read_run.")
    record = check_record(folder) if check else read_record(folder, check=False)
    tables = {
        path.stem: RunFolder(folder).read_file(path, {} if path.suffix == ".csv" else None)
        for path in (*sorted(folder.glob("*.csv")), *sorted(folder.glob("*.parquet")))
    }
    runs = {path.name: path for path in list_runs(folder)}
    return Study(str(record.get("study", CONTEXT)), folder, record, tables, runs)


def list_runs(path: Path) -> list[Path]:
    """The run in a folder, or the runs of a study or of several models below it.

    >>> list_runs(Path("no such folder"))
    [PosixPath('no such folder')]
    """
    if (path / MANIFEST).exists():
        return [path]
    below = [found.parent for place in PLACES for found in sorted((path / place).glob(f"*/{MANIFEST}"))]
    return below or [path]


def read_policies(folder: Path) -> str:
    """How the models of a study were scored, in words; empty if none was."""
    runs = [RunFolder(path) for path in list_runs(folder)]
    manifests = [run.read_manifest() for run in runs if run.has_manifest()]
    models = {str(manifest["model"].get("name")): manifest["model"] for manifest in manifests}
    return describe_policies(models) if models else ""
