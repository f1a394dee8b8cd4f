"""What the score cache holds: one file per model and way of scoring, listed and cleared."""

import json
import sqlite3
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import cache_folder, disk_errors

CACHED = {
    "key": pl.String(),
    "model": pl.String(),
    "family": pl.String(),
    "dtype": pl.String(),
    "texts": pl.Int64(),
    "frames": pl.Int64(),
    "megabytes": pl.Float64(),
    "path": pl.String(),
}
MEGABYTE = 1_000_000


def list_cache(model: str | None = None) -> pl.DataFrame:
    """One row per cached engine: its model, how many texts are scored and frames filled, its size.

    A file that cannot be read is listed as damaged.
    """
    rows = [_describe(path) for path in sorted((cache_folder() / "scores").glob("*.sqlite"))]
    table = pl.DataFrame(rows, schema=CACHED, orient="row")
    return table if model is None else table.filter(pl.col("model") == model)


def clear_cache(model: str | None = None) -> pl.DataFrame:
    """Remove the cached scores of one model, or of all; returns what was removed.

    Raises BadInput if nothing of that model is cached, FelicityError if a file cannot be removed.
    """
    table = list_cache(model)
    if model is not None and table.is_empty():
        models = ", ".join(list_cache()["model"].unique().sort()) or "none"
        raise BadInput(f"No scores of '{model}' are cached; there are scores of: {models}.")
    for path in table["path"]:
        with disk_errors(Path(path)):
            Path(path).unlink(missing_ok=True)
    return table


def _describe(path: Path) -> tuple[object, ...]:
    size = path.stat().st_size / MEGABYTE
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            info = json.loads(database.execute("SELECT info FROM engine").fetchone()[0])
            texts = database.execute("SELECT COUNT(*) FROM score").fetchone()[0]
            frames = database.execute("SELECT COUNT(*) FROM filler").fetchone()[0]
        named = tuple(str(info.get(field, "")) for field in ("name", "family", "dtype"))
        return (path.stem, *named, texts, frames, size, str(path))
    except (sqlite3.Error, ValueError, TypeError, AttributeError):
        return (path.stem, "damaged", "", "", 0, 0, size, str(path))
