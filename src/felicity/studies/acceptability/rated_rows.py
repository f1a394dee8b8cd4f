"""Rows of ratings as tables, exports and datasets have them, and what their conditions mean.

A condition is a setting if an item has one sentence and its conditions differ in the context. If the
conditions of an item are different sentences (an item x condition design), each sentence is a stimulus of its
own, named ITEM/CONDITION, and its setting follows from whether it has a context.
"""

from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.data import Table

NONE, REAL, RANDOM = "none", "real", "random"
ORDER = (NONE, REAL, RANDOM)
# Conditions that say nothing about a sentence.
PLAIN = ("", "rated", "text")
ROWS: dict[str, Any] = {
    "line": pl.Int64,
    "item": pl.String,
    "suite": pl.String,
    "phenomenon": pl.String,
    "condition": pl.String,
    "text": pl.String,
    "context_text": pl.String,
    "rating": pl.Float64,
    "ratings": pl.List(pl.Float64),
    "rater": pl.String,
    "check": pl.Boolean,
}
# How tables write whether a comprehension question was answered correctly.
PASSED = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def take_items(items: pl.DataFrame) -> pl.DataFrame:
    """The stimuli of a dataset with the rating rule as rows of ROWS."""
    context = pl.col("context_text") if "context_text" in items.columns else pl.lit(None, dtype=pl.String)
    single = pl.col("ratings") if "ratings" in items.columns else pl.lit(None, dtype=pl.String)
    table = items.select(
        "line",
        "item",
        "suite",
        "phenomenon",
        pl.when(~pl.col("condition").is_in(PLAIN)).then("condition").alias("condition"),
        "text",
        context.alias("context_text"),
        "rating",
        single.str.split(",").cast(pl.List(pl.Float64), strict=False).alias("ratings"),
        pl.lit(None, dtype=pl.String).alias("rater"),
        pl.lit(None, dtype=pl.Boolean).alias("check"),
    )
    return table.cast(ROWS)  # type: ignore[arg-type]


def read_rows(table: Table) -> pl.DataFrame:
    """The rows of a table or an export as rows of ROWS.

    Raises BadInput naming the line of a text or rating that is missing.
    """
    path = table.path
    for name in ("text", "rating"):
        if name not in table.columns:
            raise BadInput(f"{path} has no column '{name}'; it has {', '.join(table.columns)}.")
    made = []
    for row, line in zip(table.rows, table.lines, strict=True):
        cells = {name: _text(value) for name, value in row.items()}
        if cells.get("role") not in (None, "target"):
            continue
        rating = parse_number(cells["rating"])
        if cells["text"] is None or rating is None:
            what = "text" if cells["text"] is None else "rating"
            why = "is empty" if cells[what] is None else f"is '{cells[what]}', not a number"
            raise BadInput(f"{path}, line {line}: '{what}' {why}; fill it in, or remove the row.")
        listed = [parse_number(part) for part in (cells.get("ratings") or "").split(",") if part.strip()]
        if any(value is None for value in listed):
            raise BadInput(f"{path}, line {line}: 'ratings' is not a list of numbers such as 4,3,3.")
        passed = cells.get("question_correct")
        if passed is not None and passed.lower() not in PASSED:
            raise BadInput(f"{path}, line {line}: 'question_correct' is '{passed}', not true or false.")
        made.append(
            {
                "line": line,
                "item": cells.get("item") or cells["text"],
                "suite": cells.get("suite") or path.name.split(".")[0],
                "phenomenon": cells.get("phenomenon") or cells.get("suite") or "all",
                "condition": None if cells.get("condition") in PLAIN else cells.get("condition"),
                "text": cells["text"],
                "context_text": cells.get("context"),
                "rating": rating,
                "ratings": listed or None,
                "rater": cells.get("rater"),
                "check": None if passed is None else PASSED[passed.lower()],
            }
        )
    if not made:
        raise BadInput(f"{path} has no ratings of targets.")
    return pl.DataFrame(made, schema=ROWS)


