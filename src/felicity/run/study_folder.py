"""Study folders: the tables of a study, and the runs of its models below it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text, replacing
from felicity.run.evaluate import Run, read_run
from felicity.run.folder import MANIFEST, RECORD, RunFolder
from felicity.run.manifest import command_line, installed, now

# Where a study keeps the runs of its models; `felicity run` with several models keeps them side by side.
PLACES = ("models", "runs", ".")
CONTEXT = "context"


@dataclass(frozen=True)
class Study:
    """The folder of a study: its record, its tables by name, and the folders of its runs by name.

    kind: the command that made it: context, cloze or bias.
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


def write_study(folder: Path, kind: str, **told: Any) -> None:
    """Write the record of a study, by which its folder is recognized later."""
    record = {"study": kind, "felicity": installed("felicity"), "created": now(), "command": command_line()}
    with replacing(folder / RECORD) as part:
        part.write_text(json.dumps(record | told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def is_study(path: Path) -> bool:
    """Whether a folder is that of a study."""
    return (path / RECORD).is_file()


def read_study(path: str | Path) -> Study:
    """The study in a folder: `felicity context`, `cloze` or `bias`.

    Raises BadInput if the folder is not that of a study, or its record is damaged.
    """
    folder = Path(path)
    if not is_study(folder):
        hint = "read it with read_run" if (folder / MANIFEST).exists() else "give the folder of a study"
        raise BadInput(f"{folder} is not a study folder: it has no {RECORD}; {hint}.")
    try:
        record = dict(json.loads(read_text(folder / RECORD)))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{folder / RECORD} is not JSON; run the study again.") from error
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
