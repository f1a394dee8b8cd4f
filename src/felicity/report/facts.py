"""How to do it again: the manifest as lists of terms and values."""

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

HANDLED = ("command", "model", "dataset", "versions")


class Facts(NamedTuple):
    """A heading and what stands under it."""

    heading: str
    rows: list[tuple[str, str]]


def read_facts(manifest: Mapping[str, Any]) -> list[Facts]:
    """Everything the manifest says, grouped; what it does not say is left out."""
    model = manifest.get("model")
    policy = model.get("policy") if isinstance(model, Mapping) else None
    rest = {key: value for key, value in manifest.items() if key not in HANDLED}
    groups = [
        Facts("Model", _rows(model, "name", skip="policy")),
        Facts("Scoring policy", _rows(policy, "policy")),
        Facts("Data", _rows(manifest.get("dataset"), "name")),
        Facts("Run", _rows(rest, "run")),
        Facts("Software", _rows(manifest.get("versions"), "version")),
    ]
    return [group for group in groups if group.rows]


def read_command(manifest: Mapping[str, Any]) -> str:
    """The command line that made the run, ready for a shell; empty where it is not known."""
    command = manifest.get("command") or ""
    return command if isinstance(command, str) else shlex.join(str(word) for word in command)


def read_name(manifest: Mapping[str, Any], key: str) -> str:
    """What the manifest calls the model or the dataset."""
    value = manifest.get(key)
    name = value.get("name") if isinstance(value, Mapping) else value
    return str(name) if name else f"unnamed {key}"


def read_date(manifest: Mapping[str, Any]) -> str:
    """The day the run was made, as the manifest writes it, without the time of day."""
    return str(manifest.get("created") or "").partition("T")[0]


def _rows(value: Any, term: str, *, skip: str = "") -> list[tuple[str, str]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return [(term, _write(value))]
    return [(str(key).replace("_", " "), _write(content)) for key, content in value.items() if key != skip]


def _write(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        # Years and seeds read worse with a comma; only long counts are helped by it.
        return f"{value:,}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, str):
        return value if value.strip() else repr(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_write(content)}" for key, content in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_write(content) for content in value) or "none"
    return str(value)
