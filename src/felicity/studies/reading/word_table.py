"""The words of a study of reading: what was measured at each, its length and frequency, given surprisals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.files import read_frame
from felicity.core.frames import as_polars
from felicity.core.settings import Data
from felicity.core.units import NATS_PER_BIT
from felicity.data import Reading, is_table, read_reading, rename_columns
from felicity.studies.reading.settings import ReadingSettings

KEYS = ("text", "sentence", "position")
# MECO's codes of languages that wordfreq calls otherwise.
LANGUAGES = {"du": "nl", "ge": "de", "gr": "el", "sp": "es"}
PUNCTUATION = r"[^\p{L}\p{N}'’\-]"
# A logarithm of counts enters the regressions.
COUNTS = ("count", "freqcount")
GIVEN = {"row": pl.Int64, "model": pl.String, "surprisal": pl.Float64}


@dataclass(frozen=True, kw_only=True)
class WordTable:
    """Words with the columns that regressions need, and what a reader must know about them.

    words: those of Reading with row (a number), length, frequency, text_position (the word's number in its
    text), punctuation, sentence_first and sentence_last (1 or 0).
    """

    reading: Reading
    words: pl.DataFrame
    notes: tuple[str, ...]


def read_word_table(settings: ReadingSettings) -> WordTable:
    """The words and measures of a study.

    Raises BadInput, NotPossible or UnknownName for words that cannot be used.
    """
    reading = read_reading(
        settings.words,
        measures=settings.measures,
        folder=settings.source,
        language=settings.language,
        needed=settings.condition is None,
    )
    if settings.texts is not None:
        reading = _take_texts(reading, settings.texts)
    return complete_words(reading, settings)


def complete_words(reading: Reading, settings: ReadingSettings) -> WordTable:
    """A corpus with its lengths, frequencies and marks."""
    words = reading.words.drop("row", strict=False).with_row_index("row")
    words = words.with_columns(pl.col("row").cast(pl.Int64), pl.col("position").cast(pl.Int64))
    if "length" not in words.columns or not words["length"].dtype.is_numeric():
        words = words.with_columns(length=pl.col("word").str.len_chars())
    words = words.with_columns(
        pl.col("length").cast(pl.Float64),
        text_position=pl.int_range(1, pl.len() + 1).over("text"),
        punctuation=pl.col("word").str.contains(PUNCTUATION).cast(pl.Int64),
        sentence_first=(pl.int_range(pl.len()) == 0).over("text", "sentence").cast(pl.Int64),
        sentence_last=(pl.int_range(pl.len()) == pl.len() - 1).over("text", "sentence").cast(pl.Int64),
    )
    notes = list(reading.notes)
    if reading.measures:
        words, said = add_frequency(words, settings)
        notes.append(said)
    return WordTable(reading=reading, words=words, notes=tuple(notes))


def _take_texts(reading: Reading, most: int) -> Reading:
    """A corpus with only its first texts."""
    kept = reading.words["text"].unique(maintain_order=True).head(most)
    chosen = pl.col("text").is_in(kept.implode())
    total = reading.words["text"].n_unique()
    note = f"Only the first {len(kept):,} of {total:,} texts are used."
    trials = None if reading.trials is None else reading.trials.filter(chosen)
    return replace(
        reading,
        words=reading.words.filter(chosen),
        sentences=reading.sentences.filter(chosen),
        trials=trials,
        notes=(*reading.notes, note),
    )


def add_frequency(words: pl.DataFrame, settings: ReadingSettings) -> tuple[pl.DataFrame, str]:
    """The words with a column `frequency`, and where it is from: the user's table or column, or wordfreq.

    Raises NotPossible without wordfreq, BadInput or UnknownName for a table that has no frequencies.
    """
    given = settings.frequencies
    if isinstance(given, str) and given in words.columns:
        return words.with_columns(pl.col(given).cast(pl.Float64).alias("frequency")), (
            f"Frequencies are the column {given}."
        )
    if given is not None:
        table, name = _read_frequencies(given)
        plain = pl.col("word").str.strip_chars_start("\"'“‘([").str.strip_chars_end("\"'”’)].,;:!?")
        bare = words.drop("frequency", strict=False).with_columns(plain.str.to_lowercase().alias("_form"))
        joined = bare.join(table, left_on="_form", right_on="form", how="left", maintain_order="left")
        lacking = int(joined["frequency"].null_count())
        return joined.drop("_form"), (
            f"Frequencies are those of {name}; {lacking:,} of {words.height:,} words have none."
        )
    if "frequency" in words.columns and words["frequency"].dtype.is_numeric():
        return words.with_columns(pl.col("frequency").cast(pl.Float64)), (
            "Frequencies are the column frequency of the words."
        )
    language = LANGUAGES.get(settings.language, settings.language)
    values = _count_with_wordfreq(words["word"].to_list(), language)
    unknown = sum(value == 0 for value in values)
    return words.with_columns(frequency=pl.Series(values, dtype=pl.Float64)), (
        f"Frequencies are Zipf's, log10 per billion words, of wordfreq ({language}); {unknown:,} of "
        f"{words.height:,} words are unknown there and have 0."
    )


def _read_frequencies(given: Data) -> tuple[pl.DataFrame, str]:
    """A table of words and logarithms of frequency, in lower case."""
    if isinstance(given, str | Path):
        table, name = rename_columns(read_frame(Path(given))), Path(given).name
    else:
        table, name = rename_columns(as_polars(given)), "a frame"
    counted = next((column for column in table.columns if column.lower() in COUNTS), None)
    if "word" not in table.columns:
        raise UnknownName("column", "word", table.columns, where=name)
    if "frequency" not in table.columns and counted is None:
        raise UnknownName("column", "frequency", table.columns, where=name, hint="or count")
    value = pl.col("frequency") if "frequency" in table.columns else (pl.col(str(counted)) + 1).log10()
    forms = table.select(
        pl.col("word").cast(pl.String).str.to_lowercase().alias("form"),
        value.cast(pl.Float64).alias("frequency"),
    )
    return forms.group_by("form", maintain_order=True).agg(pl.col("frequency").max()), name


def _count_with_wordfreq(words: Sequence[str], language: str) -> list[float]:
    try:
        from wordfreq import zipf_frequency
    except ImportError as error:
        raise NotPossible(
            "Frequencies need wordfreq or a table; run `pip install 'felicity[stimuli]'`, or give a table "
            "with --frequencies."
        ) from error
    try:
        found = {word: float(zipf_frequency(word, language)) for word in set(words)}
    except (LookupError, ValueError, ImportError) as error:  # no such list, no such tag, no segmenter
        raise NotPossible(
            f"wordfreq has no frequencies for the language '{language}'; give a table with --frequencies."
        ) from error
    return [found[word] for word in words]


def take_surprisals(given: Sequence[Data], words: pl.DataFrame, *, unit: str) -> pl.DataFrame:
    """Surprisals that someone else computed, in bits: rows of GIVEN, one per word and model.

    given: names of columns of the words, or tables with the columns word and surprisal, if there are several
    models model, and sentence and position unless the words stand in the same order.

    Raises BadInput for the surprisals of another text, naming the first word that differs.
    """
    parts = []
    for one in given:
        if isinstance(one, str) and not is_table(one):
            if one not in words.columns or not words[one].dtype.is_numeric():
                numeric = [name for name, dtype in words.schema.items() if dtype.is_numeric()]
                raise UnknownName("surprisal column", one, numeric, hint="or give a table")
            parts.append(words.select("row", pl.lit(one).alias("model"), pl.col(one).alias("surprisal")))
            continue
        parts += _read_given(one, words)
    whole = pl.concat([part.cast(GIVEN) for part in parts])  # type: ignore[arg-type]
    names = [part["model"][0] for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"Two sets of surprisals are called '{name}'; name each in a column 'model'.")
    for (name,), part in whole.group_by("model", maintain_order=True):
        values = part["surprisal"].drop_nulls()
        if values.is_empty():
            raise BadInput(f"The surprisals '{name}' have no value for any of these words.")
        if (values < 0).all():
            raise BadInput(f"The surprisals '{name}' are all below 0, like log-probabilities; negate them.")
    factor = 1.0 if unit == "bits" else 1.0 / NATS_PER_BIT
    return whole.with_columns(pl.col("surprisal") * factor)


def _read_given(given: Data, words: pl.DataFrame) -> list[pl.DataFrame]:
    """The models of one table of surprisals, each joined to the words."""
    if isinstance(given, str | Path):
        table, name = read_frame(Path(given)), Path(given).name
    else:
        table, name = as_polars(given), "the frame of surprisals"
    table = rename_columns(table)
    for column in ("word", "surprisal"):
        if column not in table.columns:
            raise UnknownName("column", column, table.columns, where=name)
    if not table["surprisal"].dtype.is_numeric():
        raise BadInput(f"The column 'surprisal' of {name} does not hold numbers.")
    stem = name.split(".")[0]
    table = table.with_columns(pl.col("word").cast(pl.String).str.strip_chars())
    parts = table.partition_by("model", maintain_order=True) if "model" in table.columns else [table]
    return [
        _join_given(part, words, name).with_columns(
            model=pl.lit(str(part["model"][0]) if "model" in part.columns else stem)
        )
        for part in parts
    ]


def _join_given(part: pl.DataFrame, words: pl.DataFrame, name: str) -> pl.DataFrame:
    """One model's surprisals beside the words, by sentence and position, or in order.

    Raises BadInput where the words are others.
    """
    plain = words.select("row", *KEYS, pl.col("word").str.strip_chars())
    if {"sentence", "position"} <= set(part.columns):
        keys = [key for key in KEYS if key in part.columns]
        own = part.with_columns(pl.col(key).cast(plain.schema[key], strict=False) for key in keys)
        if own.select(keys).is_duplicated().any():
            raise BadInput(f"{name} has two surprisals for one word; give every word one row.")
        joined = plain.join(own, on=keys, how="left", maintain_order="left", suffix="_given")
        other = joined.filter(pl.col("word_given").is_not_null() & (pl.col("word_given") != pl.col("word")))
    else:
        if part.height != plain.height:
            raise BadInput(
                f"{name} has {part.height:,} surprisals and there are {plain.height:,} words; give the same "
                "words in the same order, or columns sentence and position."
            )
        own = part.select(pl.col("word").alias("word_given"), "surprisal")
        joined = pl.concat([plain, own], how="horizontal")
        other = joined.filter(pl.col("word_given") != pl.col("word"))
    if other.height:
        row = other.row(0, named=True)
        raise BadInput(
            f"{name} has surprisals of another text: word {row['position']} of sentence {row['sentence']} is "
            f"'{row['word_given']}' there and '{row['word']}' here."
        )
    return joined.select("row", "surprisal")
