"""The run folder: its tables and manifest on disk, and their export to CSV or JSON lines."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.digests import DIGESTS, OF_RECORD, add_digests, find_changed, is_intact
from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.core.files import (
    clear_leftovers,
    disk_errors,
    escape_formulas,
    read_text,
    refuse_inflated,
    refuse_name,
    replacing,
    write_frame,
)
from felicity.core.schemas import (
    AUDIT,
    BASELINES,
    BOUNDED_TOKENS,
    CLOZE,
    CONTEXTS,
    CORRELATIONS,
    ESTIMATES,
    ITEMS,
    JUDGEMENTS,
    PRIORS,
    REGIONS,
    REQUESTS,
    SCORES,
    TOKENS,
    Schema,
    check_schema,
    conform,
    sign_counts,
)
from felicity.run.manifest import now

MANIFEST = "manifest.json"
# The record of a study, whose models each have a run below it and share some of its tables.
RECORD = "study.json"
SHARED = ("items", "contexts", "requests")
PART_ROWS = 20_000
TABLES: dict[str, Schema] = {
    "items": ITEMS,
    "contexts": CONTEXTS,
    "requests": REQUESTS,
    "tokens": TOKENS,
    "scores": SCORES,
    "judgements": JUDGEMENTS,
}
SHEETS: dict[str, Schema] = {"estimates": ESTIMATES, "audit": AUDIT}
# Tables that only some rules make.
EXTRA_SHEETS: dict[str, Schema] = {"correlations": CORRELATIONS, "baselines": BASELINES}
EXTRAS: dict[str, Schema] = {
    "predictions": JUDGEMENTS,
    "regions": REGIONS,
    "fillers": CLOZE,
    "priors": PRIORS,
} | EXTRA_SHEETS
FORMATS = ("csv", "jsonl")
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")

ALL_TABLES = (*TABLES, *SHEETS, *EXTRAS)


@dataclass(frozen=True)
class RunFolder:
    """A folder with one run."""

    path: Path

    def prepare(self) -> None:
        """Create the folder.

        Raises FelicityError.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FelicityError(f"{self.path} is a file; give a folder for the run with -o.")
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self.refuse_links()
        clear_leftovers(self.path)

    def refuse_links(self) -> None:
        """Refuse an entry that links out of the folder: nothing outside is read or written as the run's.

        The run of a model within a study may not be such a link itself.

        Raises BadInput.
        """
        home, study = self.path.resolve(), find_study(self.path.absolute())
        if study is None and self.path.is_symlink() and self.path.parent.name == "models":
            study = self.path.absolute().parent.parent
        if study and not home.is_relative_to(study.resolve()):
            raise BadInput(f"{self.path} is a link out of the study folder; put the run itself there.")
        for entry in self.path.iterdir():
            if entry.is_symlink() and not entry.resolve().is_relative_to(home):
                raise BadInput(f"{entry} is a link out of the run folder; put the file itself there.")

    def file(self, name: str) -> Path:
        """The path of a table: Parquet, or CSV for tables that people read."""
        return self.path / (f"{name}.csv" if name in SHEETS | EXTRA_SHEETS else f"{name}.parquet")

    def locate(self, name: str) -> Path:
        """The path to read a table from: a study keeps what all its models share once, above their runs."""
        own = self.file(name)
        study = find_study(self.path.resolve()) if name in SHARED and not own.exists() else None
        return study / own.name if study else own

    def write(self, name: str, frame: pl.DataFrame) -> None:
        """Write one table, atomically."""
        with replacing(self.file(name)) as part:
            if name in SHEETS | EXTRA_SHEETS:
                frame.write_csv(part)
            else:
                sign_counts(frame).write_parquet(part, compression="zstd")

    def write_parts(self, name: str, schema: Schema, frames: Iterable[pl.DataFrame]) -> None:
        """Write one Parquet table from parts, in bounded memory."""
        import pyarrow.parquet as pq

        with replacing(self.file(name)) as part:
            form = pl.DataFrame(schema=schema).to_arrow().schema
            # pyarrow would read a relative path such as "openai:x" as the address of another file system.
            with pq.ParquetWriter(part.absolute(), form, compression="zstd") as writer:
                for frame in frames:
                    writer.write_table(conform(frame, schema).to_arrow().cast(form))

    def read(self, name: str) -> pl.DataFrame:
        """Read one table back.

        Raises BadInput if it is missing, cut off, or lacks a column.
        """
        path = self.locate(name)
        frame = self.read_file(path, (SHEETS | EXTRA_SHEETS).get(name))
        return check_schema(frame, (TABLES | SHEETS | EXTRAS)[name], str(path))

    def read_parts(self, name: str) -> Iterator[pl.DataFrame]:
        """Read one Parquet table in parts of some thousands of rows."""
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(self.file(name).absolute()).iter_batches(batch_size=PART_ROWS):
            frame = pl.DataFrame(pl.from_arrow(batch))
            bounded = name == "tokens" and "boundary" in frame.columns
            yield conform(frame, BOUNDED_TOKENS if bounded else TABLES[name])

    def read_file(self, path: Path, sheet: Schema | None = None) -> pl.DataFrame:
        """Read a file of this folder, as CSV if a `sheet` schema is given.

        Raises BadInput if it is missing or cut off.
        """
        if not path.exists():
            raise BadInput(f"{self.path} has no {path.name}; run `felicity run` with -o {self.path}.")
        try:
            # The folder's name may look like an address or a pattern; it is neither.
            whole = path.absolute()
            if sheet is None:
                refuse_inflated(whole, whole.stat().st_size, path)
                return sign_counts(pl.read_parquet(whole, glob=False))
            read = pl.read_csv(whole, schema_overrides=sheet, infer_schema_length=None, glob=False)
            # An editor may have added an empty line.
            return read.filter(~pl.all_horizontal(pl.all().is_null()))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise BadInput(
                f"{path} is damaged or truncated; run `felicity run` with -o {self.path} again."
            ) from error

    def clear(self) -> None:
        """Remove the tables, manifest and pages of the run that is here; other files stay."""
        for pattern in ("*.parquet", "*.csv", "manifest.json", "report.html", "explore.html"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest."""
        with replacing(self.path / MANIFEST) as part:
            text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
            # A name that is not valid Unicode becomes JSON's own escape.
            part.write_text(text, encoding="utf-8", errors="backslashreplace")

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest of a finished run, with the digests of its tables and of itself."""
        whole = {**manifest, "finished": now()}
        self.write_manifest(add_digests(whole, self.path, self._list_files(manifest)))

    def _list_files(self, manifest: dict[str, Any]) -> list[str]:
        """The files of a run's tables, those included that were asked of the model."""
        asked = [f"{name}.parquet" for name in manifest.get("asked", ())]
        return [*(self.file(name).name for name in ALL_TABLES), *asked]

    def refuse_changed_manifest(self, manifest: dict[str, Any]) -> None:
        """Refuse to resume a run whose manifest is not the one it finished with.

        Raises BadInput.
        """
        if (manifest.get("finished") or DIGESTS in manifest) and not is_intact(manifest):
            raise BadInput(
                f"{self.path / MANIFEST} was changed since the run finished; remove it and run again."
            )

    def refuse_altered(self, manifest: dict[str, Any]) -> None:
        """Refuse a run that is not finished, or whose tables are not those it finished with.

        Raises BadInput naming the file.
        """
        self.refuse_links()
        again = f"run it again with the same -o, or {READ_IT}"
        if not manifest.get("finished"):
            raise BadInput(f"The run in {self.path} was not finished; {again}.")
        if not is_intact(manifest):
            raise BadInput(f"{self.path / MANIFEST} was changed since the run finished; {again}.")
        changed = find_changed(manifest, self.path, self._list_files(manifest))
        if changed:
            raise BadInput(f"{self.path / changed[0]} {changed[1]} since the run finished; {again}.")
        above = [self.locate(name) for name in SHARED if self.locate(name) != self.file(name)]
        if above:
            check_record(above[0].parent, [path.name for path in above])

    def read_manifest(self) -> dict[str, Any]:
        """The manifest of the run in this folder.

        Raises BadInput if the folder contains no run.
        """
        refuse_name(self.path)
        if not self.path.is_dir():
            raise BadInput(
                f"There is no run folder {self.path}; make one with `felicity run DATASET -o {self.path}`."
            )
        path = self.path / MANIFEST
        if not path.exists():
            raise BadInput(f"{self.path} is not a run folder: it has no {MANIFEST}.")
        try:
            manifest: dict[str, Any] = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path} is not JSON; remove it and run again.") from error
        _check_manifest(manifest, path)
        return manifest

    def has_manifest(self) -> bool:
        """Whether a run was started here."""
        return (self.path / MANIFEST).exists()


