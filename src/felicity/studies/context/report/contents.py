"""The content of a context study's report: its tables, and the names of contexts in words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.errors import BadInput
from felicity.core.sweep import BASELINE, KINDS, UNPERTURBED
from felicity.report import spaced
from felicity.report.charts import LineStyle

Rows = pl.DataFrame | None


# The columns that the page uses; a table may have more.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "curves": (
        *("model", "level", "name", "kind", "source", "perturbation", "length", "n", "suites"),
        *("accuracy", "low", "high", "delta", "delta_low", "delta_high", "ratio", "ties", "unstable"),
        *("tokens", "ppl_margin", "ppl_low", "ppl_high"),
    ),
    "terms": (
        *("model", "analysis", "term", "estimate", "se", "z", "p", "low", "high", "n", "groups", "note"),
    ),
    "points": ("model", "link", "kind", "name", "x", "y"),
    "links": ("model", "link", "kind", "method", "n", "r", "low", "high", "p"),
    "gains": ("model", "kind", "suite", "mean", "sd"),
    "matrix": ("model", "kind", "source", "suite", "n", "delta", "token_f1", "dependency_f1"),
    "regions": (
        *("model", "suite", "condition", "region", "name", "kind", "length", "n"),
        *("surprisal_bits", "low", "high"),
    ),
}
# The conditions of a pair that are acceptable and unacceptable contexts.
SIDES = {"acceptable": "good", "unacceptable": "bad"}
UNSAFE = re.compile(r"[^\w.+-]+")


@dataclass(frozen=True, kw_only=True)
class ContextPage:
    """One study of one dataset; a missing or empty table omits its section.

    unit: what lengths count, "tokens" or "sentences"; facts: terms and values, in the order to be shown;
    notes: remarks for the reader, such as suites that were left out and why. headline: what the share and the
    sentences are called, in the dataset's words. policies: how the models were scored.
    """

    dataset: str
    curves: pl.DataFrame
    terms: Rows = None
    points: Rows = None
    links: Rows = None
    gains: Rows = None
    matrix: Rows = None
    regions: Rows = None
    unit: str = "tokens"
    measure: str = "lp"
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    command: str = ""
    created: str = ""
    version: str = ""
    headline: Headline = ACCURACY
    policies: str = ""

    def __post_init__(self) -> None:
        """Refuse a table that lacks a column.

        Raises BadInput.
        """
        for name, columns in COLUMNS.items():
            table: Rows = getattr(self, name)
            missing = [] if table is None else [column for column in columns if column not in table.columns]
            if missing:
                raise BadInput(
                    f"The table {name} of the study lacks {', '.join(missing)}; run the study again."
                )

    @property
    def models(self) -> list[str]:
        """The models, in order of occurrence."""
        return self.curves["model"].unique(maintain_order=True).to_list()

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
        found: Rows = getattr(self, name)
        return pl.DataFrame(schema=dict.fromkeys(COLUMNS[name], pl.String)) if found is None else found

    def baselines(self, level: str) -> pl.DataFrame:
        """The rows without a context."""
        return self.curves.filter((pl.col("level") == level) & (pl.col("kind") == BASELINE))

    def contexts(self, level: str) -> pl.DataFrame:
        """The rows of the study's main kinds, with unperturbed sentences if there are any."""
        rows = self.curves.filter((pl.col("level") == level) & pl.col("kind").is_in(list(KINDS)))
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
