"""The manifest of a run: all that is needed to repeat it."""

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
    score: dict[str, Any],
    options: dict[str, Any],
) -> dict[str, Any]:
    """The manifest of a run that is about to start. score: the fields of its Headline."""
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
        "score": score,
        "options": options,
        "versions": {"python": platform.python_version()} | {name: installed(name) for name in LIBRARIES},
        "platform": platform.platform(terse=True),
    }


def digest_items(items: pl.DataFrame) -> str:
    """A digest of the stimuli: their names, conditions, contexts and texts."""
    named = ("item", "suite", "phenomenon", "condition", "text", "context_text")
    columns = items.select(name for name in named if name in items.columns)
    return fingerprint([list(row) for row in columns.iter_rows()])


def differs(old: dict[str, Any], new: dict[str, Any]) -> str:
    """How another run in a folder differs, in words; empty if it is the same run."""
    for part, field in (("model", "key"), ("dataset", "digest")):
        before, after = old[part], new[part]
        if before.get("name") != after["name"]:
            same = before.get(field) == after[field]
            difference = "" if same else f"the {part} '{before.get('name')}', not '{after['name']}'"
        elif part == "model":
            fields = ("weights", "tokenizer", "policy", "dtype", "family", "kind", "scoring")
            changed = [name for name in fields if before.get(name, after[name]) != after[name]]
            other = " and ".join(changed) or field
            same = before.get(field) == after[field]
            difference = "" if same else f"the model '{after['name']}' with another {other}"
        else:
            difference = _find_change(old, new)
        if difference:
            return difference
    return ""


def refuse_other_run(
    old: dict[str, Any], new: dict[str, Any], folder: str, *, changed: str = "", replaceable: bool
) -> None:
    """Stop before one run's folder is filled with another's numbers.

    changed: how the stimuli differ, if that is known. replaceable: whether the command takes --overwrite.

    Raises BadInput naming what differs.
    """
    difference = differs(old, new)
    if difference:
        how = f" ({changed})" if changed and "other items" in difference else ""
        way = ", or replace the run with --overwrite, which reuses every cached score" if replaceable else ""
        raise BadInput(f"{folder} contains a run of {difference}{how}; choose another folder with -o{way}.")


def describe_change(old: pl.DataFrame, new: pl.DataFrame) -> str:
    """How many stimuli were added, removed and changed, and the first changed one.

    >>> before = pl.DataFrame({"item": ["1", "2"], "condition": ["good", "good"], "text": ["A.", "B."]})
    >>> after = pl.DataFrame({"item": ["1", "3"], "condition": ["good", "good"], "text": ["A!", "C."]})
    >>> describe_change(before, after)
    "1 stimulus changed, 1 added, 1 removed; first '1' good: 'A.' is now 'A!'"
    >>> describe_change(before, pl.concat([before, after]))
    '1 stimulus added'
    """
    keys = ["item", "condition"]
    was, now_ = (frame.select(*keys, "text").unique(keys, maintain_order=True) for frame in (old, new))
    both = was.join(now_, on=keys, suffix="_now", maintain_order="left")
    changed = both.filter(pl.col("text") != pl.col("text_now"))
    counts = {
        "changed": len(changed),
        "added": len(now_.join(was, on=keys, how="anti")),
        "removed": len(was.join(now_, on=keys, how="anti")),
    }
    met = {what: number for what, number in counts.items() if number}
    said = [f"{number:,} {what}" for what, number in met.items()]
    if met:
        what, number = next(iter(met.items()))
        said[0] = f"{number:,} {'stimulus' if number == 1 else 'stimuli'} {what}"
    if changed.height:
        first = changed.row(0, named=True)
        stimulus = f"'{first['item']}' {first['condition']}"
        return f"{', '.join(said)}; first {stimulus}: '{first['text']}' is now '{first['text_now']}'"
    return ", ".join(said)


def _find_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """How a run of the same dataset differs: in its rule, which may select items, or in the items."""
    name = new["dataset"]["name"]
    rules = [manifest.get("options", {}).get("rule") for manifest in (old, new)]
    if rules[0] != rules[1]:
        return f"'{name}' by the rule '{rules[0]}', not '{rules[1]}'"
    # Runs of earlier versions summed the tokens of regions as they are.
    sums = [manifest.get("regions", {}).get("boundary", "plain") for manifest in (old, new)]
    if sums[0] != sums[1]:
        return f"'{name}' with region surprisals that are {sums[0]}, not {sums[1]}"
    return f"'{name}' with other items" if old["dataset"].get("digest") != new["dataset"]["digest"] else ""


def command_line() -> str:
    """The command line, so that a person can repeat it."""
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