def find_study(run: Path) -> Path | None:
    """The folder of the study that a run belongs to: two levels up, or three if a model has several."""
    return next((path for path in run.parents[1:3] if (path / RECORD).is_file()), None)


READ_IT = "read it as it is with `felicity export --force` (check=False in Python)"
READ_ANYWAY = f"run the study again with the same -o, or {READ_IT}"


def read_record(folder: Path, *, check: bool = True) -> dict[str, Any]:
    """The record of the study in a folder.

    check: refuse one that has changed since it was written; one that is not JSON is always refused.

    Raises BadInput if there is none, or one that is refused.
    """
    path = folder / RECORD
    if not path.is_file():
        raise BadInput(f"{folder} is not a study folder: it has no {RECORD}; give the folder of a study.")
    try:
        record = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON; remove it and run the study again.") from error
    if not isinstance(record, dict):
        raise BadInput(f"{path} is not the record of a study; remove it and run the study again.")
    if check and not is_intact(record, key=OF_RECORD):
        raise BadInput(f"{path} was changed since felicity wrote it; remove it and run the study again.")
    return record


def write_record(folder: Path, record: Mapping[str, Any], names: Iterable[str] = ()) -> None:
    """Write the record of a study, with the digests of its files and of itself."""
    text = json.dumps(add_digests(record, folder, names, key=OF_RECORD), indent=2, ensure_ascii=False) + "\n"
    with replacing(folder / RECORD) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


