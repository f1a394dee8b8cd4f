"""Which models are at hand: the built-in one, those converted before, those in the hub's cache."""

from dataclasses import dataclass
from pathlib import Path

from felicity.engines import smollm2
from felicity.engines.hub import hub_models
from felicity.engines.store import kept_models, read_record


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A row of `felicity models ls`.

    spec: what to give to -m. folder: None where the model is still to be fetched. size: bytes on disk.
    """

    spec: str
    origin: str
    source: str
    folder: Path | None
    size: int


def list_models() -> list[ModelEntry]:
    """The built-in model first, then what is in the caches."""
    kept = [_kept_entry(folder) for folder in kept_models()]
    built_in = [entry for entry in kept if entry.origin == "default"] or [
        ModelEntry(spec=smollm2.NAME, origin="default", source=smollm2.REQUIREMENT, folder=None, size=0)
    ]
    converted = [entry for entry in kept if entry.origin != "default"]
    hub = [
        ModelEntry(spec=repository, origin="hub", source=repository, folder=folder, size=size)
        for repository, folder, size in hub_models()
    ]
    return [*built_in, *converted, *hub]


def _kept_entry(folder: Path) -> ModelEntry:
    record = read_record(folder)
    default = record.get("sha256") == smollm2.SHA256 and record.get("source") == smollm2.REQUIREMENT
    return ModelEntry(
        spec=smollm2.NAME if default else folder.name,
        origin="default" if default else "gguf",
        source=str(record.get("source", "")),
        folder=folder,
        size=sum(record["sizes"].values()),
    )
