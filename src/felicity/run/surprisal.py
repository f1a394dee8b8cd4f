"""Surprisal of a user's own texts, by token, word, region or sentence, beside the columns they came with."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.progress import Progress, no_progress
from felicity.core.schemas import sign_counts
from felicity.core.units import UNITS, convert
from felicity.data import read_plain, read_table
from felicity.measures import BOUNDARIES, find_words
from felicity.run.model import Model

By = Literal["token", "word", "region", "sentence"]
SEPARATOR = "|"
CHUNK = 256


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Sentences to score: the table they came in, the sentences, and the context of each, if any."""

    table: pl.DataFrame
    texts: list[str]
    contexts: list[str | None]


def read_texts(source: str | Path, *, text: str = "text", context: str | None = None) -> Texts:
    """Sentences from a .txt file, one per line, or from the column `text` of a table.

    context: the name of a column, or else a text that precedes every sentence; a single word that is almost
    the name of a column is refused.

    Raises BadInput if the file cannot be used, UnknownName if it has no column of that name.
    """
    path = Path(source)
    if path.suffix.lower() in (".txt", "") and path.suffixes[-2:] != [".csv", ".gz"]:
        return take_lines(read_plain(path), context=context, where=str(path))
    table = read_table(path)
    found = table.column(text, option="text")
    for cell, line in zip(found, table.lines, strict=True):
        if cell is None:
            raise BadInput(f"{path}, line {line}: '{text}' is empty; every row needs a sentence.")
    texts = [str(cell) for cell in found]
    named = context is not None and context in table.columns
    if context is not None and not named and _is_almost(context, table.columns):
        raise UnknownName("column", context, table.columns, where=str(path))
    contexts = table.column(str(context), option="context") if named else [context] * len(texts)
    frame = pl.DataFrame(table.rows, schema=table.columns, orient="row", infer_schema_length=None)
    return Texts(table=frame, texts=texts, contexts=contexts)


def _is_almost(word: str, columns: Sequence[str]) -> bool:
    """Whether a word, not a sentence, is probably a misspelt name of a column."""
    lower = [name.lower() for name in columns]
    return " " not in word and bool(get_close_matches(word.lower(), lower, cutoff=0.75))