def check_record(
    folder: Path, names: Iterable[str] | None = None, *, advice: str = READ_ANYWAY
) -> dict[str, Any]:
    """The record of a study whose files, or those named, are as they were written.

    advice: what the user can do instead.

    Raises BadInput naming the file that is not.
    """
    record = read_record(folder)
    changed = find_changed(record, folder, record.get(DIGESTS, ()) if names is None else names)
    if changed:
        raise BadInput(f"{folder / changed[0]} {changed[1]} since the study wrote it; {advice}.")
    return record


# The fields of a manifest that later steps read, and their types.
FIELDS: dict[str, type] = {"model": dict, "dataset": dict, "options": dict, "measures": list}


def _check_manifest(manifest: Any, path: Path) -> None:
    if not isinstance(manifest, dict) or "model" not in manifest or "dataset" not in manifest:
        raise BadInput(f"{path} is not the manifest of a felicity run.")
    for name, kind in FIELDS.items():
        if not isinstance(manifest.get(name, kind()), kind):
            raise BadInput(f"{path} is damaged: '{name}' is not what it should be; remove it and run again.")
    if not all(isinstance(name, str) for name in manifest.get("measures", [])):
        raise BadInput(f"{path} is damaged: 'measures' does not list names; remove it and run again.")


def export_tables(
    tables: Mapping[str, pl.DataFrame], target: Path, *, to: str, safe: bool = False
) -> list[Path]:
    """Write tables into `target`; returns their paths.

    safe: CSV cells that a spreadsheet would take for a formula get an apostrophe in front.

    Raises UnknownName for another format.
    """
    if to not in FORMATS:
        raise UnknownName("format", to, FORMATS)
    written = []
    for name, frame in tables.items():
        file = target / f"{name}.{to}"
        write_table(escape_formulas(_with_json(frame)) if safe and to == "csv" else frame, file)
        written.append(file)
    return written


def check_ending(path: Path) -> None:
    """Refuse a file that `write_table` could not write, before anything is computed for it.

    Raises UnknownName.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UnknownName("ending", ending, ENDINGS, where=str(path))


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table in the format that the file's ending names; lists become JSON if it has none.

    Raises UnknownName for another ending.
    """
    check_ending(path)
    frame = sign_counts(frame)
    write_frame(frame if path.suffix.lower() in (".parquet", ".jsonl") else _with_json(frame), path)


def _with_json(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of lists as JSON texts, since CSV has no lists."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    texts = [
        pl.Series(name, [json.dumps(cell, ensure_ascii=False) for cell in frame[name].to_list()], pl.String)
        for name in nested
    ]
    return frame.with_columns(texts)


def flatten_tokens(tokens: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """One row per token, numbered from 1 within its request, with its item, condition and readable text.

    `piece` is what the token covers of the text; `token` is how the tokenizer writes it.
    """
    lists = [name for name, dtype in tokens.schema.items() if isinstance(dtype, pl.List)]
    known = requests.select("request", "item", "condition", "text").unique("request", maintain_order=True)
    numbered = tokens.with_columns(pl.int_ranges(1, pl.col("tokens").list.len() + 1).alias("place"))
    flat = sign_counts(numbered.explode("place", *lists))
    flat = flat.join(known, on="request", how="left", maintain_order="left")
    length = pl.col("end") - pl.col("start")
    piece = pl.col("text").str.slice(pl.col("start"), length).alias("piece")
    return (
        flat.with_columns(piece)
        .rename({"tokens": "token"})
        .select(
            "request",
            "item",
            "condition",
            "place",
            "piece",
            pl.exclude("request", "item", "condition", "place", "piece", "text"),
        )
    )