def _text(cell: object) -> str | None:
    if isinstance(cell, list):
        return ",".join(map(str, cell))
    return None if cell is None or not str(cell).strip() else str(cell).strip()


def parse_number(cell: str | None) -> float | None:
    try:
        # Python would take 1_0 for 10.
        value = float((cell or "").replace("_", "?"))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def name_settings(name: str, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Rows of ROWS with the column `setting`; with conditions that are sentences, `item` names the stimulus.

    Gives also which stimulus is which item in which condition (stimulus, item, condition), or None if an item
    has one sentence only.

    Raises BadInput if it is not clear which sentence of an item was rated.
    """
    by_context = pl.when(pl.col("context_text").is_null()).then(pl.lit(NONE)).otherwise(pl.lit(REAL))
    if not _has_stimuli(rows):
        return rows.with_columns(pl.coalesce("condition", by_context).alias("setting")), None
    rows = rows.with_columns(by_context.alias("setting"))
    _refuse_unclear(name, rows)
    first = pl.col("condition").first().over("item", "text")
    several = pl.col("text").n_unique().over("item") > 1
    both = pl.concat_str("item", first, separator="/", ignore_nulls=True)
    stimulus = pl.when(several).then(both).otherwise("item")
    named = rows.with_columns(stimulus.alias("stimulus"), first.alias("condition"))
    stimuli = named.unique("stimulus", keep="first", maintain_order=True)
    units = named.with_columns(pl.col("stimulus").alias("item")).drop("stimulus")
    return units, stimuli.select("stimulus", "item", "condition")


def split_settings(exported: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Exported ratings by setting, with `item` naming the sentence; all together if settings are unclear."""
    context, condition = (pl.when(pl.col(name) != "").then(name) for name in ("context", "condition"))
    plain = pl.col("condition").is_in(PLAIN)
    rows = exported.select(
        "item",
        "text",
        "rating",
        pl.when(~plain).then(condition).alias("condition"),
        context.alias("context_text"),
    )
    try:
        named, _ = name_settings("the study", rows)
    except BadInput:
        cell = pl.concat_str("item", pl.col("condition").fill_null(""), separator="/").alias("item")
        return {"all": exported.select(cell, "rating")}
    return {str(name): part for (name,), part in named.group_by("setting", maintain_order=True)}


def _has_stimuli(rows: pl.DataFrame) -> bool:
    """Whether conditions tell sentences apart, not what stood before one sentence."""
    named = rows.filter(pl.col("condition").is_not_null())
    if named.is_empty() or named["condition"].is_in(ORDER).any():
        return False
    items = rows.group_by("item").agg(pl.col("text", "condition").n_unique())
    if (items["text"] > 1).any():
        return True
    # Every item is one sentence: conditions between items are not what stood before it.
    bare = named["context_text"].null_count() > 0
    return bool((items["condition"] == 1).all()) and (rows["condition"].n_unique() > 1 or bare)


def _refuse_unclear(name: str, rows: pl.DataFrame) -> None:
    """One sentence per item and condition; one condition per item, sentence and setting."""
    texts = rows.group_by("item", "condition", maintain_order=True).agg(pl.col("text").n_unique())
    several = texts.filter(pl.col("text") > 1)
    if len(several):
        item, condition, n = several.row(0)
        where = f"in the condition '{condition}'" if condition else "without a condition"
        raise BadInput(
            f"Item '{item}' of {name} has {n} different texts {where}; tell them apart in the column "
            "'condition', or give each text an item of its own."
        )
    again = rows.group_by("item", "text", "setting", maintain_order=True).agg(pl.col("condition").unique())
    unclear = again.filter(pl.col("condition").list.len() > 1)
    if len(unclear):
        row = unclear.row(0, named=True)
        named = " and ".join(f"'{one}'" if one else "(none)" for one in sorted(row["condition"], key=str))
        raise BadInput(
            f"Item '{row['item']}' of {name} has the same sentence in the conditions {named}, both in the "
            f"setting '{row['setting']}' ({row['text']}); keep one of them, or call the settings of a "
            f"sentence {', '.join(ORDER)}."
        )
