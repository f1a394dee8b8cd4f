"""Replayed numbers: judgements and estimates without a model, written as a run."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint, hash_file
from felicity.core.schemas import AUDIT, CONTEXTS, ITEMS, REQUESTS, SCORES, TOKENS, empty_table
from felicity.run import (
    FORMAT,
    Run,
    RunFolder,
    Verdicts,
    command_line,
    digest_items,
    estimate_verdicts,
    installed,
    now,
    read_run,
    write_verdicts,
)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The content of a file of numbers.

    form: scores, surprisals, answers, predictions or summary. measures: the names of the
    numbers, which are models if a file has several. notes: what was left out, and why.
    """

    form: str
    dataset: str
    items: pl.DataFrame
    verdicts: Verdicts
    measures: tuple[str, ...]
    scores: pl.DataFrame = field(default_factory=lambda: empty_table(SCORES))
    estimates: pl.DataFrame | None = None
    notes: tuple[tuple[str, int, int], ...] = ()

    def estimate(self) -> pl.DataFrame:
        """Accuracy with intervals, as in a run."""
        return estimate_verdicts(self.verdicts) if self.estimates is None else self.estimates


def leave_out(replayed: Replayed, suites: Collection[str]) -> Replayed:
    """The same without some suites.

    Raises BadInput if a suite is not there, or none is left.
    """
    if not suites:
        return replayed
    known = set(replayed.verdicts.judgements["suite"])
    unknown = sorted(set(suites) - known)
    if unknown:
        raise BadInput(
            f"There is no suite '{unknown[0]}' to leave out; there are {', '.join(sorted(known))}."
        )
    if replayed.estimates is not None:
        raise BadInput("Suites cannot be left out of a summary; give a file of items or answers.")

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(~pl.col("suite").is_in(list(suites)))

    verdicts = replayed.verdicts
    kept = Verdicts(
        judgements=keep(verdicts.judgements),
        predictions=None if verdicts.predictions is None else keep(verdicts.predictions),
        tables={name: keep(table) for name, table in verdicts.tables.items()},
    )
    if kept.judgements.is_empty():
        raise BadInput("No suite is left; leave out fewer.")
    return Replayed(**(vars(replayed) | {"items": keep(replayed.items), "verdicts": kept}))


def write_replay(replayed: Replayed, source: Path, target: Path) -> Run:
    """Write replayed numbers as a run folder; returns the run.

    Raises BadInput if the folder contains another run.
    """
    folder = RunFolder(target)
    folder.prepare()
    manifest = _manifest(replayed, source)
    if folder.has_manifest() and folder.read_manifest().get("replay") != manifest["replay"]:
        raise BadInput(f"{target} contains another run; choose another folder with -o, or remove that one.")
    items = pl.DataFrame(replayed.items).select(
        *ITEMS, *(name for name in replayed.items.columns if name not in ITEMS)
    )
    requests = items.select(
        pl.format("{}/{}", "item", "condition").alias("request"),
        "item",
        "condition",
        pl.lit(None, dtype=pl.String).alias("context"),
        "text",
    ).select(list(REQUESTS))
    for name, table in (
        ("items", items),
        ("contexts", empty_table(CONTEXTS)),
        ("requests", requests),
        ("tokens", empty_table(TOKENS)),
        ("scores", replayed.scores),
        ("audit", _audit(replayed)),
    ):
        folder.write(name, table)
    write_verdicts(folder, replayed.verdicts, estimates=replayed.estimates)
    folder.finish(manifest)
    return read_run(target)


def _audit(replayed: Replayed) -> pl.DataFrame:
    rows = [("left out", count, of, note, "") for note, count, of in replayed.notes]
    return pl.DataFrame(rows, schema=AUDIT, orient="row")


def _manifest(replayed: Replayed, source: Path) -> dict[str, Any]:
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    digest = fingerprint([[path.name, hash_file(path)] for path in files])
    return {
        "format": FORMAT,
        "felicity": installed("felicity"),
        "created": now(),
        "finished": now(),
        "command": command_line(),
        "dataset": {
            "name": replayed.dataset,
            "items": replayed.items["item"].n_unique(),
            "stimuli": len(replayed.items),
            "suites": replayed.items["suite"].n_unique(),
            "digest": digest_items(replayed.items),
        },
        "model": {"name": source.name.split(".")[0], "kind": "replayed", "spec": str(source)},
        "measures": list(replayed.measures),
        "options": {},
        "replay": {"form": replayed.form, "digest": digest, "measures": list(replayed.measures)},
        "versions": {},
    }
