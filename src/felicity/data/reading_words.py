"""Words in reading order with what was measured at each: a user's table, or an export of `felicity rate`.

A table has one row per word, or per word and reader, with a column `word` and columns that say which sentence
and, if there are several, which text the word is of. Every other column of numbers with the name of a measure
is one. Words are found in the text that a model reads by their characters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_frame
from felicity.core.frames import Frame, as_polars
from felicity.core.regions import is_unspaced

# What a column may be called, letters and figures only, in lower case; the first is its name from then on.
COLUMNS: dict[str, tuple[str, ...]] = {
    "text": ("text", "story", "textid", "article", "trialid"),
    "sentence": ("sentence", "sentid", "sentenceid", "sentnum"),
    "position": ("position", "wordn", "wordnumber", "contextlength", "zone", "ianum", "wordinsentence"),
    "word": ("word", "ia"),
    "reader": ("reader", "participant", "subj", "subject", "rater", "uniform"),
    "sentence_text": ("sentencetext", "fullsentence"),
    "frequency": ("frequency", "freq", "logfrequency", "zipf"),
}
TIMES: dict[str, tuple[str, ...]] = {
    "self_paced": ("selfpaced", "rt", "rtms", "spr", "selfpacedreadingtime", "time", "readingtime"),
    "maze": ("maze", "mazert"),
    "first_fixation": ("firstfixation", "rtfirstfix", "firstfixrt"),
    "first_pass": ("firstpass", "rtfirstpass", "gaze", "gazert", "gazeduration"),
    "right_bounded": ("rightbounded", "rtrightbound"),
    "go_past": ("gopast", "rtgopast"),
    "total": ("total", "totalrt", "totalreadingtime"),
}
OTHERS: dict[str, tuple[str, ...]] = {
    "regression": ("regression", "regressionin", "regressionout"),
    "elan": ("elan",),
    "lan": ("lan",),
    "n400": ("n400",),
    "epnp": ("epnp",),
    "p600": ("p600",),
    "pnp": ("pnp",),
    "cloze": ("cloze", "clozeprobability", "cp"),
}
MEASURES = TIMES | OTHERS
POTENTIALS = ("elan", "lan", "n400", "epnp", "p600", "pnp")
KEYS = ("text", "sentence", "position")
# A median below this is in seconds: nobody reads a word in so few milliseconds.
SECONDS_BELOW = 20.0
MOST_NAMED = 3
# If more words than this share are not in their sentences, these are others.
MOST_LOST = 0.5


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Words in order, what was measured, and the sentences that a model reads.

    words: text, sentence, position, word, start, end (characters of the sentence; null if the word is not
    in it), the measures as means over readers, and further columns. trials: one row per word and reader.
    sentences: text, sentence, sentence_text, in reading order. times: the measures that are times in ms.
    notes: what a reader must know. effects: observed effects by item, for corpora of conditions.
    """

    name: str
    words: pl.DataFrame
    sentences: pl.DataFrame
    measures: tuple[str, ...]
    trials: pl.DataFrame | None = None
    language: str | None = None
    notes: tuple[str, ...] = ()
    effects: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def times(self) -> tuple[str, ...]:
        """The measures in milliseconds."""
        return tuple(name for name in self.measures if name in TIMES)


def name_unit(measure: str) -> str:
    """What a measure is in: milliseconds, microvolts, or nothing that has a name.

    >>> name_unit("first_pass"), name_unit("n400"), name_unit("cloze")
    ('ms', 'µV', '')
    """
    return "ms" if measure in TIMES else "µV" if measure in POTENTIALS else ""


