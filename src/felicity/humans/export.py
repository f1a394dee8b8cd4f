"""What comes out: one row per rating, per rater, per planned trial and, if it was timed, per word."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.files import escape_formulas, replacing
from felicity.core.schemas import is_simulated
from felicity.humans.codebook import write_codebook
from felicity.humans.integrity import read_stored_answers
from felicity.humans.progress import describe_progress
from felicity.humans.stimuli import Stimulus
from felicity.humans.store import Store
from felicity.humans.study import RatingStudy
from felicity.humans.tables import raters, slots
from felicity.humans.timing import certify_raters, mark_outliers

RATINGS: dict[str, Any] = {
    "rater": pl.String,
    "list": pl.String,
    "trial": pl.Int64,
    "item": pl.String,
    "condition": pl.String,
    "role": pl.String,
    "type": pl.String,
    "context": pl.String,
    "text": pl.String,
    "text_b": pl.String,
    "flipped": pl.Boolean,
    "rating": pl.Float64,
    "answer": pl.String,
    "normalised": pl.String,
    "rt_ms": pl.Float64,
    "server_ms": pl.Float64,
    "check_passed": pl.Boolean,
    "question_correct": pl.Boolean,
    "revised": pl.Int64,
    "flags": pl.String,
    "state": pl.String,
}
RATERS: dict[str, Any] = {
    "rater": pl.String,
    "list": pl.String,
    "state": pl.String,
    "answers": pl.Int64,
    "of": pl.Int64,
    "minutes": pl.Float64,
    "median_ms": pl.Int64,
    "checks": pl.Int64,
    "failed_checks": pl.Int64,
    "quiz_tries": pl.Int64,
    "consent": pl.String,
    "flags": pl.String,
}
WORDS: dict[str, Any] = {
    "rater": pl.String,
    "list": pl.String,
    "trial": pl.Int64,
    "item": pl.String,
    "condition": pl.String,
    "role": pl.String,
    "position": pl.Int64,
    "region": pl.String,
    "word": pl.String,
    "foil": pl.String,
    "left": pl.Boolean,
    "correct": pl.Boolean,
    "rt_ms": pl.Float64,
}


def build_rating_tables(
    store: Store, *, tests: bool = False, unfinished: bool = False
) -> dict[str, pl.DataFrame]:
    """The tables `ratings`, `raters` and `design`; for timed tasks also `words` and `timing`.

    Those of a simulation have a column `simulated`.

    tests: test runs instead of real ones. unfinished: also the ratings of raters who did not finish or were
    set aside; the column `state` tells them apart.

    Raises BadInput if the database is damaged.
    """
    study = store.study
    everything = read_stored_answers(store)
    wanted = {row.id for row in store.rows(raters) if row.test == tests}
    states = {
        (row["rater"], row["list"]): row for row in describe_progress(store).raters if row["rater"] in wanted
    }
    slot_rows = {row.id: row for row in store.rows(slots) if row.rater in wanted}
    given = [row for row in everything if row.slot in slot_rows]
    kept = {
        name
        for name, slot in slot_rows.items()
        if unfinished or states[slot.rater, slot.list]["state"] == "finished"
    }
    tables = {
        "ratings": _ratings(study, slot_rows, [row for row in given if row.slot in kept], states),
        "raters": _raters(study, store, slot_rows, given, states),
        "design": _design(store),
    }
    if study.timed:
        shown = [row for row in given if row.slot in kept]
        tables["words"] = mark_outliers(_words(study, slot_rows, shown))
        tables["timing"] = certify_raters(slot_rows, _trials(shown))
    if is_simulated(tables["raters"]):
        return {name: frame.with_columns(pl.lit(True).alias("simulated")) for name, frame in tables.items()}
    return tables


def _ratings(
    study: RatingStudy, slot_rows: Mapping[str, Any], given: list[Any], states: Mapping[Any, dict[str, Any]]
) -> pl.DataFrame:
    factors = list(dict.fromkeys(name for stimulus in study.stimuli for name in stimulus.factors))
    questions = {(row.slot, row.row): row.correct for row in given if row.kind == "question"}
    flipped = {(slot.id, row): side for slot in slot_rows.values() for row, side in slot.trials}
    rows = []
    for row in _trials(given):
        slot, stimulus = slot_rows[row.slot], study.stimuli[row.row]
        rows.append(
            {
                **_identify(slot, row, stimulus),
                "type": stimulus.type,
                "context": stimulus.context,
                "text": stimulus.text,
                "text_b": stimulus.text_b,
                "flipped": flipped[row.slot, row.row],
                "rating": row.value,
                "answer": row.raw,
                "normalised": row.normalised,
                "rt_ms": row.rt_ms,
                "server_ms": row.server_ms,
                "check_passed": row.correct,
                "question_correct": questions.get((row.slot, row.row)),
                "revised": row.revised,
                "flags": ",".join(row.flags),
                "state": states[slot.rater, slot.list]["state"],
                **{name: stimulus.factors.get(name, "") for name in factors},
            }
        )
    frame = pl.DataFrame(rows, schema=RATINGS | dict.fromkeys(factors, pl.String))
    whole = frame.sort("list", "rater", "trial")
    return whole.with_columns(_numbers(whole, factors))


def _trials(given: list[Any]) -> Iterator[Any]:
    """The answers to main trials."""
    return (row for row in given if row.kind == "trial" and row.role != "practice")


def _identify(slot: Any, row: Any, stimulus: Stimulus) -> dict[str, Any]:
    """Who answered what, and where in the list."""
    return {
        "rater": slot.rater,
        "list": slot.list,
        "trial": row.trial,
        "item": stimulus.item,
        "condition": stimulus.condition,
        "role": stimulus.role,
    }


def _numbers(frame: pl.DataFrame, factors: list[str]) -> list[pl.Series]:
    """Factors that hold nothing but numbers become numbers, so that a model takes them as covariates."""
    columns = []
    for name in factors:
        values = frame[name].cast(pl.Float64, strict=False)
        if frame.height and not values.has_nulls():
            columns.append(values)
    return columns


def _raters(
    study: RatingStudy,
    store: Store,
    slot_rows: Mapping[str, Any],
    given: list[Any],
    states: Mapping[Any, dict[str, Any]],
) -> pl.DataFrame:
    demographics: dict[str, dict[str, str]] = {}
    tries: dict[str, int] = {}
    for row in given:
        rater = slot_rows[row.slot].rater
        if row.kind == "demographics":
            demographics[rater] = row.detail
        if row.kind == "quiz":
            tries[rater] = row.detail["tries"]
    consent = {row.id: row.consent_hash for row in store.rows(raters)}
    names = [question.name for question in study.demographics]
    rows = []
    for slot in slot_rows.values():
        state = states[slot.rater, slot.list]
        rows.append(
            {
                **{name: state[name] for name in RATERS if name in state},
                "quiz_tries": tries.get(slot.rater),
                "consent": consent[slot.rater],
                **{name: demographics.get(slot.rater, {}).get(name) for name in names},
            }
        )
    return pl.DataFrame(rows, schema=RATERS | dict.fromkeys(names, pl.String)).sort("rater", "list")


def _design(store: Store) -> pl.DataFrame:
    """Every trial that a list contains, whether anybody has seen it yet or not."""
    names = (
        "list",
        "between",
        "item",
        "condition",
        "role",
        "type",
        "group",
        "block",
        "context",
        "text",
        "text_b",
    )
    rows = []
    for one in store.lists:
        for row in one.rows:
            stimulus = store.study.stimuli[row]
            rows.append(
                {name: getattr(stimulus, name, "") for name in names}
                | {"list": one.name, "between": " / ".join(one.levels)}
            )
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def _words(study: RatingStudy, slot_rows: Mapping[str, Any], given: list[Any]) -> pl.DataFrame:
    """Reading times, one row per word."""
    rows = []
    for row in _trials(given):
        stimulus = study.stimuli[row.row]
        shared = _identify(slot_rows[row.slot], row, stimulus)
        foils = stimulus.foils or (None,) * len(stimulus.text.split())
        detail = row.detail
        for place, (word, foil, ms) in enumerate(
            zip(stimulus.text.split(), foils, detail["ms"], strict=False)
        ):
            rows.append(
                {
                    **shared,
                    "position": place + 1,
                    "region": str(stimulus.regions[place] if stimulus.regions else place + 1),
                    "word": word,
                    "foil": foil,
                    "left": detail["left"][place] if "left" in detail else None,
                    "correct": detail["correct"][place] if "correct" in detail else None,
                    "rt_ms": ms,
                }
            )
    return pl.DataFrame(rows, schema=WORDS).sort("list", "rater", "trial", "position")


def write_export(
    store: Store,
    folder: Path,
    *,
    tests: bool = False,
    unfinished: bool = False,
    raw: bool = False,
    analyse: Callable[[dict[str, pl.DataFrame]], dict[str, pl.DataFrame]] | None = None,
) -> dict[str, pl.DataFrame]:
    """Write every table as .csv and .parquet, and codebook.md; gives the tables.

    raw: CSV files have texts as they are, also those that a spreadsheet would run as a formula.
    analyse: makes further tables from the exported ones.

    Raises FelicityError if the folder cannot be written.
    """
    tables = build_rating_tables(store, tests=tests, unfinished=unfinished)
    if analyse is not None:
        tables |= analyse(tables)
    for name, frame in tables.items():
        with replacing(folder / f"{name}.csv") as part:
            (frame if raw else escape_formulas(frame)).write_csv(part)
        with replacing(folder / f"{name}.parquet") as part:
            frame.write_parquet(part)
    with replacing(folder / "codebook.md") as part:
        part.write_text(write_codebook(store.study, tables), encoding="utf-8")
    return tables


def payment_list(store: Store, platform_ids: Mapping[str, str]) -> pl.DataFrame:
    """Platform id, state and completion code of everybody who came from a platform, for paying them."""
    rater_of = {row.key_hash: row for row in store.rows(raters) if row.key_hash}
    rows = [
        {
            "platform_id": platform_id,
            "state": rater_of[key].state if key in rater_of else "did not consent",
            "code": rater_of[key].code if key in rater_of else None,
        }
        for key, platform_id in platform_ids.items()
    ]
    return pl.DataFrame(rows, schema={"platform_id": pl.String, "state": pl.String, "code": pl.String})
