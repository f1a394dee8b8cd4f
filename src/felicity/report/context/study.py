"""What the page about context is made of: the tables of the study and what was done to get them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.sweep import BASELINE, KINDS, UNPERTURBED

Rows = pl.DataFrame | None

# The columns that the page reads; a table may have more.
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


@dataclass(frozen=True, kw_only=True)
class ContextPage:
    """One study of one dataset; a table that is missing or empty leaves its section out.

    unit: what lengths count, "tokens" or "sentences"; facts: terms and values, in the order to be shown;
    notes: sentences a reader must know, such as suites that were left out and why.
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
        """The models in the order met."""
        return self.curves["model"].unique(maintain_order=True).to_list()

    @property
    def across(self) -> str:
        """The title of an axis of lengths."""
        return f"length of the context ({self.unit})"

    def table(self, name: str) -> pl.DataFrame:
        """A table by its name, empty where the study has none."""
        found: Rows = getattr(self, name)
        return pl.DataFrame(schema=dict.fromkeys(COLUMNS[name], pl.String)) if found is None else found

    def baselines(self, level: str) -> pl.DataFrame:
        """The rows without a context."""
        return self.curves.filter((pl.col("level") == level) & (pl.col("kind") == BASELINE))

    def contexts(self, level: str) -> pl.DataFrame:
        """The rows of the study's main kinds, their sentences as they stand where there are such."""
        rows = self.curves.filter((pl.col("level") == level) & pl.col("kind").is_in(list(KINDS)))
        plain = rows.filter(pl.col("perturbation") == UNPERTURBED)
        return rows if plain.is_empty() else plain
