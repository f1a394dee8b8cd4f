"""The run folder: one table per step, each whole or absent, open to R, pandas and DuckDB."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import disk_errors, read_text, replacing
from felicity.core.schemas import (
    AUDIT,
    CLOZE,
    CONTEXTS,
    CORRELATIONS,
    ESTIMATES,
    ITEMS,
    JUDGEMENTS,
    REGIONS,
    REQUESTS,
    SCORES,
    TOKENS,
    Schema,
    check_schema,
    conform,
)

MANIFEST = "manifest.json"
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
EXTRA_SHEETS: dict[str, Schema] = {"correlations": CORRELATIONS}
EXTRAS: dict[str, Schema] = {"predictions": JUDGEMENTS, "regions": REGIONS, "fillers": CLOZE} | EXTRA_SHEETS


@dataclass(frozen=True)
class RunFolder:
    """A place on disk that holds one run."""

    path: Path

    def prepare(self) -> None:
        """Make the folder, or say why that cannot be.

        Raises FelicityError.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FelicityError(f"{self.path} is a file; name a folder for the run with -o.")
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        """Where a table is: Parquet, or CSV for what people read."""
        return self.path / (f"{name}.csv" if name in SHEETS | EXTRA_SHEETS else f"{name}.parquet")

    def write(self, name: str, frame: pl.DataFrame) -> None:
        """Write one table, whole or not at all."""
        with replacing(self.file(name)) as part:
            if name in SHEETS | EXTRA_SHEETS:
                frame.write_csv(part)
            else:
                frame.write_parquet(part, compression="zstd")

    def write_parts(self, name: str, schema: Schema, frames: Iterable[pl.DataFrame]) -> None:
        """Write one Parquet table from parts that come one at a time, in bounded memory."""
        import pyarrow.parquet as pq

        with replacing(self.file(name)) as part:
            form = pl.DataFrame(schema=schema).to_arrow().schema
            with pq.ParquetWriter(part, form, compression="zstd") as writer:
                for frame in frames:
                    writer.write_table(conform(frame, schema).to_arrow().cast(form))

    def read(self, name: str) -> pl.DataFrame:
        """Read one table back.

        Raises BadInput where it is missing, cut off, or lacks a column.
        """
        path = self.file(name)
        frame = self.read_file(path, (SHEETS | EXTRA_SHEETS).get(name))
        return check_schema(frame, (TABLES | SHEETS | EXTRAS)[name], str(path))

    def read_parts(self, name: str) -> Iterator[pl.DataFrame]:
        """Read one Parquet table some thousands of rows at a time."""
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(self.file(name)).iter_batches(batch_size=PART_ROWS):
            yield conform(pl.DataFrame(pl.from_arrow(batch)), TABLES[name])

    def read_file(self, path: Path, sheet: Schema | None = None) -> pl.DataFrame:
        """Read a file of this folder, CSV where a `sheet` schema is given.

        Raises BadInput where it is missing or cut off.
        """
        if not path.exists():
            raise BadInput(f"{self.path} has no {path.name}; `felicity run` with -o {self.path} makes it.")
        try:
            return pl.read_csv(path, schema_overrides=sheet) if sheet else pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise BadInput(
                f"{path} is damaged or cut off; `felicity run` with -o {self.path} makes it again."
            ) from error

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write what was asked."""
        with replacing(self.path / MANIFEST) as part:
            part.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def read_manifest(self) -> dict[str, Any]:
        """What was asked of the run in this folder.

        Raises BadInput where the folder holds no run.
        """
        if not self.path.is_dir():
            raise BadInput(
                f"There is no run folder {self.path}; make one with `felicity run DATASET -o {self.path}`."
            )
        path = self.path / MANIFEST
        if not path.exists():
            raise BadInput(f"{self.path} is not a run folder: it has no {MANIFEST}.")
        try:
            manifest = json.loads(read_text(path))
        except json.JSONDecodeError as error:
            raise BadInput(f"{path} is not JSON; remove it and run again.") from error
        if not isinstance(manifest, dict) or "model" not in manifest or "dataset" not in manifest:
            raise BadInput(f"{path} is not the manifest of a felicity run.")
        return manifest

    def has_manifest(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / MANIFEST).exists()
