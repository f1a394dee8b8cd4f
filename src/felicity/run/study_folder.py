"""Study folders: the record and tables of a study, the names of its models, and their runs below it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.policy import describe_policies
from felicity.run.folder import (
    MANIFEST,
    RECORD,
    RunFolder,
    check_record,
    read_record,
)
from felicity.run.manifest import command_line, installed, now

# Where a study keeps the runs of its models; `felicity run` with several models keeps them side by side.
PLACES = ("models", "models/*", "runs", ".")


# The types of the columns of a study's CSV tables, as its record names them.
TYPES: dict[str, pl.DataType] = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "boolean": pl.Boolean(),
}
LISTS = "list of "


@dataclass(frozen=True)
class StudyFolder:
    """The folder of a study on disk: its record, its tables, and the runs of its models below it."""

    path: Path
    record: dict[str, Any]

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> "StudyFolder":
        """The folder of a finished study.

        check: refuse one whose files have changed since.

        Raises BadInput if there is none.
        """
        if not is_study(path) and (path / MANIFEST).exists():
            raise BadInput(f"{path} is not a study folder: it has no {RECORD}; read it with read_run.")
        record = check_record(path) if check else read_record(path, check=False)
        if "tables" not in record:
            raise BadInput(
                f"The study in {path} is not finished; run `felicity {record.get('study')}` with -o {path} "
                "again."
            )
        return cls(path, record)

    @property
    def kind(self) -> str:
        """The command that made it."""
        return str(self.record.get("study"))

    @property
    def models(self) -> list[str]:
        """The names of its models."""
        return list(self.record["models"])

    @property
    def facts(self) -> dict[str, Any]:
        """What the plan noted."""
        return dict(self.record["facts"])

    @property
    def runs(self) -> dict[str, Path]:
        """The folders of its runs, by their path below `models`."""
        return find_runs(self.path)

    def run(self, model: str, part: str = "") -> RunFolder:
        """The folder of a model's run; `part` distinguishes several."""
        return RunFolder(self.path / "models" / name_folder(model) / name_folder(part))

    def read(self, name: str) -> pl.DataFrame:
        """A table that the plan kept."""
        return RunFolder(self.path).read_file(self.path / f"{name}.parquet")

    def read_tables(self) -> dict[str, pl.DataFrame]:
        """The tables of the analysis, with the types they were written with."""
        return {name: self._read_table(name, types) for name, types in self.record["tables"].items()}

    def _read_table(self, name: str, types: Mapping[str, str]) -> pl.DataFrame:
        schema = {column: TYPES.get(kind, pl.String()) for column, kind in types.items()}
        table = RunFolder(self.path).read_file(self.path / f"{name}.csv", schema)
        lists = [
            pl.col(column).str.json_decode(pl.List(TYPES[kind.removeprefix(LISTS)]))
            for column, kind in types.items()
            if kind.startswith(LISTS)
        ]
        return table.with_columns(lists)

    @staticmethod
    def describe_types(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, str]]:
        """The types of the columns of tables, for the record."""
        return {
            name: {column: _name_type(dtype) for column, dtype in table.schema.items()}
            for name, table in tables.items()
        }


def _name_type(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.List):
        return LISTS + _name_type(dtype.inner)  # type: ignore[arg-type]
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "number"
    return "boolean" if dtype == pl.Boolean else "text"


def describe_study(kind: str) -> dict[str, Any]:
    """The part of a record that every study has: its kind, the version, the time and the command."""
    return {"study": kind, "felicity": installed("felicity"), "created": now(), "command": command_line()}


def is_study(path: Path) -> bool:
    """Whether a folder is that of a study."""
    return (path / RECORD).is_file()


def refuse_namesakes(names: Sequence[str]) -> None:
    """Refuse two models of the same name, which would share a folder.

    Raises BadInput.

    >>> refuse_namesakes(["gpt2", "smollm2"])
    """
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"Two models are called '{name}'; give each once, or rename a folder.")


def default_folder(source: str | Path, what: str) -> Path:
    """Where results are kept if no folder is named: in `runs`, by what was read and the model or command.

    >>> default_folder("starter", "org/model"), default_folder("data/pairs.csv", "bias")
    (PosixPath('runs/starter-org--model'), PosixPath('runs/pairs-bias'))
    """
    return Path("runs") / f"{Path(source).resolve().name.split('.')[0]}-{name_folder(what)}"


def name_folder(model: str) -> str:
    """The name of a model's folder: its whole name.

    >>> name_folder("org/model"), name_folder("bert word_l2r")
    ('org--model', 'bert-word_l2r')
    """
    return re.sub(r"[^\w.+-]+", "-", model.replace("/", "--")).strip("-")


def list_runs(path: Path) -> list[Path]:
    """The run in a folder, or the runs of a study or of several models below it.

    >>> list_runs(Path("no such folder"))
    [PosixPath('no such folder')]
    """
    if (path / MANIFEST).exists():
        return [path]
    below = [found.parent for place in PLACES for found in sorted(path.glob(f"{place}/*/{MANIFEST}"))]
    return below or [path]


def find_runs(path: Path) -> dict[str, Path]:
    """The runs of `list_runs` by name: a model's, or of a model with several runs, MODEL/PART."""
    runs = list_runs(path)
    names = [run.relative_to(path).parts if run.is_relative_to(path) else (run.name,) for run in runs]
    return {
        "/".join(parts[1:] if len(parts) > 1 else parts) or run.name: run
        for parts, run in zip(names, runs, strict=True)
    }


def read_policies(folder: Path) -> str:
    """How the models of a study were scored, in words; empty if none was."""
    runs = [RunFolder(path) for path in list_runs(folder)]
    manifests = [run.read_manifest() for run in runs if run.has_manifest()]
    models = {str(manifest["model"].get("name")): manifest["model"] for manifest in manifests}
    return describe_policies(models) if models else ""
