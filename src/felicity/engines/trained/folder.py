"""A trained model on disk: trained.json, vocabulary.tsv, model.safetensors and the training history."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors, read_text, replacing
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.training_data import WordTable, read_word_counts, write_word_counts
from felicity.engines.words import TRAINED, VOCABULARY, WEIGHTS

FORMAT = 1
HISTORY = "history.json"


@dataclass(frozen=True)
class TrainedRecord:
    """The content of trained.json: the settings, the corpus, and the key of the training."""

    settings: TrainingSettings
    corpus: dict[str, Any]
    key: str


def prepare_folder(folder: Path, record: TrainedRecord, table: WordTable) -> None:
    """Create the folder of a training, or check that it contains this very training.

    Raises BadInput if it contains something else, FelicityError if it cannot be written.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        taken = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    if taken and TRAINED not in taken:
        raise BadInput(f"{folder} is not empty and contains no training; choose another folder with -o.")
    if taken and read_training_record(folder).key != record.key:
        raise BadInput(
            f"{folder} contains a training with other settings or corpus; choose another folder with -o."
        )
    write_word_counts(table, folder / VOCABULARY)
    content = {"format": FORMAT, "family": record.settings.family, "settings": asdict(record.settings)}
    write_json(folder / TRAINED, content | {"corpus": record.corpus, "key": record.key})


def read_training_record(folder: Path) -> TrainedRecord:
    """The record of a training.

    Raises BadInput if the file is damaged.
    """
    path = folder / TRAINED
    try:
        content = json.loads(read_text(path))
        settings = TrainingSettings.from_dict(content["settings"])
        return TrainedRecord(settings, dict(content["corpus"]), str(content["key"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is damaged; train the model again.") from error


def read_vocabulary(folder: Path) -> WordTable:
    """The vocabulary of a trained model.

    Raises BadInput if the file is missing or damaged.
    """
    return read_word_counts(folder / VOCABULARY)


def find_weights(folder: Path) -> Path:
    """The weights file.

    Raises BadInput if training has not finished its first epoch.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise BadInput(f"{folder} has no weights yet; run `felicity train` again to resume its training.")
    return path


def write_json(path: Path, content: Any) -> None:
    """Write a small JSON file."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
