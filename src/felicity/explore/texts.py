"""Texts that people read: what was measured at every word, beside its surprisal under every model.

A passage is what is shown at a time: a text, or several short ones in a row, such as single sentences.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.data import name_unit
from felicity.run import StudyFolder

KEYS = ["text", "sentence", "position"]
# The columns that make a table of words one of texts that were read.
NEEDED = {*KEYS, "word", "model", "surprisal"}
# Texts of fewer words are shown together, up to so many words.
TOGETHER = 150
# Numbers that a page without a server holds.
MOST_NUMBERS = 2_000_000
CORRECTED, PLAIN, GIVEN = "corrected", "plain", "given"


@dataclass(frozen=True, kw_only=True)
class TextCollection:
    """The words of a study of reading, in reading order.

    table: one row per word and model, with the measures as means over readers. residuals: why a word is left
    out, or what the regression with surprisal does not predict; empty if the study kept none.
    """

    name: str
    dataset: str
    measures: tuple[str, ...]
    table: pl.DataFrame
    residuals: pl.DataFrame

    @cached_property
    def models(self) -> list[str]:
        """The names of the models, and of surprisals that were given."""
        return [str(name) for name in self.table["model"].unique(maintain_order=True)]

    @cached_property
    def words(self) -> pl.DataFrame:
        """One row per word, with the number of its passage."""
        own = self.table.filter(model=self.models[0])
        sizes = own.group_by("text", maintain_order=True).len()
        passages = _pack(sizes["len"].to_list())
        return own.join(
            sizes.select("text", passage=pl.Series(passages, dtype=pl.Int64)),
            on="text",
            maintain_order="left",
        )

    @cached_property
    def ways(self) -> dict[str, list[str]]:
        """How the tokens of words are summed, by model, the way that leads first."""
        found = {}
        for model in self.models:
            own = self.table.filter(model=model)
            has = [
                way
                for way in (CORRECTED, PLAIN)
                if (name := f"surprisal_{way}") in own.columns and own[name].null_count() < own.height
            ]
            lead = [way for way in has if own["surprisal"].equals(own[f"surprisal_{way}"])]
            found[model] = [*lead, *(way for way in has if way not in lead)] or [GIVEN]
        return found


def _pack(sizes: list[int]) -> list[int]:
    """The number of each text's passage: as many texts in a row as have few words together.

    >>> _pack([100, 40, 20, 900, 10])
    [0, 0, 1, 2, 3]
    """
    numbers, room, number = list[int](), 0, -1
    for size in sizes:
        if size > room:
            number, room = number + 1, TOGETHER
        room -= size
        numbers.append(number)
    return numbers


def has_texts(study: StudyFolder) -> bool:
    """Whether a study kept words with surprisals, as `felicity reading` does."""
    return set(study.record.get("tables", {}).get("words", ())) >= NEEDED


def open_texts(study: StudyFolder) -> TextCollection:
    """The words of a finished study of reading.

    Raises BadInput if it has none.
    """
    tables = study.read_tables()
    words = tables["words"]
    if words.is_empty():
        raise BadInput(f"The study in {study.path} has no words; run it again.")
    dataset = Path(str(study.facts["words"])).name
    known = tuple(name for name in study.facts.get("measures", ()) if name in words.columns)
    return TextCollection(
        name=dataset,
        dataset=dataset,
        measures=known,
        table=words,
        residuals=tables.get("residuals", pl.DataFrame()),
    )


def describe_texts(texts: TextCollection) -> dict[str, Any]:
    """Names, models, measures with units, and passages of a collection."""
    passages = []
    for _, part in texts.words.group_by("passage", maintain_order=True):
        names = part["text"].unique(maintain_order=True).to_list()
        label = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        opening = " ".join(part["word"].head(6).to_list())
        passages.append({"label": label, "texts": names, "words": part.height, "opening": opening})
    return {
        "name": texts.name,
        "dataset": texts.dataset,
        "models": [{"name": name} for name in texts.models],
        "ways": texts.ways,
        "measures": list(texts.measures),
        "units": {measure: name_unit(measure) for measure in texts.measures},
        "passages": passages,
        "residuals": not texts.residuals.is_empty(),
        "facets": [],
        "views": ["words"],
    }


def read_passage(texts: TextCollection, text: str = "") -> dict[str, Any]:
    """The passage that a text is in, by default the first: a list per column, in reading order.

    left_out: by measure, the number of the reason in `reasons` for each word, or null.

    Raises UnknownName.
    """
    words = texts.words
    if text and text not in words["text"]:
        raise UnknownName("text", text, words["text"].unique(maintain_order=True).to_list())
    number = words.filter(text=text)["passage"][0] if text else 0
    own = words.filter(passage=number)
    scored = texts.table.join(own.select("text").unique(), on="text", how="semi")
    surprisal = {}
    for model in texts.models:
        part = own.select(KEYS).join(scored.filter(model=model), on=KEYS, how="left", maintain_order="left")
        columns = {way: "surprisal" if way == GIVEN else f"surprisal_{way}" for way in texts.ways[model]}
        surprisal[model] = {way: part[column].to_list() for way, column in columns.items()}
    return {
        **{name: own[name].to_list() for name in (*KEYS, "word")},
        "measures": {measure: own[measure].to_list() for measure in texts.measures},
        "surprisal": surprisal,
        **_read_residuals(texts, own),
    }


def _read_residuals(texts: TextCollection, own: pl.DataFrame) -> dict[str, Any]:
    """Reasons for leaving out words, by measure, and residuals by measure and model."""
    reasons: dict[str, int] = {}
    left_out: dict[str, list[int | None]] = {}
    residual: dict[str, dict[str, list[float | None]]] = {}
    if texts.residuals.is_empty():
        return {"reasons": [], "left_out": left_out, "residual": residual}
    near = texts.residuals.join(own.select("text").unique(), on="text", how="semi")
    for (measure, model), part in near.group_by("measure", "model", maintain_order=True):
        rows = own.select(KEYS).join(part, on=KEYS, how="left", maintain_order="left")
        residual.setdefault(str(measure), {})[str(model)] = rows["residual"].to_list()
        if measure not in left_out:
            left_out[str(measure)] = [
                None if why is None else reasons.setdefault(why, len(reasons)) for why in rows["left_out"]
            ]
    return {"reasons": list(reasons), "left_out": left_out, "residual": residual}


def count_numbers(texts: TextCollection) -> int:
    """How many times, surprisals and residuals there are."""
    columns = len(texts.measures) + sum(len(ways) for ways in texts.ways.values())
    return texts.words.height * columns + texts.residuals.height


def gather_passages(texts: TextCollection) -> dict[str, Any]:
    """Everything for a page without a server.

    Raises NotPossible if there are too many words for one file.
    """
    numbers = count_numbers(texts)
    if numbers > MOST_NUMBERS:
        raise NotPossible(
            f"{texts.dataset} has {numbers:,} times, surprisals and residuals; a page without a server holds "
            f"at most {MOST_NUMBERS:,}: explore it without --static, or name fewer models."
        )
    about = describe_texts(texts)
    first = [passage["texts"][0] for passage in about["passages"]]
    return {"about": about, "passages": [read_passage(texts, str(name)) for name in first]}
