"""The input of a report: the tables of a run and its manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.errors import BadInput
from felicity.core.schemas import (
    AUDIT,
    CONTEXTS,
    ESTIMATES,
    ITEMS,
    JUDGEMENTS,
    REQUESTS,
    SCORES,
    TOKENS,
    check_schema,
    empty_table,
)

TABLES = {
    "items": ITEMS,
    "requests": REQUESTS,
    "tokens": TOKENS,
    "scores": SCORES,
    "judgements": JUDGEMENTS,
    "estimates": ESTIMATES,
    "audit": AUDIT,
    "contexts": CONTEXTS,
}
PAIR = {"good", "bad"}


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """The tables of one run and its manifest; the schemas are those of `felicity.core.schemas`.

    regions: mean surprisal of each region with its interval (suite, condition, region, name, n, mean, low,
    high). baselines: what needs no model, by suite. explorer: address of a page that shows every item, if
    there is one.

    Raises BadInput if a table lacks a column or nothing was estimated.
    """

    manifest: Mapping[str, Any]
    items: pl.DataFrame
    requests: pl.DataFrame
    tokens: pl.DataFrame
    scores: pl.DataFrame
    judgements: pl.DataFrame
    estimates: pl.DataFrame
    audit: pl.DataFrame
    contexts: pl.DataFrame = field(default_factory=lambda: empty_table(CONTEXTS))
    regions: pl.DataFrame | None = None
    correlations: pl.DataFrame | None = None
    fillers: pl.DataFrame | None = None
    baselines: pl.DataFrame | None = None
    headline: Headline = ACCURACY
    explorer: str = ""

    def __post_init__(self) -> None:
        for name, schema in TABLES.items():
            check_schema(getattr(self, name), schema, name)
        if self.estimates.filter(pl.col("level") == "overall").is_empty():
            raise BadInput(
                "The table 'estimates' has no row of level 'overall'; finish the run before its report."
            )

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The estimated measures, in the order of the manifest; the first one leads the report."""
        estimated = self.estimates.filter(pl.col("level") == "overall")["measure"].unique(maintain_order=True)
        asked = [str(name) for name in self.manifest.get("measures") or ()]
        ranked = {name: rank for rank, name in reversed(list(enumerate(asked)))}
        return tuple(sorted(estimated, key=lambda name: ranked.get(name, len(asked))))

    @cached_property
    def pairs(self) -> bool:
        """Whether every stimulus belongs to a minimal pair, so that chance is one half."""
        return self.headline.chance is not None and set(self.items["condition"].unique()) <= PAIR

    @cached_property
    def chance(self) -> float | None:
        """What guessing would give; None if that is not known: of pairs, or where the dataset says it."""
        known = self.pairs or self.headline.chance != ACCURACY.chance
        return self.headline.chance if known or self.headline.kind == "concordance" else None

    def estimated(self, level: str, measure: str) -> pl.DataFrame:
        """The estimates of one level under one measure, best first; NaN as null."""
        chosen = (pl.col("level") == level) & (pl.col("measure") == measure)
        rows = self.estimates.filter(chosen).with_columns(pl.col("accuracy", "low", "high").fill_nan(None))
        return rows.sort("accuracy", "name", descending=[True, False], nulls_last=True)

    def judged(self, measure: str) -> pl.DataFrame:
        """The judgements under one measure."""
        return self.judgements.filter(pl.col("measure") == measure)
