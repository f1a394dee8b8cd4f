"""Cloze pairs as they are kept: two sentences whose last word is the target.

In memory a pair is two sentences; as items it is one row per sentence with its frame (`context_text`) and
its target (`text`), which is what a cloze dataset looks like everywhere in felicity.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import read_bytes, read_frame, read_text, replacing, write_frame
from felicity.core.schemas import ITEMS, TEXT

CLOZE_ITEMS = {**ITEMS, "context_text": TEXT, "sentence": TEXT}
ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl", ".txt")


@dataclass(frozen=True)
class Pair:
    """Two sentences; `item` names the pair."""

    item: str
    first: str
    second: str

    @property
    def sentences(self) -> tuple[str, str]:
        """Both, in order."""
        return self.first, self.second


def clean(sentence: str) -> str:
    """A sentence without doubled spaces and without the comma or full stop at its end.

    >>> clean("A  cat is an animal , ")
    'A cat is an animal'
    """
    return " ".join(sentence.split()).rstrip(" ,.;")


def split_target(sentence: str) -> tuple[str, str]:
    """What stands before the last word, and the last word.

    >>> split_target("A cat is an animal")
    ('A cat is an', 'animal')
    """
    before, _, last = clean(sentence).rpartition(" ")
    return before, last


def build_items(
    pairs: Iterable[Pair], conditions: Sequence[str], *, name: str, phenomenon: str
) -> pl.DataFrame:
    """One row per sentence, with its frame and its target."""
    rows = []
    for pair in pairs:
        for condition, sentence in zip(conditions, pair.sentences, strict=True):
            before, target = split_target(sentence)
            rows.append((pair.item, name, phenomenon, condition, target, before, clean(sentence)))
    return pl.DataFrame(rows, schema=CLOZE_ITEMS, orient="row")


def pair_items(items: pl.DataFrame) -> list[Pair]:
    """Pairs of sentences from items, by their id.

    Raises BadInput if an item does not have two sentences.
    """
    pairs: list[Pair] = []
    # An empty cell is an empty sentence, which a rule reports.
    filled = items.with_columns(pl.col("context_text", "text").cast(pl.String).fill_null(""))
    whole = (
        filled.with_columns(pl.col("sentence").fill_null(""))
        if "sentence" in items.columns
        else filled.with_columns(pl.concat_str("context_text", "text", separator=" ").alias("sentence"))
    )
    keys = [name for name in ("suite", "item") if name in whole.columns]
    for key, part in whole.group_by(keys, maintain_order=True):
        if len(part) != 2:
            raise BadInput(f"Item '{key[-1]}' has {len(part)} sentences; a pair has two.")
        pairs.append(Pair(str(key[-1]), *part["sentence"].to_list()))
    return pairs


def check_items_file(path: Path) -> None:
    """Refuse a file that `write_items` could not write, before anything is made for it.

    Raises BadInput for another ending.
    """
    if path.suffix not in ENDINGS:
        raise BadInput(f"{path} ends in '{path.suffix}'; write {', '.join(ENDINGS)}.")


def write_items(items: pl.DataFrame, path: Path) -> None:
    """Write items as the file's ending says; .txt has one sentence per line, each with a comma, as published.

    Raises BadInput for another ending.
    """
    check_items_file(path)
    if path.suffix != ".txt":
        write_frame(items, path)
        return
    with replacing(path) as part:
        part.write_text("".join(f"{sentence},\n" for sentence in items["sentence"]), encoding="utf-8")


def read_sentence_pairs(path: Path) -> list[Pair]:
    """Pairs from a file: items as `write_items` writes them, or lines of sentences that come in pairs.

    Raises BadInput if the file is something else.
    """
    if path.suffix == ".txt":
        lines = [line for line in read_text(path).splitlines() if line.strip()]
        if len(lines) % 2:
            raise BadInput(f"{path} has {len(lines)} sentences, an odd number; its lines come in pairs.")
        both = zip(lines[::2], lines[1::2], strict=True)
        return [Pair(str(place), clean(one), clean(two)) for place, (one, two) in enumerate(both, start=1)]
    items = read_item_file(path)
    return pair_items(items)


def read_item_file(path: Path) -> pl.DataFrame:
    """Items from a file that `write_items` wrote.

    Raises BadInput if the file cannot be read or lacks a column.
    """
    if path.suffix not in ENDINGS:
        raise BadInput(f"{path} ends in '{path.suffix}'; felicity reads {', '.join(ENDINGS)} here.")
    items = _read_lines(path) if path.suffix == ".jsonl" else read_frame(path)
    for name in ("item", "condition", "text", "context_text"):
        if name not in items.columns:
            raise BadInput(
                f"{path} has no column '{name}'; a cloze file has item, condition, context_text, text."
            )
    return items.with_columns(pl.col("item").cast(pl.String))


def _read_lines(path: Path) -> pl.DataFrame:
    try:
        return pl.read_ndjson(read_bytes(path), infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        raise BadInput(f"{path} cannot be read as JSON lines: {str(error).splitlines()[0]}.") from error
