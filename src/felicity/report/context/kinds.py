"""How kinds of contexts and other names look and read on the page."""

import re
from collections.abc import Iterable

import polars as pl

from felicity.core.sweep import KINDS
from felicity.report.legend import Look
from felicity.report.wording import spaced

UNSAFE = re.compile(r"[^\w.+-]+")


def name_kind(kind: str, source: str | None = None) -> str:
    """A kind in words.

    >>> name_kind("matched_unacceptable"), name_kind("from_acceptable", "npi_any")
    ('matched, unacceptable', 'acceptable, from npi any')
    """
    first, _, second = kind.partition("_")
    if first == "from":
        return f"{second}, from {spaced(source)}" if source else f"{second}, from one suite"
    return ", ".join(part for part in (first, second) if part)


def _look(kind: str) -> Look:
    matched, acceptable = KINDS[kind]
    if acceptable is None:
        return Look("soft", (2, 3))
    return Look("good" if acceptable else "bad", () if matched else (6, 3))


# Blue and orange tell acceptable from unacceptable contexts, an unbroken line the matched ones.
LOOKS_OF_KINDS: dict[str, Look] = {name_kind(kind): _look(kind) for kind in KINDS}


def sort_kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in the order kinds are named in, all else as it stands."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    place = pl.col("kind").replace_strict(order, default=len(order), return_dtype=pl.UInt32)
    return rows.sort(place, maintain_order=True)


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A different file name for every name, whatever characters it has.

    >>> file_names(["gpt2", "org/opt", "org opt"])
    {'gpt2': 'gpt2', 'org/opt': 'org-opt', 'org opt': 'org-opt-2'}
    """
    given: dict[str, str] = {}
    for name in names:
        plain = UNSAFE.sub("-", name).strip("-.") or "unnamed"
        taken, chosen, number = {file.lower() for file in given.values()}, plain, 1
        while chosen.lower() in taken:
            number += 1
            chosen = f"{plain}-{number}"
        given[name] = chosen
    return given
