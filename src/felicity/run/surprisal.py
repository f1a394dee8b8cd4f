"""Surprisal of a user's own texts, by token, word, region or sentence, beside the columns they came with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.progress import Progress, no_progress
from felicity.core.regions import BAR, Span, remove_bars, split_bars
from felicity.core.schemas import sign_counts
from felicity.core.units import UNITS, convert_nats
from felicity.data import read_plain, read_table
from felicity.measures import BOUNDARIES, find_unicode_words
from felicity.run.audit import OVERLONG, audit_texts, refuse_overlong
from felicity.run.model import Model
from felicity.run.prompts import build_text_prompts, make_room
from felicity.run.sliding import describe_sliding, slides

By = Literal["token", "word", "unicode", "region", "sentence"]
SEPARATOR = BAR
CHUNK = 256


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Sentences to score: the table they came in, the sentences, and the context of each, if any."""

    table: pl.DataFrame
    texts: list[str]
    contexts: list[str | None]

    @property
    def plain(self) -> list[str]:
        """The sentences as a model reads them, without bars between regions."""
        return remove_bars(self.texts)[0]

    @property
    def barred(self) -> list[int]:
        """The numbers of the sentences with bars between regions, from 1."""
        return [place + 1 for place in remove_bars(self.texts)[1]]


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
    frame = pl.DataFrame(table.rows, schema=table.columns, orient="row", infer_schema_length=None)
    rows = [f"{path}, line {line}" for line in table.lines]
    return _take_columns(frame, table.column, rows, text=text, context=context, where=str(path))


def take_frame_of_texts(frame: pl.DataFrame, *, text: str = "text", context: str | None = None) -> Texts:
    """Sentences from the column `text` of a frame; `context` as in `read_texts`.

    Raises BadInput or UnknownName as it does.
    """

    def column(name: str, **_: object) -> list[str | None]:
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
        return [str(cell) if str(cell or "").strip() else None for cell in frame[name]]

    rows = [f"Row {number + 1}" for number in range(frame.height)]
    return _take_columns(frame, column, rows, text=text, context=context, where="the frame")


def _take_columns(
    frame: pl.DataFrame,
    column: Callable[..., list[Any]],
    rows: Sequence[str],
    *,
    text: str,
    context: str | None,
    where: str,
) -> Texts:
    """The columns of texts and contexts; `rows` is what messages call each row."""
    texts = column(text, option="text")
    for row, cell in zip(rows, texts, strict=True):
        if cell is None:
            raise BadInput(f"{row}: '{text}' is empty; every row needs a sentence.")
    named = context is not None and context in frame.columns
    if context is not None and not named and _is_almost(context, frame.columns):
        raise UnknownName("column", context, frame.columns, where=where)
    contexts = column(str(context), option="context") if named else [context] * len(texts)
    return Texts(table=frame, texts=[str(cell) for cell in texts], contexts=contexts)


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
    boundary: str = "auto",
    separator: str = SEPARATOR,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """One row per token, word, region or sentence, with the columns of the table that the texts came in.

    The column `surprisal` is in `unit`. `by="unicode"` divides texts by UAX 29, also those in scripts without
    spaces, with punctuation marks as words of their own. Words and regions carry the trailing-whitespace
    correction where the model can, unless `boundary` is 'plain'. Regions are parts of a text between
    separators, which are taken out before scoring in any case. Rows and places are numbered from 1.
    rank, entropy, top: further columns, of tokens only. spillover: surprisal of this many preceding units.

    Raises UnknownName, BadInput, or NotPossible if the model gives log-probabilities only.
    """
    check_units(by, unit, extras=bool(rank or entropy or top), spillover=spillover, boundary=boundary)
    texts, spans = split_regions(given.texts, separator) if by == "region" else (given.plain, [])
    if by == "unicode":
        spans = [find_unicode_words(text) for text in texts]
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
            regions = spans[piece] if by in ("region", "unicode") else None
            found = lm.words(texts[piece], context=contexts, regions=regions, boundary=boundary).drop("text")
            found = found.rename({"word": by.replace("unicode", "word")}).filter(
                pl.col("end") > pl.col("start")
            )
        parts.append(found.with_columns(pl.col("row") + begin))
    progress("Scoring", len(texts), len(texts))
    return _finish(pl.concat(parts), given.table, texts, unit, spillover)


