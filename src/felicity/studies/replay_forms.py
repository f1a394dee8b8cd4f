"""What a file or folder of someone else's numbers holds, told by its columns, and how it is judged."""

from pathlib import Path

from felicity.core.contrasts import PAIR
from felicity.core.errors import BadInput
from felicity.data.tables import read_table
from felicity.studies.predictions import is_predictions, replay_predictions
from felicity.studies.replay import Replayed
from felicity.studies.replay_answers import SYNTAXGYM, replay_answers
from felicity.studies.replay_regions import read_regions, replay_reference, replay_surprisals
from felicity.studies.replay_scores import replay_scores
from felicity.studies.summaries import is_summary, replay_summary


def replay_file(path: Path, *, dataset: str | None = None, good: str = PAIR.better) -> Replayed:
    """The numbers of a file, or of a folder of predictions, judged.

    `dataset` is what they are about, where the file does not say; `good` the condition that should
    score highest, where no dataset says it.

    Raises BadInput naming the line or column that cannot be used.
    """
    if is_predictions(path):
        return replay_predictions(path, dataset=dataset)
    if path.name.removesuffix(".gz").endswith(".json"):
        return replay_reference(path)
    table = read_table(path)
    columns = set(table.columns)
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
