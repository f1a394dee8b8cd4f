"""People's ratings of sentences in several settings: read, checked, cleaned on request, averaged.

A setting is what stood before a sentence when it was rated: nothing (`none`), its own context (`real`), one
from elsewhere (`random`), or whatever a table calls it. Ratings are taken as they are, unless cleaning is
asked for; only raw ones, which have rater ids, can be cleaned.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.ids import fingerprint
from felicity.core.schemas import SIMULATED_NOTE, is_simulated
from felicity.core.settings import Data
from felicity.data import Table, is_table, read_dataset, read_table, sample_items, tabulate_frame
from felicity.run import StudyFolder
from felicity.stats import clean_ratings
from felicity.studies.acceptability.rated_rows import (
    NONE,
    ORDER,
    RANDOM,
    REAL,
    name_settings,
    read_rows,
    take_items,
)

LABELS = {NONE: "H0", REAL: "H+", RANDOM: "H-"}
EXPORTED = ("ratings.parquet", "ratings.csv")
ORIGINAL = "original"
# The tables that a study keeps, by the field of RatedSentences that they hold.
KEPT = {
    "sentences": "rated_sentences",
    "contexts": "contexts",
    "means": "mean_ratings",
    "answers": "single_ratings",
    "steps": "cleaning_steps",
    "stimuli": "stimuli",
}
FEWEST = 4
STEPS = {
    "setting": pl.String,
    "step": pl.String,
    "raters": pl.Int64,
    "ratings": pl.Int64,
    "raters_dropped": pl.Int64,
    "ratings_dropped": pl.Int64,
    "ratings_changed": pl.Int64,
}


@dataclass(frozen=True, kw_only=True)
class RatedSentences:
    """Sentences with their ratings in every setting.

    settings: in the order of the tables, `none` first. sentences: item, suite, phenomenon, text.
    contexts: item, setting, context_text. means: item, setting, n (null if unknown), rating.
    answers: single ratings, one row each with item, setting, rating, rater (null if unknown) and answer,
    the rating before cleaning; None if only means are known. scale: the lowest and the highest rating.
    steps: what cleaning did; notes: what a reader must know. stimuli: if items have several sentences, which
    stimulus is which item in which condition; everywhere else `item` is then the stimulus.
    """

    name: str
    settings: tuple[str, ...]
    sentences: pl.DataFrame
    contexts: pl.DataFrame
    means: pl.DataFrame
    answers: pl.DataFrame | None
    scale: tuple[float, float]
    steps: pl.DataFrame
    notes: tuple[str, ...]
    stimuli: pl.DataFrame | None = None

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """What a study keeps, to be restored later."""
        return {name: table for one, name in KEPT.items() if (table := getattr(self, one)) is not None}

    @classmethod
    def restore(cls, folder: StudyFolder) -> "RatedSentences":
        """The ratings that a study keeps."""
        kept: dict[str, Any] = {
            one: folder.read(name) if name in folder.record["kept"] else None for one, name in KEPT.items()
        }
        facts = folder.facts
        return cls(
            name=facts["ratings"],
            settings=tuple(facts["settings"]),
            scale=tuple(facts["scale"]),
            notes=tuple(folder.record["notes"]),
            **kept,
        )

    @property
    def has_raters(self) -> bool:
        """Whether it is known who gave which rating."""
        return self.answers is not None and self.answers["rater"].null_count() == 0

    @property
    def in_context(self) -> tuple[str, ...]:
        """The settings with a context."""
        return tuple(name for name in self.settings if name != NONE)

    @property
    def has_stimuli(self) -> bool:
        """Whether items have several sentences."""
        return self.stimuli is not None and len(self.stimuli) > self.stimuli["item"].n_unique()

    def describe_stimuli(self) -> tuple[str, ...]:
        """What a reader must know if items have several sentences."""
        if self.stimuli is None or not self.has_stimuli:
            return ()
        return (
            "The conditions are sentences, not settings: what is correlated is the stimulus, an item in a "
            f"condition ({len(self.stimuli):,} stimuli of {self.stimuli['item'].n_unique():,} items). "
            "Intervals resample stimuli as if those of an item were independent.",
        )

    def add_conditions(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table by sentence with the columns stimulus, item and condition, if items have several."""
        if self.stimuli is None:
            return table
        named = table.rename({"item": "stimulus"}).join(
            self.stimuli, on="stimulus", how="left", maintain_order="left"
        )
        return named.select("stimulus", "item", "condition", pl.exclude("stimulus", "item", "condition"))

    @property
    def key(self) -> str:
        """The same sentences, contexts and ratings have the same key."""
        parts = (self.sentences, self.contexts, self.means.select("item", "setting", "rating"))
        return fingerprint([part.rows() for part in parts])

    def mean(self, setting: str) -> np.ndarray:
        """The mean ratings in a setting, in the order of the sentences."""
        own = self.means.filter(setting=setting)
        joined = self.sentences.select("item").join(own, on="item", how="left", maintain_order="left")
        return joined["rating"].to_numpy()

    def single(self, setting: str) -> list[list[float]] | None:
        """The single ratings of each sentence in a setting, in the order of the sentences, if known."""
        if self.answers is None:
            return None
        own = self.answers.filter(setting=setting).group_by("item", maintain_order=True).agg("rating")
        joined = self.sentences.select("item").join(own, on="item", how="left", maintain_order="left")
        return joined["rating"].to_list()