def audit_surprisal(lm: Model, given: Texts) -> pl.DataFrame:
    """Rows of AUDIT for the sentences, before they are scored.

    Raises BadInput if one does not fit into the model's window.
    """
    prompts = build_text_prompts(given.plain, _contexts(given.contexts))
    encodings = lm.engine.encode(prompts)
    if not slides(lm.info):
        refuse_overlong(
            prompts.with_columns(context="context_text"),
            encodings,
            model=lm.info.name,
            window=lm.info.window,
            slides=lm.info.kind == "left-to-right",
        )
    audit = audit_texts(given.plain, prompts["context_text"].to_list(), encodings, barred=given.barred)
    sliding = describe_sliding(lm.info, encodings["n_over"].to_list())
    return audit.with_columns(
        pl.when(pl.lit(bool(sliding)) & (pl.col("check") == OVERLONG))
        .then(pl.lit(sliding))
        .otherwise("meaning")
        .alias("meaning")
    )


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


def split_regions(texts: Sequence[str], separator: str = SEPARATOR) -> tuple[list[str], list[list[Span]]]:
    """Texts without separators, and where their regions are.

    >>> split_regions(["The cat | sat | down."])
    (['The cat sat down.'], [[(0, 7), (8, 11), (12, 17)]])
    """
    split = [split_bars(text, separator) for text in texts]
    return [text for text, _ in split], [spans for _, spans in split]


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
    numbered = sign_counts(rows.drop("text").with_row_index("row", offset=1).explode(lists))
    place = pl.int_range(1, pl.len() + 1).over("row").alias("place")
    return numbered.with_columns(place, pl.lit(1).alias("n_tokens")).rename(
        {"tokens": "token", "logprob": "lp"}
    )


def _sentences(lm: Model, texts: list[str], contexts: list[str] | None) -> pl.DataFrame:
    return sign_counts(lm.score(texts, context=contexts).drop("text").with_row_index("row", offset=1))


def _finish(
    found: pl.DataFrame, table: pl.DataFrame, texts: Sequence[str], unit: str, spillover: int
) -> pl.DataFrame:
    """Surprisal in the requested unit, spillover, and the other columns of the texts."""
    surprisal = -pl.col("lp").cast(pl.Float64) * convert_nats(1.0, unit)
    scored = found.with_columns(surprisal.alias("surprisal")).drop("lp")
    if unit != "bits":
        # Bits are what a table is in unless it says otherwise, for `felicity plot` and whoever reads it.
        scored = scored.with_columns(pl.lit(unit).alias("unit"))
    if "entropy" in scored.columns:
        scored = scored.with_columns(pl.col("entropy") * convert_nats(1.0, unit))
    if "top_logprob" in scored.columns:
        listed = pl.col("top_logprob").list.eval(-pl.element() * convert_nats(1.0, unit))
        scored = scored.with_columns(listed.alias("top_surprisal")).drop("top_logprob")
    for back in range(1, spillover + 1):
        before = pl.col("surprisal").shift(back).over("row")
        scored = scored.with_columns(before.alias(f"surprisal_{back}_before"))
    own = make_room(table, scored.columns).with_columns(row=pl.int_range(1, pl.len() + 1))
    sentence = [] if "text" in own.columns else [pl.Series("text", list(texts))]
    whole = own.with_columns(sentence).join(scored, on="row", how="left", maintain_order="left_right")
    return whole.select("row", pl.exclude("row"))
