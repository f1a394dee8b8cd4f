"""A run's tables for other programs: plain CSV or JSON lines, one row a token where tokens are lists."""

import json
from pathlib import Path

import polars as pl

from felicity.core.errors import UnknownName
from felicity.core.files import replacing
from felicity.run.folder import EXTRAS, SHEETS, TABLES, RunFolder

FORMATS = ("csv", "jsonl")


def export_run(path: Path, target: Path, *, to: str) -> list[Path]:
    """Write every table of a run into `target`; tokens become one row a token.

    Raises UnknownName for another format, BadInput where a table is missing or damaged.
    """
    if to not in FORMATS:
        raise UnknownName("format", to, FORMATS)
    folder = RunFolder(path)
    folder.read_manifest()
    present = [name for name in EXTRAS if folder.file(name).exists()]
    tables = {name: folder.read(name) for name in (*TABLES, *SHEETS, *present)}
    written = []
    for name, frame in tables.items():
        file = target / f"{name}.{to}"
        flat = flatten_tokens(frame) if name == "tokens" else frame
        with replacing(file) as part:
            if to == "csv":
                _with_json(flat).write_csv(part)
            else:
                flat.write_ndjson(part)
        written.append(file)
    return written


def _with_json(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of lists as JSON texts, for CSV has no lists."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    texts = [
        pl.Series(name, [json.dumps(cell, ensure_ascii=False) for cell in frame[name].to_list()], pl.String)
        for name in nested
    ]
    return frame.with_columns(texts)


def flatten_tokens(tokens: pl.DataFrame) -> pl.DataFrame:
    """One row a token, numbered from 0 within its request."""
    lists = [name for name, dtype in tokens.schema.items() if isinstance(dtype, pl.List)]
    numbered = tokens.with_columns(pl.int_ranges(pl.col("tokens").list.len()).alias("place"))
    return (
        numbered.explode("place", *lists)
        .rename({"tokens": "token"})
        .select("request", "place", pl.exclude("request", "place"))
    )