def label_setting(setting: str) -> str:
    """What tables call the ratings of a setting: H0, H+ and H- as in the paper, else by its name."""
    return LABELS.get(setting, f"H {setting}")


def read_ratings(
    source: Data,
    *,
    folder: Path | None = None,
    clean: str | None = None,
    scale: tuple[float, float] | None = None,
) -> RatedSentences:
    """Ratings from a dataset's name, a folder of `felicity rate export`, a table, or a frame.

    A table has the columns text and rating, and as needed item, condition, context, suite, phenomenon; with a
    column rater it has one row per answer, otherwise one per sentence and setting, where a column ratings may
    list the single ratings, separated by commas. A condition is a setting, or one of the sentences of an item
    (`name_settings`). folder: a copy of the dataset. clean: the rules to clean raw ratings by (`lau2020`).
    scale: the lowest and highest rating possible; by default those that were given.

    Raises BadInput naming what is missing, repeated or constant, NotPossible for a dataset without ratings or
    ratings that cannot be cleaned.
    """
    if not isinstance(source, str | Path):
        table = source if isinstance(source, Table) else tabulate_frame(source)
        return _collect(table.path.name.split(".")[0], read_rows(table), clean=clean, scale=scale)
    source, path = str(source), Path(source)
    if path.is_dir():
        exported = next((path / name for name in EXPORTED if (path / name).exists()), None)
        if exported is None:
            raise BadInput(f"{path} has no ratings.csv; export a study with `felicity rate export`.")
        return _collect(path.name, read_rows(read_table(exported)), clean=clean, scale=scale)
    if is_table(source):
        return _collect(path.name.split(".")[0], read_rows(read_table(path)), clean=clean, scale=scale)
    data = read_dataset(source, rule="rating", folder=folder)
    if data.rule != "rating":
        raise NotPossible(f"'{source}' has no ratings; `felicity data show {source}` lists its rules.")
    return _collect(source, take_items(data.items), clean=clean, scale=scale)


def sample_sentences(ratings: RatedSentences, size: int, *, seed: int = 0) -> RatedSentences:
    """At most `size` sentences of each suite, with all their ratings."""
    sentences = sample_items(ratings.sentences, size, seed=seed)
    if len(sentences) < FEWEST:
        raise BadInput(
            f"--sample {size} leaves {len(sentences)} sentences; a correlation needs at least {FEWEST}."
        )

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(sentences.select("item"), on="item", how="semi", maintain_order="left")

    answers = None if ratings.answers is None else keep(ratings.answers)
    stimuli = ratings.stimuli
    if stimuli is not None:
        stimuli = stimuli.filter(pl.col("stimulus").is_in(sentences["item"].implode()))
    return replace(
        ratings,
        sentences=sentences,
        contexts=keep(ratings.contexts),
        means=keep(ratings.means),
        answers=answers,
        stimuli=stimuli,
    )


