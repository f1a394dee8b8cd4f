"""Datasets by name: where each comes from, who may use it, and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import UnknownName
from felicity.core.registry import Registry
from felicity.data.blimp import read_blimp
from felicity.data.pairs import Columns, read_pairs
from felicity.data.starter import read_starter
from felicity.data.tables import is_table, read_table


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One entry of the catalogue; `read` gives its items."""

    title: str
    licence: str
    origin: str
    rule: str
    read: Callable[[], pl.DataFrame]


DATASETS: Registry[Dataset] = Registry("dataset")
DATASETS.register(
    "starter",
    Dataset(
        title="felicity's own English minimal pairs, 60 in each of 12 phenomena",
        licence="Apache-2.0",
        origin="built in",
        rule="pair",
        read=read_starter,
    ),
)
DATASETS.register(
    "blimp",
    Dataset(
        title="BLiMP: 67 paradigms of 1000 English minimal pairs (Warstadt et al. 2020)",
        licence="CC BY 4.0",
        origin="$FELICITY_DATA/blimp, the cache, or the hub (nyu-mll/blimp)",
        rule="pair",
        read=read_blimp,
    ),
)


def read_items(name: str, columns: Columns | None = None) -> pl.DataFrame:
    """The items of a dataset by its name, or of a file of pairs.

    For a file, `columns.suite` names the column; for a dataset it narrows to that suite.

    Raises UnknownName, or BadInput where a file cannot be used.
    """
    columns = columns or Columns()
    if name in DATASETS:
        items = DATASETS[name].read()
        return narrow(items, suite=columns.suite, phenomenon=columns.phenomenon)
    if is_table(name):
        return read_pairs(read_table(Path(name)), columns)
    raise UnknownName("dataset", name, DATASETS, hint="see `felicity data ls`, or name a file that exists")


def narrow(items: pl.DataFrame, *, suite: str | None, phenomenon: str | None) -> pl.DataFrame:
    """Only the items of one suite or phenomenon.

    Raises UnknownName suggesting the nearest.
    """
    for column, value in (("suite", suite), ("phenomenon", phenomenon)):
        if value is None:
            continue
        known = items[column].unique().to_list()
        if value not in known:
            raise UnknownName(column, value, known)
        items = items.filter(pl.col(column) == value)
    return items


def describe_items(name: str, items: pl.DataFrame, *, rows: int) -> dict[str, Any]:
    """What a dataset holds: sizes, suites, licence, and its first pairs."""
    suites = items.group_by("suite", "phenomenon", maintain_order=True).agg(pl.col("item").n_unique())
    firsts = items["item"].unique(maintain_order=True).head(rows)
    shown = items.filter(pl.col("item").is_in(firsts.to_list()))
    pairs = shown.pivot(on="condition", index="item", values="text", maintain_order=True)
    return {
        "name": name,
        "items": items["item"].n_unique(),
        "stimuli": len(items),
        "licence": DATASETS[name].licence if name in DATASETS else "the file's own",
        "suites": [{"name": s, "phenomenon": p, "items": n} for s, p, n in suites.iter_rows()],
        "phenomena": items["phenomenon"].unique(maintain_order=True).to_list(),
        "examples": pairs.to_dicts(),
    }
