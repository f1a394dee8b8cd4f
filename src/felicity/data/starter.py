"""The built-in suite: this project's own pairs, so that the first command needs no data."""

from importlib.resources import as_file, files

import polars as pl

from felicity.data.pairs import Columns, read_pairs
from felicity.data.tables import read_table


def read_starter() -> pl.DataFrame:
    """Items of the built-in suite, one file a phenomenon."""
    with as_file(files("felicity.data") / "starter") as folder:
        parts = [
            read_pairs(read_table(path), Columns()).with_columns(phenomenon=pl.lit(path.stem))
            for path in sorted(folder.glob("*.tsv"))
        ]
    return pl.concat(parts)
