"""Repair a file of pairs under the given tokenizers: a sheet to review, then the set that was agreed on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.api.pairs.making import open_counters
from felicity.core.errors import BadInput
from felicity.data import Columns, Dataset, open_frequency, read_dataset
from felicity.run import infer_language
from felicity.stimuli.pairs import (
    Repairer,
    Signatures,
    find_language,
    list_languages,
    read_language,
    tabulate_repairs,
)

REFUSALS = {"no", "n", "drop", "reject", "0"}
SHEET = ("item", "status", "good", "bad", "decision")


@dataclass(frozen=True, kw_only=True)
class RepairedSet:
    """The sheet with every pair, and how many were kept, proposed or dropped."""

    sheet: pl.DataFrame

    @property
    def counts(self) -> dict[str, int]:
        """Pairs by what became of them."""
        return dict(self.sheet.group_by("status", maintain_order=True).len().iter_rows())


def repair_pairs(
    dataset: str,
    tokenizers: Sequence[str],
    *,
    columns: Columns | None = None,
    folder: Path | None = None,
    frequency: bool = True,
    band: float = 1.0,
    lexicon: str | None = None,
) -> RepairedSet:
    """Keep the pairs that are equally long under all tokenizers, propose replacements for the others.

    lexicon: where words are taken from, a built-in language or a folder; by default the language of the set.

    Raises BadInput if the dataset is not one of pairs, or its language is none that there are words of.
    """
    data = read_dataset(dataset, columns, folder=folder)
    items = data.items
    if set(items["condition"].unique()) != {"good", "bad"}:
        raise BadInput(f"{dataset} is not a set of pairs of a good and a bad sentence.")
    sides = [
        items.filter(pl.col("condition") == condition).select(
            "item", "suite", pl.col("text").alias(condition)
        )
        for condition in ("good", "bad")
    ]
    pairs = sides[0].join(sides[1].drop("suite"), on="item", maintain_order="left")
    words = read_language(lexicon or _find_lexicon(data)).lexicon
    repairer = Repairer(
        words,
        Signatures(open_counters(tokenizers)),
        frequency=open_frequency(words.language) if frequency else None,
        band=band,
    )
    repairs = repairer.repair(list(pairs.select("good", "bad").iter_rows()))
    sheet = tabulate_repairs(pairs["item"].to_list(), repairs)
    return RepairedSet(sheet=sheet.insert_column(1, pairs["suite"]))


def _find_lexicon(data: Dataset) -> str:
    code = infer_language(data.items["text"].to_list(), data.languages)
    language = find_language(code) if code else None
    if language is None:
        known = ", ".join(list_languages())
        raise BadInput(
            f"There are no words of the language of {data.name} ({code or 'unknown'}); name a language "
            f"({known}) or a folder of your own with --lexicon."
        )
    return language


def accept_repairs(sheet: pl.DataFrame) -> pl.DataFrame:
    """The pairs of a reviewed sheet: all that were kept, and the proposals that nobody refused.

    Raises BadInput if the sheet lacks a column.
    """
    for name in SHEET:
        if name not in sheet.columns:
            raise BadInput(f"The sheet has no column '{name}'; review the one that this command wrote.")
    decision = pl.col("decision").cast(pl.String).fill_null("").str.strip_chars().str.to_lowercase()
    kept = (pl.col("status") != "dropped") & ~decision.is_in(list(REFUSALS))
    columns = [name for name in ("suite", "good", "bad", "status", "reason") if name in sheet.columns]
    return sheet.filter(kept).select(columns)