def _collect(
    name: str, rows: pl.DataFrame, *, clean: str | None, scale: tuple[float, float] | None
) -> RatedSentences:
    raw = rows["rater"].null_count() < len(rows)
    rows, stimuli = name_settings(name, rows)
    _refuse_contradictions(name, rows)
    _refuse_repeats(name, rows, raw=raw)
    steps = pl.DataFrame(schema=STEPS)
    notes: list[str] = []
    answers: pl.DataFrame | None = None
    if raw:
        if rows["rater"].null_count():
            line = rows.filter(pl.col("rater").is_null())["line"][0]
            raise BadInput(
                f"{name}, line {line}: 'rater' is empty; say who gave the rating, or drop the column."
            )
        _refuse_one_rater(name, rows)
        rows = rows.with_columns(pl.col("rating").alias("answer"))
        ends = _find_scale(name, rows["rating"], scale)
        if clean:
            rows, steps, notes = _clean(rows, ends)
        else:
            notes = ["The ratings are raw and were not cleaned (--clean lau2020 cleans them)."]
        answers = rows.select("item", "setting", "rating", "rater", "answer")
        means = rows.group_by("item", "setting", maintain_order=True).agg(
            pl.len().cast(pl.Int64).alias("n"), pl.col("rating").mean()
        )
    else:
        if clean:
            raise NotPossible(
                f"The ratings of {name} carry no rater ids, so they cannot be cleaned; omit --clean."
            )
        notes = ["The ratings are taken as they are: they carry no rater ids, so they cannot be cleaned."]
        listed = rows.filter(pl.col("ratings").is_not_null())
        if len(listed) == len(rows):
            answers = listed.select("item", "setting", rating="ratings").explode("rating")
            answers = answers.with_columns(
                pl.lit(None, dtype=pl.String).alias("rater"), pl.col("rating").alias("answer")
            )
        n = pl.col("ratings").list.len().cast(pl.Int64).alias("n")
        means = rows.select("item", "setting", n, "rating")
    named = rows["setting"].unique(maintain_order=True).to_list()
    settings = tuple([s for s in ORDER if s in named] + [s for s in named if s not in ORDER])
    sentences = rows.unique("item", keep="first", maintain_order=True).select(
        "item", "suite", "phenomenon", "text"
    )
    _refuse_gaps(name, sentences, means, settings, cleaned=clean is not None)
    contexts = rows.filter(pl.col("context_text").is_not_null()).unique(
        ["item", "setting"], keep="first", maintain_order=True
    )
    given = answers["answer"] if answers is not None else means["rating"]
    ends = ends if raw else _find_scale(name, given, scale)
    return RatedSentences(
        name=name,
        settings=settings,
        sentences=sentences,
        contexts=contexts.select("item", "setting", "context_text"),
        means=means,
        answers=answers,
        scale=ends,
        steps=steps,
        notes=(*([SIMULATED_NOTE] if is_simulated(rows) else []), *notes),
        stimuli=stimuli,
    )


def _find_scale(name: str, given: pl.Series, scale: tuple[float, float] | None) -> tuple[float, float]:
    """The ends of the rating scale: those stated, else the whole numbers around the ratings.

    Raises BadInput if ratings are beyond the scale.
    """
    lowest, highest = float(given.to_numpy().min()), float(given.to_numpy().max())
    if scale is None:
        return float(np.floor(lowest)), float(np.ceil(highest))
    low, high = scale
    if not low <= lowest <= highest <= high or low == high:
        raise BadInput(
            f"The ratings of {name} go from {lowest:g} to {highest:g}, beyond the scale {low:g} to {high:g}; "
            "state the scale with --scale LOW:HIGH."
        )
    return scale


def _refuse_contradictions(name: str, rows: pl.DataFrame) -> None:
    """One text per item, one context per item and setting, a context everywhere except in `none`."""
    texts = rows.group_by("item", maintain_order=True).agg(pl.col("text").n_unique())
    several = texts.filter(pl.col("text") > 1)
    if len(several):
        raise BadInput(
            f"Item '{several['item'][0]}' of {name} has {several['text'][0]} different texts; the settings "
            "of an item differ in the context only, so give each text an item of its own, or a condition "
            f"other than {', '.join(ORDER)}."
        )
    contexts = rows.group_by("item", "setting", maintain_order=True).agg(pl.col("context_text").n_unique())
    several = contexts.filter(pl.col("context_text") > 1)
    if len(several):
        item, setting, n = several.row(0)
        raise BadInput(f"Item '{item}' of {name} has {n} contexts in the setting '{setting}'; keep one.")
    bare = rows.filter((pl.col("setting") != NONE) & pl.col("context_text").is_null())
    if len(bare):
        raise BadInput(
            f"{name}, line {bare['line'][0]}: the setting is '{bare['setting'][0]}' but there is no context; "
            "add "
            f"a column 'context', or call the condition '{NONE}'."
        )
    dressed = rows.filter((pl.col("setting") == NONE) & pl.col("context_text").is_not_null())
    if len(dressed):
        raise BadInput(
            f"{name}, line {dressed['line'][0]}: the setting is '{NONE}' but there is a context; remove it, "
            "or "
            "call the condition otherwise."
        )


