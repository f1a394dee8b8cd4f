"""study.json: what a study was asked and drawn for, and what must agree with it to go on."""

import json
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import read_text, replacing
from felicity.studies.context.setting import DRAWN

MANIFEST = "study.json"
RUN = "manifest.json"


def read_record(folder: Path) -> dict[str, Any]:
    """The record of the study in a folder; empty where none has begun.

    Raises BadInput where it cannot be read, or the folder is that of a run.
    """
    path = folder / MANIFEST
    if path.is_file():
        return _read(path)
    if (folder / RUN).is_file():
        raise BadInput(
            f"{folder} holds a run, which the study would overwrite; choose another folder with -o."
        )
    return {}


def read_drawn(contexts: Path) -> dict[str, Any]:
    """The record beside a table of contexts that is handed on.

    Raises BadInput where there is none, or it is not that of a study.
    """
    path = contexts.parent / MANIFEST
    if not contexts.is_file():
        raise BadInput(f"There is no file {contexts}; name the contexts.parquet in a study's folder.")
    if not path.is_file():
        raise BadInput(
            f"{contexts} has no {MANIFEST} beside it, which tells how it was drawn; name the "
            "contexts.parquet in a study's folder."
        )
    told = _read(path)
    known = told.get("setting")
    if not isinstance(known, dict) or not {*DRAWN, "text"} <= set(known) or "items" not in told:
        raise BadInput(f"{path} does not tell how the contexts were drawn; run that study again.")
    return told


def write_record(folder: Path, content: dict[str, Any]) -> None:
    """Keep the record of a study."""
    with replacing(folder / MANIFEST) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_other(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    """Stop before one study goes on in the folder of another.

    Raises BadInput naming what differs.
    """
    for name in (*new, *(name for name in old if name not in new)):
        if old.get(name) != new.get(name):
            what = f"{name.replace('_', ' ')} ({old.get(name)}, not {new.get(name)})"
            raise BadInput(
                f"{folder} holds a study with another {what}; choose another folder with -o, or remove it."
            )


def refuse_items(told: dict[str, Any], items: str, contexts: Path) -> None:
    """Stop where contexts were drawn for other items: one could stand in its own context.

    Raises BadInput.
    """
    if told.get("items") != items:
        raise BadInput(
            f"{contexts} was drawn for other items than these; take the same dataset, suite and phenomenon, "
            "or draw new contexts in another folder."
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_text(path)))
    except (json.JSONDecodeError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is not JSON; remove that folder and run the study again.") from error
