"""A trained model on disk: trained.json, vocabulary.tsv, model.safetensors, and what training needs."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors, read_text, replacing
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.vocabulary import WordTable, read_table, write_table
from felicity.engines.words.files import TRAINED

FORMAT = 1
VOCABULARY = "vocabulary.tsv"
WEIGHTS = "model.safetensors"
HISTORY = "history.json"


@dataclass(frozen=True)
class TrainedRecord:
    """What trained.json holds: the settings, what was trained on, and the key of the training."""

    settings: TrainingSettings
    corpus: dict[str, Any]
    key: str


def prepare_folder(folder: Path, record: TrainedRecord, table: WordTable) -> None:
    """Make the folder of a training, or see that it holds this very one.

    Raises BadInput where it holds something else, FelicityError where the disk refuses.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        taken = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    if taken and TRAINED not in taken:
        raise BadInput(f"{folder} is not empty and holds no training; choose another folder with -o.")
    if taken and read_record(folder).key != record.key:
        raise BadInput(
            f"{folder} holds a training with other settings or another corpus; choose another folder with -o."
        )
    write_table(table, folder / VOCABULARY)
    content = {"format": FORMAT, "family": record.settings.family, "settings": asdict(record.settings)}
    write_json(folder / TRAINED, content | {"corpus": record.corpus, "key": record.key})


def read_record(folder: Path) -> TrainedRecord:
    """What is remembered of a training.

    Raises BadInput where the file is damaged.
    """
    path = folder / TRAINED
    try:
        content = json.loads(read_text(path))
        settings = TrainingSettings.from_dict(content["settings"])
        return TrainedRecord(settings, dict(content["corpus"]), str(content["key"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is damaged; train the model again.") from error


def read_words(folder: Path) -> WordTable:
    """The vocabulary of a trained model.

    Raises BadInput where the file is missing or damaged.
    """
    return read_table(folder / VOCABULARY)


def find_weights(folder: Path) -> Path:
    """The file of the weights.

    Raises BadInput where training has not come to an end of its first epoch yet.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise BadInput(f"{folder} has no weights yet; run `felicity train` again to go on with its training.")
    return path


def write_json(path: Path, content: Any) -> None:
    """Write a small file for people and programs to read."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