def read_words(source: str | Path | Frame, *, measures: Sequence[str] = (), needed: bool = True) -> Reading:
    """The words and measures of a table.

    measures: names of columns, or of measures; all known ones if none is named. needed: refuse a table
    without any.

    Raises BadInput or UnknownName for a table that cannot be used, naming the rows.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        table, name = read_frame(path), path.name
    else:
        table, name = as_polars(source), "a frame"
    table = _take_export(rename_columns(table, measures))
    for column in ("word", "sentence"):
        if column not in table.columns:
            raise UnknownName(
                "column", column, table.columns, where=name, hint="give the column that holds it this name"
            )
    chosen = choose_measures(table, measures, where=name, needed=needed)
    if "text" not in table.columns:
        table = table.with_columns(text=pl.col("sentence").cast(pl.String))
    if "position" not in table.columns:
        within = ["text", "sentence", *(["reader"] if "reader" in table.columns else [])]
        table = table.with_columns(position=pl.int_range(1, pl.len() + 1).over(within))
    table = table.with_columns(
        pl.col("text", "sentence", "word").cast(pl.String), pl.col("position").cast(pl.Int64, strict=False)
    )
    return assemble(name, table, chosen)


def rename_columns(table: pl.DataFrame, measures: Sequence[str] = ()) -> pl.DataFrame:
    """Columns under the names that are used here, whatever a corpus calls them; a name in use stays."""
    taken = set(measures)
    renamed = {}
    for name, spellings in (COLUMNS | MEASURES).items():
        if name in table.columns:
            continue
        for column in table.columns:
            plain = "".join(character for character in column.lower() if character.isalnum())
            if plain in spellings and column not in taken and column not in renamed:
                renamed[column] = name
                break
    table = table.rename(renamed)
    # A column 'sentence' with spaces in every cell holds the sentence itself.
    sentences = table.get_column("sentence", default=pl.Series([0]))
    if sentences.dtype == pl.String and "sentence_text" not in table.columns:
        whole = bool(sentences.str.contains(" ").all())
        table = table.with_columns(sentence_text=pl.col("sentence")) if whole else table
    return table


def _take_export(table: pl.DataFrame) -> pl.DataFrame:
    """The words of an export of `felicity rate`: one sentence per item and condition."""
    if not {"item", "condition", "trial", "reader"} <= set(table.columns) or "sentence" in table.columns:
        return table
    named = pl.concat_str("item", pl.col("condition").fill_null(""), separator="/")
    table = table.with_columns(sentence=named, text=named)
    if "foil" in table.columns and table["foil"].is_not_null().any():
        # In a maze every word is answered; a wrong choice is no reading time.
        right = pl.col("correct").fill_null(True)
        table = table.with_columns(pl.when(right).then("self_paced").alias("maze")).drop("self_paced")
    return table


def choose_measures(
    table: pl.DataFrame, asked: Sequence[str], *, where: str, needed: bool = True
) -> tuple[str, ...]:
    """The columns that hold measures; there may be none unless one is needed.

    Raises UnknownName for one that is not there, BadInput if there is none or it holds no numbers.
    """
    present = [name for name in MEASURES if name in table.columns and table[name].dtype.is_numeric()]
    empty = [name for name in MEASURES if name in table.columns and table[name].null_count() == table.height]
    if empty and (not present or set(empty) & set(asked)):
        raise BadInput(f"{where}: '{empty[0]}' is empty in every row; name another measure.")
    for name in asked:
        if name not in table.columns:
            raise UnknownName("measure", name, [*present, *table.columns], where=where)
        if not table[name].dtype.is_numeric():
            raise BadInput(f"The measure '{name}' of {where} is not a column of numbers; name another.")
    chosen = tuple(dict.fromkeys(asked)) or tuple(present)
    if not chosen and needed:
        raise BadInput(
            f"{where} has no column that is known as a measure; name one with --measure "
            f"(columns: {', '.join(table.columns)})."
        )
    return chosen


def assemble(
    name: str,
    table: pl.DataFrame,
    measures: Sequence[str],
    *,
    trials: pl.DataFrame | None = None,
    notes: Iterable[str] = (),
    language: str | None = None,
    effects: Mapping[str, pl.DataFrame] | None = None,
) -> Reading:
    """Words, trials and sentences from a table with one row per word, or per word and reader, checked.

    trials: rows of single readers, if the table has none.

    Raises BadInput for words out of order, two words of one place, times that are none, and lone readers.
    """
    check_places(table, name)
    said = [*notes, *check_times(table, [m for m in measures if m in table.columns], name)]
    if "reader" in table.columns:
        trials = table.select(*KEYS, pl.col("reader").cast(pl.String), *measures)
        table = _take_words(table, measures, name)
    if trials is not None:
        _refuse_lone_readers(trials, name)
    words, sentences, lost = join_words(table)
    whole = Reading(
        name=name,
        words=words,
        sentences=sentences,
        measures=tuple(measures),
        trials=trials,
        language=language,
        notes=(*said, *lost),
        effects=effects or {},
    )
    return whole if trials is None else average_trials(whole)


def _take_words(table: pl.DataFrame, measures: Sequence[str], name: str) -> pl.DataFrame:
    """One row per word of a table with several readers.

    Raises BadInput if readers saw different words at one place.
    """
    others = [column for column in table.columns if column not in {*KEYS, "reader", "word", *measures}]
    firsts = [pl.col(column).first() for column in ("word", *others)]
    words = table.group_by(*KEYS, maintain_order=True).agg(*firsts, pl.col("word").n_unique().alias("_n"))
    different = words.filter(pl.col("_n") > 1)
    if different.height:
        place = _place(different.row(0, named=True))
        raise BadInput(f"{name}: {place} is not the same word for every reader.")
    order = table.select("text", "sentence").unique(maintain_order=True).with_row_index("_order")
    return words.join(order, on=["text", "sentence"]).sort("_order", "position").drop("_order", "_n")


def average_trials(
    reading: Reading, *, shortest: float = 0.0, longest: float = float("inf"), skipped: bool = True
) -> Reading:
    """The words with means over readers, of single times within limits.

    skipped: whether a 0, a word that was not fixated, counts as a time of 0 ms.
    """
    if reading.trials is None:
        return reading
    trials = reading.trials
    times = [name for name in reading.times if name in trials.columns]
    kept, notes = [], []
    for name in times:
        inside = (pl.col(name) >= shortest) & (pl.col(name) <= longest) | (pl.col(name) == 0)
        wanted = inside if skipped else inside & (pl.col(name) != 0)
        kept.append(pl.when(wanted).then(name).alias(name))
        before, zeros = trials[name].count(), int((trials[name] == 0).sum())
        outside = before - trials.select(pl.when(inside).then(name))[name].count()
        if outside:
            notes.append(
                f"{outside:,} of {before:,} single times of {name} outside {shortest:g} to {longest:g} ms "
                "are left out."
            )
        if zeros and not skipped:
            notes.append(f"{zeros:,} of {before:,} single times of {name} are 0, of skipped words: left out.")
    trials = trials.with_columns(kept)
    own = [name for name in reading.measures if name in trials.columns]
    means = trials.group_by(*KEYS).agg(pl.col(name).mean() for name in own)
    words = reading.words.drop(own, strict=False).join(
        means, on=list(KEYS), how="left", maintain_order="left"
    )
    return replace(reading, words=words, trials=trials, notes=(*reading.notes, *notes))


def check_places(table: pl.DataFrame, name: str) -> None:
    """Refuse words without a place or a text, two of one place, and words out of order.

    Raises BadInput naming the first.
    """
    for column in (*KEYS, "word"):
        missing = table[column].null_count()
        if missing:
            raise BadInput(f"{name}: '{column}' is missing in {missing} rows; every word needs one.")
    keys = [*KEYS, "reader"] if "reader" in table.columns else list(KEYS)
    twice = table.filter(pl.struct(keys).is_duplicated())
    if twice.height:
        row = twice.row(0, named=True)
        of = f" of reader {row['reader']}" if "reader" in row else ""
        raise BadInput(f"{name}: {_place(row)}{of} occurs twice; give every word a position of its own.")
    within = [column for column in keys if column != "position"]
    steps = table.select(*KEYS, "word", (pl.col("position").diff() < 0).over(within).alias("back"))
    back = steps.filter(pl.col("back"))
    if back.height:
        raise BadInput(
            f"{name}: {_place(back.row(0, named=True))} comes after a later word; sort the table by text, "
            "sentence and position."
        )


def _place(row: Mapping[str, object]) -> str:
    return f"word {row['position']} of sentence {row['sentence']} in text {row['text']}"


def check_times(table: pl.DataFrame, measures: Sequence[str], name: str) -> list[str]:
    """Sentences on missing times and skipped words.

    Raises BadInput for times in seconds and below 0.
    """
    said, gaps = [], dict[int, list[str]]()
    for measure in measures:
        values = table[measure].cast(pl.Float64)
        infinite = int(values.is_infinite().sum())
        if infinite:
            raise BadInput(f"{name}: '{measure}' is infinite in {infinite} rows; leave those cells empty.")
        missing = int(values.is_null().sum()) + int(values.is_nan().sum())
        if missing == len(values):
            raise BadInput(f"{name}: '{measure}' is empty in every row; name another measure.")
        if missing:
            gaps.setdefault(missing, []).append(measure)
        if measure not in TIMES:
            continue
        below = int((values < 0).sum())
        if below:
            raise BadInput(f"{name}: '{measure}' is below 0 ms in {below} rows; correct or remove them.")
        median = values.filter(values > 0).median()
        if isinstance(median, float) and median < SECONDS_BELOW:
            raise BadInput(
                f"{name}: half of '{measure}' is below {median:g}, like seconds; give milliseconds."
            )
        zeros = int((values == 0).sum())
        if zeros:
            share = 100 * zeros / len(values)
            said.append(f"{measure} is 0 in {zeros:,} of {len(values):,} rows ({share:.1f}%): skipped words.")
    for missing, names in gaps.items():
        said.append(
            f"{', '.join(names)}: missing in {missing:,} of {table.height:,} rows, which are left out."
        )
    return said


def _refuse_lone_readers(trials: pl.DataFrame, name: str) -> None:
    lone = trials.group_by("reader").len().filter(pl.col("len") == 1)["reader"].to_list()
    if lone:
        shown = ", ".join(sorted(lone)[:MOST_NAMED])
        raise BadInput(f"{name}: reader {shown} has only one row; remove readers with a single word.")


def join_words(words: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Words with their characters in the sentence that a model reads, the sentences, and what was not found.

    Without a column `sentence_text` a sentence is its words, with spaces between them unless both neighbours
    are in a script without spaces.
    """
    spans: list[tuple[int | None, int | None]] = []
    sentences, lost = [], []
    for (text, sentence), part in words.group_by("text", "sentence", maintain_order=True):
        listed = part["word"].to_list()
        given = part["sentence_text"][0] if "sentence_text" in part.columns else None
        written = str(given) if given is not None else write_sentence(listed)
        own = find_in(listed, written)
        lost += [f"'{w}' of sentence {sentence}" for w, at in zip(listed, own, strict=True) if at[0] is None]
        spans += own
        sentences.append({"text": text, "sentence": sentence, "sentence_text": written})
    said = []
    if len(lost) > MOST_LOST * len(spans):
        raise BadInput(
            f"{len(lost)} of {len(spans)} words are not found in their sentences, such as {lost[0]}; the "
            "words and the sentences are of different texts."
        )
    if lost:
        more = "" if len(lost) <= MOST_NAMED else f" and {len(lost) - MOST_NAMED} more"
        said.append(
            f"{len(lost)} words are not in their sentence and have no surprisal: "
            f"{', '.join(lost[:MOST_NAMED])}{more}."
        )
    joined = words.drop("sentence_text", strict=False).with_columns(
        pl.Series("start", [start for start, _ in spans], dtype=pl.Int64),
        pl.Series("end", [end for _, end in spans], dtype=pl.Int64),
    )
    return joined, pl.DataFrame(sentences), said


def write_sentence(words: Sequence[str]) -> str:
    """The sentence of words: joined by spaces, or by nothing in scripts without them.

    >>> write_sentence(["It", "rains."]), write_sentence(["猫", "が", "鳴く"])
    ('It rains.', '猫が鳴く')
    """
    written = words[0].strip() if words else ""
    for word in words[1:]:
        plain = word.strip()
        close = is_unspaced(written[-1:]) and is_unspaced(plain[:1])
        written += plain if close else f" {plain}"
    return written


def find_in(words: Sequence[str], written: str) -> list[tuple[int | None, int | None]]:
    """The characters of each word in a sentence, from left to right; None for one that is not there.

    >>> find_in(["It's", "raining,", "cats"], "It's raining, dogs and cats.")
    [(0, 4), (5, 13), (23, 27)]
    """
    found: list[tuple[int | None, int | None]] = []
    place = 0
    for word in words:
        plain = word.strip()
        start = written.find(plain, place) if plain else -1
        if start < 0:
            found.append((None, None))
            continue
        place = start + len(plain)
        found.append((start, place))
    return found
