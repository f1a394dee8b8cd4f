"""What the page of a context study is made of: its tables, and the names of contexts in words."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.sweep import BASELINE, KINDS, UNPERTURBED
from felicity.report import no_link, spaced
from felicity.report.charts import LineStyle
from felicity.studies.context.sweep_tables import (
    CORRELATIONS,
    ESTIMATES,
    MATRIX,
    POINTS,
    REGION_CURVES,
    REGRESSIONS,
    SUITE_CHANGES,
)

SCHEMAS = {
    "estimates": ESTIMATES,
    "regressions": REGRESSIONS,
    "points": POINTS,
    "correlations": CORRELATIONS,
    "suite_changes": SUITE_CHANGES,
    "matrix": MATRIX,
    "regions": REGION_CURVES,
}

# The conditions of a pair that are acceptable and unacceptable contexts.
SIDES = {"acceptable": "good", "unacceptable": "bad"}
UNSAFE = re.compile(r"[^\w.+-]+")


# What a row may say about its contexts, and the explorer can select.
FACTORS = ("kind", "source", "perturbation", "length")


@dataclass(frozen=True, kw_only=True)
class ContextTables:
    """The tables of one study by name, and the words of its page; a table that is missing has no section.

    unit: what lengths count, "tokens" or "sentences". facts: terms and values about the design, in the order
    to be shown. headline: what the share and the sentences are called, in the dataset's words. address:
    where the items of a model are shown, as `Study.link` gives it.
    """

    dataset: str
    tables: Mapping[str, pl.DataFrame]
    unit: str = "tokens"
    facts: Sequence[tuple[str, str]] = ()
    headline: Headline = ACCURACY
    address: Callable[..., str] = no_link

    def link(self, row: Mapping[str, Any], **more: str) -> str:
        """Where the items of a row are: those of its model, contexts, and suite or phenomenon, if any."""
        chosen = {name: str(row[name]) for name in FACTORS if row.get(name) is not None}
        if "perturbation" in chosen:
            # A figure names it in words.
            given = chosen["perturbation"].replace(" ", "_")
            chosen["perturbation"] = UNPERTURBED if given == "unperturbed" else given
        if row.get("level") in ("suite", "phenomenon"):
            chosen[row["level"]] = row["name"]
        elif row.get("suite") is not None:
            chosen["suite"] = row["suite"]
        return self.address(row["model"], **chosen, **more)

    @property
    def estimates(self) -> pl.DataFrame:
        """Accuracy and its change, by kind and length of context."""
        return self.tables["estimates"]

    @property
    def models(self) -> list[str]:
        """The models, in order of occurrence."""
        return self.estimates["model"].unique(maintain_order=True).to_list()

    @property
    def across(self) -> str:
        """The title of an axis of lengths."""
        return f"length of the context ({self.unit})"

    @property
    def styles(self) -> dict[str, LineStyle]:
        """The line of each kind, by its name on the page."""
        return {self.name_kind(kind): style for kind, style in STYLES_OF_KINDS.items()}

    def name_kind(self, kind: str, source: str | None = None) -> str:
        """A kind of context in the dataset's words."""
        return name_kind(kind, source, headline=self.headline)

    def side(self, name: str) -> str:
        """What an acceptable or an unacceptable sentence is called."""
        return self.headline.sentences.get(SIDES[name], name)

    def table(self, name: str) -> pl.DataFrame:
        """A table by its name; empty if the study has none."""
        return self.tables.get(name, pl.DataFrame(schema=SCHEMAS[name]))

    def baselines(self, level: str) -> pl.DataFrame:
        """The rows without a context."""
        return self.estimates.filter((pl.col("level") == level) & (pl.col("kind") == BASELINE))

    def contexts(self, level: str) -> pl.DataFrame:
        """The rows of the study's main kinds, with unperturbed sentences if there are any."""
        rows = self.estimates.filter((pl.col("level") == level) & pl.col("kind").is_in(list(KINDS)))
        plain = rows.filter(pl.col("perturbation") == UNPERTURBED)
        return rows if plain.is_empty() else plain


def name_kind(kind: str, source: str | None = None, *, headline: Headline = ACCURACY) -> str:
    """A kind in words; its sentences are called as the dataset calls them.

    >>> name_kind("matched_unacceptable"), name_kind("from_acceptable", "npi_any")
    ('matched, unacceptable', 'acceptable, from npi any')
    """
    first, _, second = kind.partition("_")
    second = headline.sentences.get(SIDES.get(second, ""), second)
    if first == "from":
        return f"{second}, from {spaced(source)}" if source else f"{second}, from one suite"
    return ", ".join(part for part in (first, second) if part)


def _choose_style(kind: str) -> LineStyle:
    matched, acceptable = KINDS[kind]
    if acceptable is None:
        return LineStyle("soft", (2, 3))
    return LineStyle("good" if acceptable else "bad", () if matched else (6, 3))


# Blue and orange distinguish acceptable and unacceptable contexts, a solid line the matched ones.
STYLES_OF_KINDS: dict[str, LineStyle] = {kind: _choose_style(kind) for kind in KINDS}


def sort_kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in the order of the kinds, otherwise unchanged."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    place = pl.col("kind").replace_strict(order, default=len(order), return_dtype=pl.Int64)
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
