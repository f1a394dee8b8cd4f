"""Recognize the format of a file or folder of published numbers, and judge it."""

from pathlib import Path

from felicity.core.contrasts import PAIR
from felicity.core.errors import BadInput
from felicity.data import Table, read_table
from felicity.papers.replay.predictions import is_predictions, replay_predictions
from felicity.papers.replay.replayed import Replayed
from felicity.papers.replay.scores import read_regions, replay_reference, replay_scores, replay_surprisals
from felicity.papers.replay.stored_outputs import (
    is_agreement,
    is_chosen,
    is_report,
    is_zorro,
    read_content,
    replay_agreement,
    replay_chosen,
    replay_report,
    replay_zorro,
)
from felicity.papers.replay.summaries import SYNTAXGYM, is_summary, replay_answers, replay_summary

NAMING = ("item", "condition", "region", "value", "suite", "correct", "UID", "Condition")


def _refuse_missing_fields(table: Table) -> None:
    """Refuse a row of JSON lines without the field that says what its number is about."""
    named = [name for name in NAMING if name in table.columns]
    for row, line in zip(table.rows, table.lines, strict=True):
        for name in named:
            if row.get(name) is None:
                raise BadInput(f"{table.path}, line {line}: there is no '{name}'.")


def replay_file(path: Path, *, dataset: str | None = None, good: str = PAIR.better) -> Replayed:
    """The numbers of a file, or of a folder of predictions, judged.

    `dataset` is what they are about, if the file does not say; `good` the condition that should
    score highest, if no dataset says so.

    Raises BadInput naming the line or column that cannot be used.
    """
    if is_zorro(path):
        return replay_zorro(path)
    if is_agreement(path):
        return replay_agreement(path)
    if is_report(path):
        return replay_report(path)
    if is_predictions(path):
        return replay_predictions(path, dataset=dataset)
    if path.name.removesuffix(".gz").endswith(".json"):
        content = read_content(path)
        return replay_chosen(path, content) if is_chosen(content) else replay_reference(path)
    table = read_table(path)
    columns = set(table.columns)
    _refuse_missing_fields(table)
    if {"item", "condition", "region", "value"} <= columns:
        return replay_surprisals(read_regions(table), dataset or SYNTAXGYM, len(table.rows))
    if {"item", "condition", "value"} <= columns:
        return replay_scores(table, dataset, good)
    if {"suite", "item", "correct"} <= columns:
        return replay_answers(table, dataset)
    if is_summary(table):
        return replay_summary(table)
    raise BadInput(
        f"{path} has the columns {', '.join(table.columns)}; felicity replays tables with item, condition, "
        "value (and region), with suite, item, correct, or with UID and accuracies."
    )