def take_lines(text: str, *, context: str | None = None, where: str = "the input") -> Texts:
    """Sentences from running lines; empty lines are skipped.

    Raises BadInput if there is none.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise BadInput(f"There is no sentence in {where}; write one per line.")
    return Texts(table=pl.DataFrame({"text": lines}), texts=lines, contexts=[context] * len(lines))


def measure_surprisal(
    lm: Model,
    given: Texts,
    *,
    by: By = "word",
    unit: str = "bits",
    rank: bool = False,
    entropy: bool = False,
    top: int = 0,
    spillover: int = 0,
    boundary: str = "corrected",
    separator: str = SEPARATOR,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """One row per token, word, region or sentence, with the columns of the table that the texts came in.

    The column `surprisal` is in `unit`. Words carry the trailing-whitespace correction unless `boundary`
    is 'plain'. Regions are parts of a text between separators, which are taken out before scoring.
    rank, entropy, top: further columns, of tokens only. spillover: surprisal of this many preceding units.

    Raises UnknownName, BadInput, or NotPossible if the model gives log-probabilities only.
    """
    check_units(by, unit, extras=bool(rank or entropy or top), spillover=spillover, boundary=boundary)
    texts, regions = given.texts, None
    if by == "region":
        texts, regions = split_regions(given.texts, separator)
    parts = []
    progress = progress or no_progress
    for begin in range(0, len(texts), CHUNK):
        progress("Scoring", begin, len(texts))
        piece = slice(begin, begin + CHUNK)
        contexts = _contexts(given.contexts[piece])
        if by == "token":
            found = _tokens(lm, texts[piece], contexts, rank=rank, entropy=entropy, top=top)
        elif by == "sentence":
            found = _sentences(lm, texts[piece], contexts)
        else:
            spans = regions[piece] if regions is not None else [find_words(text) for text in texts[piece]]
            found = lm.words(texts[piece], context=contexts, regions=spans, boundary=boundary)
            found = found.rename({"word": by}).filter(pl.col("end") > pl.col("start"))
        parts.append(found.with_columns(pl.col("text").cast(pl.Int64) + begin))
    progress("Scoring", len(texts), len(texts))
    return _finish(pl.concat(parts), given.table, texts, unit, spillover)


def check_units(by: str, unit: str, *, extras: bool, spillover: int, boundary: str) -> None:
    """Check how texts are to be divided and what is requested, before a model is opened.

    Raises UnknownName, or NotPossible for what a unit of text does not have.
    """
    for what, name, known in (
        ("unit of text", by, get_args(By)),
        ("unit", unit, UNITS),
        ("boundary", boundary, BOUNDARIES),
    ):
        if name not in known:
            raise UnknownName(what, name, known)
    if extras and by != "token":
        raise NotPossible("Rank, entropy and the most probable tokens exist only for tokens; use --by token.")
    if spillover and by == "sentence":
        raise NotPossible("A sentence has no spillover; ask for it with --by token, word or region.")


def split_regions(
    texts: Sequence[str], separator: str = SEPARATOR
) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """Texts without separators, and where their regions are.

    >>> split_regions(["The cat | sat | down."])
    (['The cat sat down.'], [[(0, 7), (8, 11), (12, 17)]])
    """
    plain, spans = [], []
    for text in texts:
        pieces = [piece.strip() for piece in text.split(separator)]
        joined, own = "", []
        for piece in pieces:
            start = len(joined) + (1 if joined and piece else 0)
            joined = f"{joined} {piece}" if joined and piece else joined + piece
            own.append((start if piece else len(joined), len(joined)))
        plain.append(joined)
        spans.append(own)
    return plain, spans


def _contexts(contexts: Sequence[str | None]) -> list[str] | None:
    """One context each, or none at all.

    Raises BadInput if only some sentences have one.
    """
    if all(context is None for context in contexts):
        return None
    if any(context is None for context in contexts):
        raise BadInput("Some rows have a context and some have none; score them in two files.")
    return [str(context) for context in contexts]


def _tokens(
    lm: Model, texts: list[str], contexts: list[str] | None, *, rank: bool, entropy: bool, top: int
) -> pl.DataFrame:
    rows = lm.tokens(texts, context=contexts, rank=rank, entropy=entropy, top=top)
    pieces = [
        [text[start:end] for start, end in zip(row["start"], row["end"], strict=True)]
        for text, row in zip(texts, rows.iter_rows(named=True), strict=True)
    ]
    rows = rows.with_columns(pl.Series("piece", pieces, dtype=pl.List(pl.String)))
    lists = [name for name in rows.columns if name != "text"]
    numbered = sign_counts(rows.drop("text").with_row_index("text").explode(lists))
    place = pl.int_range(pl.len()).over("text").alias("place")
    return numbered.with_columns(place, pl.lit(1).alias("n_tokens")).rename(
        {"tokens": "token", "logprob": "lp"}
    )


def _sentences(lm: Model, texts: list[str], contexts: list[str] | None) -> pl.DataFrame:
    return sign_counts(lm.score(texts, context=contexts).drop("text").with_row_index("text"))


def _finish(
    found: pl.DataFrame, table: pl.DataFrame, texts: Sequence[str], unit: str, spillover: int
) -> pl.DataFrame:
    """Surprisal in the requested unit, spillover, and the other columns of the texts."""
    surprisal = -pl.col("lp").cast(pl.Float64) * convert(1.0, unit)
    scored = found.with_columns(surprisal.alias("surprisal")).drop("lp")
    if "entropy" in scored.columns:
        scored = scored.with_columns(pl.col("entropy") * convert(1.0, unit))
    if "top_logprob" in scored.columns:
        listed = pl.col("top_logprob").list.eval(-pl.element() * convert(1.0, unit))
        scored = scored.with_columns(listed.alias("top_surprisal")).drop("top_logprob")
    for back in range(1, spillover + 1):
        before = pl.col("surprisal").shift(back).over("text")
        scored = scored.with_columns(before.alias(f"surprisal_{back}_before"))
    scored = scored.rename({"text": "row"})
    own = table.with_columns(pl.Series("row", range(len(table)), dtype=pl.Int64))
    clash = [name for name in own.columns if name in scored.columns and name != "row"]
    own = own.rename({name: f"{name}_given" for name in clash})
    sentence = [] if "text" in own.columns else [pl.Series("text", list(texts))]
    whole = own.with_columns(sentence).join(scored, on="row", how="left", maintain_order="left_right")
    return whole.with_columns((pl.col("row") + 1).alias("row")).select("row", pl.exclude("row"))
