"""What a dataset holds, for people and programs: sizes, suites, rules, quirks and examples."""

from typing import Any

import polars as pl

from felicity.data.catalogue import STARTER, STARTER_TITLE, Dataset
from felicity.data.entry import load_entries


def describe_dataset(dataset: Dataset, *, rows: int) -> dict[str, Any]:
    """What a dataset holds: sizes, suites, licence, rules, and its first items."""
    items = dataset.items
    entry = load_entries().get(dataset.name)
    suites = items.group_by("suite", "phenomenon", maintain_order=True).agg(pl.col("item").n_unique())
    firsts = items["item"].unique(maintain_order=True).head(rows)
    shown = items.filter(pl.col("item").is_in(firsts.to_list()))
    licence = "Apache-2.0" if dataset.name == STARTER else "the file's own"
    return {
        "name": dataset.name,
        "title": entry.title if entry else STARTER_TITLE if dataset.name == STARTER else "",
        "items": items["item"].n_unique(),
        "stimuli": len(items),
        "licence": entry.licence if entry else licence,
        "home": entry.home if entry else "",
        "version": entry.version if entry else "",
        "rule": dataset.method,
        "rules": {name: method.meaning for name, method in entry.methods.items()} if entry else {},
        "quirks": list(entry.quirks) if entry else [],
        "notes": list(dataset.notes),
        "left_out": dataset.left_out.group_by("reason", maintain_order=True).len(name="rows").to_dicts(),
        "suites": [{"name": s, "phenomenon": p, "items": n} for s, p, n in suites.iter_rows()],
        "phenomena": items["phenomenon"].unique(maintain_order=True).to_list(),
        "conditions": items["condition"].unique(maintain_order=True).to_list(),
        "examples": _examples(shown),
    }


def _examples(shown: pl.DataFrame) -> list[dict[str, Any]]:
    named = shown.get_column("context_text", default=None)
    contexts = [None] * len(shown) if named is None else named.to_list()
    found: dict[str, dict[str, Any]] = {}
    rows = zip(shown["item"], shown["condition"], contexts, shown["text"], strict=True)
    for item, condition, context, text in rows:
        whole = f"{context} {text}" if context else text
        found.setdefault(item, {"item": item})[condition] = whole
    return list(found.values())