def _refuse_repeats(name: str, rows: pl.DataFrame, *, raw: bool) -> None:
    keys = ["item", "setting", "rater"] if raw else ["item", "setting"]
    again = rows.filter(pl.struct(keys).is_duplicated()).sort(*keys, "line")
    if not len(again):
        return
    first, second = again.row(0, named=True), again.row(1, named=True)
    who = f" by the rater '{first['rater']}'" if raw else ""
    raise BadInput(
        f"Item '{first['item']}' of {name} is rated twice in the setting '{first['setting']}'{who}, on lines "
        f"{first['line']} and {second['line']}; keep one"
        + ("." if raw else ", or add a column 'rater' if these are answers of several people.")
    )


def _refuse_one_rater(name: str, rows: pl.DataFrame) -> None:
    by = rows.group_by("setting", maintain_order=True).agg(pl.col("rater").n_unique())
    alone = by.filter(pl.col("rater") < 2)
    if len(alone):
        raise BadInput(
            f"The setting '{alone['setting'][0]}' of {name} has one rater, with whom nobody can be compared; "
            "collect "
            "ratings of at least two people, or drop the column 'rater' to use the ratings as they are."
        )


def _refuse_gaps(
    name: str, sentences: pl.DataFrame, means: pl.DataFrame, settings: tuple[str, ...], *, cleaned: bool
) -> None:
    if len(sentences) < FEWEST:
        raise BadInput(f"{name} has {len(sentences)} sentences; a correlation needs at least {FEWEST}.")
    for setting in settings:
        own = means.filter(setting=setting)
        lacking = sentences.join(own, on="item", how="anti", maintain_order="left")
        if len(lacking):
            why = " left after cleaning" if cleaned else ""
            raise BadInput(
                f"Item '{lacking['item'][0]}' of {name} has no rating{why} in the setting '{setting}' "
                f"({len(lacking)} "
                f"of {len(sentences)} items lack one); every sentence needs a rating in every setting."
            )
        if own["rating"].n_unique() < 2:
            raise BadInput(
                f"All sentences of {name} are rated {own['rating'][0]:g} in the setting '{setting}', so "
                "nothing can "
                "correlate with these ratings."
            )


def _clean(rows: pl.DataFrame, scale: tuple[float, float]) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Cleaned as in the paper: setting by setting if each rater rated in one, else all together."""
    cell = pl.concat_str("item", "setting", separator="\0")
    own = rows.with_columns(pl.col("item").alias("sentence"), cell.alias("item"))
    between = rows.group_by("rater").agg(pl.col("setting").n_unique())["setting"].max() == 1
    control, check = None, None
    if (rows["phenomenon"] == ORIGINAL).any():
        control = "control"
        own = own.with_columns((pl.col("phenomenon") == ORIGINAL).alias(control))
    if rows["check"].null_count() < len(rows):
        check = "check"
        own = own.with_columns(pl.col("check").fill_null(True))
    groups = own.partition_by("setting", maintain_order=True) if between else [own]
    kept, steps = [], []
    for group in groups:
        found = clean_ratings(group, scale=scale, control=control, check=check)
        where = str(group["setting"][0]) if between else "all"
        kept.append(found.ratings)
        steps.append(found.steps.with_columns(pl.lit(where).alias("setting")).select(list(STEPS)))
    notes = [_describe_step(row, scale) for part in steps for row in part.iter_rows(named=True)]
    if control is None:
        notes.append(f"No sentence has the phenomenon '{ORIGINAL}', so raters were not checked on originals.")
    if check is None:
        notes.append("There are no answers to comprehension questions, so raters were not checked by them.")
    if not between:
        notes.append("Raters saw several settings, so all ratings of a rater were cleaned together.")
    cleaned = pl.concat(kept).drop("item").rename({"sentence": "item"})
    return cleaned, pl.concat(steps), notes


def _describe_step(row: dict[str, Any], scale: tuple[float, float]) -> str:
    """What a step of cleaning did, with its counts."""
    where = "" if row["setting"] == "all" else f", setting '{row['setting']}'"
    return (
        f"Cleaned as Lau et al. (2020), scale {scale[0]:g} to {scale[1]:g}{where}: {row['step']}: "
        f"{row['raters_dropped']:,} of {row['raters']:,} raters dropped, {row['ratings_dropped']:,} of "
        f"{row['ratings']:,} ratings dropped, {row['ratings_changed']:,} changed."
    )
