"""What was asked of a run: all that is needed to do it again."""

import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint

FORMAT = 1
LIBRARIES = ("felicity", "torch", "transformers", "tokenizers", "numpy", "polars")


def build_manifest(
    *,
    dataset: str,
    items: pl.DataFrame,
    info: EngineInfo,
    spec: str,
    measures: list[str],
    options: dict[str, Any],
) -> dict[str, Any]:
    """The manifest of a run about to begin."""
    return {
        "format": FORMAT,
        "felicity": installed("felicity"),
        "created": now(),
        "finished": None,
        "command": command_line(),
        "dataset": {
            "name": dataset,
            "items": items["item"].n_unique(),
            "stimuli": len(items),
            "suites": items["suite"].n_unique(),
            "digest": digest_items(items),
        },
        "model": {"spec": spec} | info.as_dict(),
        "measures": measures,
        "options": options,
        "versions": {"python": platform.python_version()} | {name: installed(name) for name in LIBRARIES},
        "platform": platform.platform(terse=True),
    }


def digest_items(items: pl.DataFrame) -> str:
    """A digest of the stimuli: their names, conditions, contexts and texts."""
    named = ("item", "suite", "phenomenon", "condition", "text", "context_text")
    columns = items.select(name for name in named if name in items.columns)
    return fingerprint([list(row) for row in columns.iter_rows()])


def refuse_other_run(old: dict[str, Any], new: dict[str, Any], folder: str) -> None:
    """Stop before one run's folder is filled with another's numbers.

    Raises BadInput naming what differs.
    """
    for part, field in (("model", "key"), ("dataset", "digest")):
        before, after = old[part], new[part]
        if before.get("name") != after["name"]:
            same = before.get(field) == after[field]
            difference = "" if same else f"the {part} '{before.get('name')}', not '{after['name']}'"
        elif part == "model":
            fields = ("weights", "tokenizer", "policy", "dtype", "family", "kind")
            changed = [name for name in fields if before.get(name) != after[name]]
            other = " and ".join(changed) or field
            same = before.get(field) == after[field]
            difference = "" if same else f"the model '{after['name']}' with another {other}"
        else:
            difference = _find_change(old, new)
        if difference:
            raise BadInput(
                f"{folder} holds a run of {difference}; choose another folder with -o, or remove that one."
            )


def _find_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """How a run of the same dataset differs: in its rule, which may choose the items, or in these."""
    name = new["dataset"]["name"]
    rules = [manifest.get("options", {}).get("rule") for manifest in (old, new)]
    if rules[0] != rules[1]:
        return f"'{name}' by the rule '{rules[0]}', not '{rules[1]}'"
    return f"'{name}' with other items" if old["dataset"].get("digest") != new["dataset"]["digest"] else ""


def command_line() -> str:
    """How felicity was called, for a person to call it again."""
    name = sys.argv[0].replace("\\", "/").rsplit("/", maxsplit=1)[-1]
    return shlex.join(["felicity", *sys.argv[1:]]) if name in ("felicity", "felicity.exe") else ""


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def installed(name: str) -> str:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
