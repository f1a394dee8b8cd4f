"""Answers that someone else published, right or wrong by item."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import JUDGEMENTS
from felicity.data.catalogue import find_entry
from felicity.data.tables import Table
from felicity.run.rules import Verdicts
from felicity.studies.replay import Replayed

SYNTAXGYM = "syntaxgym"
RIGHT = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


def replay_answers(table: Table, dataset: str | None) -> Replayed:
    """Right or wrong by item: the results of SyntaxGym, whose items are numbered from 0."""
    name = dataset or SYNTAXGYM
    phenomena = _phenomena(name)
    rows = []
    for row, line in zip(table.rows, table.lines, strict=True):
        answer = str(row["correct"]).strip().lower()
        if answer not in RIGHT:
            raise BadInput(f"{table.path}, line {line}: 'correct' is {row['correct']!r}, not true or false.")
        suite = str(row["suite"])
        rows.append(
            {
                "item": f"{suite}/{_from_one(row['item'], name, table.path, line)}",
                "suite": suite,
                "phenomenon": phenomena(suite),
                "measure": str(row.get("model") or "answers"),
                "rule": "published",
                "passed": RIGHT[answer],
                "margin": float("nan"),
                "stable": True,
            }
        )
    judged = pl.DataFrame(rows, schema=JUDGEMENTS)
    twice = judged.filter(judged.select("item", "measure").is_duplicated())
    if len(twice):
        raise BadInput(f"{table.path} answers item '{twice['item'][0]}' more than once for one model.")
    items = judged.select(
        "item", "suite", "phenomenon", pl.lit("answer").alias("condition"), pl.lit("").alias("text")
    ).unique(maintain_order=True)
    return Replayed(
        form="answers",
        dataset=name,
        items=items,
        verdicts=Verdicts(judgements=judged),
        measures=tuple(judged["measure"].unique(maintain_order=True)),
    )


def _from_one(item: object, dataset: str, path: Path, line: int) -> str:
    if dataset != SYNTAXGYM:
        return str(item)
    text = str(item).strip()
    if not text.isdecimal():
        raise BadInput(f"{path}, line {line}: 'item' is {item!r}, not a number from 0 on.")
    return str(int(text) + 1)


def _phenomena(dataset: str) -> Callable[[str], str]:
    patterns = find_entry(dataset).maps.get("phenomena", {})

    def find(suite: str) -> str:
        return next((what for pattern, what in patterns.items() if fnmatchcase(suite, pattern)), suite)

    return find
