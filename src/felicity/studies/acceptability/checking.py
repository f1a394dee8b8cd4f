"""What is to be fixed in a table of ratings before `felicity acceptability` can use it."""

from pathlib import Path

import polars as pl

from felicity.core.documents import is_document
from felicity.core.errors import FelicityError
from felicity.data import EMPTY, PROBLEMS, UNUSABLE, Checked, check_items, read_table
from felicity.studies.acceptability.ratings import read_ratings

# With one of these beside text and rating, a table has single ratings, or ratings in several settings.
SINGLE = ("rater", "ratings", "condition")


def has_single_ratings(path: Path) -> bool:
    """Whether a file is a table of ratings for `felicity acceptability`, not for `felicity run`."""
    if is_document(path) or not path.is_file():
        return False
    columns = read_table(path).columns
    return {"text", "rating"} <= set(columns) and any(name in columns for name in SINGLE)


def check_ratings(path: Path) -> Checked:
    """Every empty cell, stray spaces in sentences, and what the reader of the study refuses."""
    table = read_table(path)
    needed = [name for name in ("text", "rating", "rater") if name in table.columns]
    empty = [
        (line, EMPTY, name, "")
        for row, line in zip(table.rows, table.lines, strict=True)
        for name in needed
        if not str(row.get(name) or "").strip() and str(row.get("role") or "target") == "target"
    ]
    found = pl.DataFrame(empty, schema=PROBLEMS, orient="row")
    firsts: dict[str, int] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        if str(row.get("text") or "").strip():
            firsts.setdefault(str(row["text"]), line)
    texts = pl.DataFrame(
        {"line": list(firsts.values()), "text": list(firsts), "item": list(firsts)},
        schema={"line": pl.UInt32, "text": pl.String, "item": pl.String},
    )
    stray = check_items(texts.with_columns(pl.lit("text").alias("condition")))
    sentences = len(firsts)
    if found.is_empty():
        try:
            sentences = len(read_ratings(str(path)).sentences)
        except FelicityError as error:
            found = pl.DataFrame([(None, UNUSABLE, "", str(error))], schema=PROBLEMS, orient="row")
    problems = pl.concat([found, stray]).sort("line", maintain_order=True, nulls_last=True)
    return Checked(items=sentences, stimuli=len(table.rows), problems=problems)
