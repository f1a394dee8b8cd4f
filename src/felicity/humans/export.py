"""What comes out: one row per rating, per rater and per planned trial, and a codebook that explains them."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.files import escape_formulas, replacing
from felicity.core.schemas import SIMULATED_NOTE, is_simulated
from felicity.humans.integrity import read_stored_answers
from felicity.humans.progress import describe_progress
from felicity.humans.stimuli import Stimulus
from felicity.humans.store import Store
from felicity.humans.study import RatingStudy
from felicity.humans.tables import raters, slots

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
    "word": pl.String,
    "foil": pl.String,
    "left": pl.Boolean,
    "correct": pl.Boolean,
    "rt_ms": pl.Float64,
}

MEANINGS = {
    "rater": "random id of a rater; it cannot be traced to a person or a platform id",
    "list": "list of stimuli the rater was given",
    "trial": "position of the trial in this rater's order, from 1",
    "item": "item, as in the stimuli",
    "condition": "condition of the item that was shown",
    "role": "target, filler or check",
    "type": "type of filler or target that the order constraints distinguish",
    "context": "text shown before the stimulus",
    "text": "stimulus",
    "text_b": "the other sentence of a forced choice",
    "flipped": "whether the sides were exchanged (forced choice: text_b first; binary: second option first)",
    "rating": "answer as a number",
    "answer": "answer as it was sent",
    "normalised": "text answer in lower case, with single spaces and without outer punctuation",
    "rt_ms": "milliseconds from display to answer, measured in the browser; empty without JavaScript",
    "server_ms": "milliseconds from sending the page to receiving the answer, measured on the server",
    "check_passed": "for attention checks: whether the expected answer was given",
    "question_correct": "whether the comprehension question after the trial was answered correctly",
    "revised": "how often the answer was changed after going back",
    "flags": "signs to look at, never reasons for automatic rejection: fast, left_page, pasted, not_typed, "
    "no_script, one_answer_throughout",
    "state": "finished (counted), live, lapsed, released, screened, withdrawn or set_aside",
    "answers": "main trials answered",
    "of": "main trials in the list",
    "minutes": "minutes from consent to the last answer",
    "median_ms": "median answer time",
    "checks": "attention checks and comprehension questions answered",
    "failed_checks": "of these, answered wrongly",
    "quiz_tries": "attempts at the questions about the instructions",
    "consent": "sha256 of the information and consent text that was agreed to",
    "simulated": "true: made by `felicity rate simulate`, not given by a person",
    "position": "position of the word in its sentence, from 1",
    "word": "word",
    "foil": "the other word in a Maze",
    "left": "whether the word stood on the left",
    "correct": "whether the word was chosen at the first try",
    "block": "block of the order",
    "group": "group of related items",
    "between": "levels of the between-participant factors",
}


def build_rating_tables(
    store: Store, *, tests: bool = False, unfinished: bool = False
) -> dict[str, pl.DataFrame]:
    """The tables `ratings`, `raters` and `design`, and `words` for timed tasks.

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
        tables["words"] = _words(study, slot_rows, [row for row in given if row.slot in kept])
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
                    "word": word,
                    "foil": foil,
                    "left": detail["left"][place] if "left" in detail else None,
                    "correct": detail["correct"][place] if "correct" in detail else None,
                    "rt_ms": ms,
                }
            )
    return pl.DataFrame(rows, schema=WORDS).sort("list", "rater", "trial", "position")


def suggest_fit(study: RatingStudy, ratings: str = "ratings.csv") -> str | None:
    """The command that fits the obvious model to the exported ratings, if there is one."""
    levels = {stimulus.condition for stimulus in study.stimuli if stimulus.role == "target"}
    effect = "condition" if len(levels) > 1 else "1"
    random = "(1|rater) + (1|item)"
    if study.timed:
        words = shlex.quote(str(Path(ratings).with_name("words.csv")))
        return f'felicity fit "log(rt_ms) ~ {effect} + {random}" {words}'
    ratings = shlex.quote(ratings)
    if study.task.kind == "likert":
        return f'felicity fit "rating ~ {effect} + {random}" {ratings} --family cumulative'
    if study.task.kind in ("binary", "choice"):
        return f'felicity fit "rating ~ {effect} + {random}" {ratings} --family binomial'
    if study.task.kind == "magnitude":
        return f'felicity fit "log(rating) ~ {effect} + {random}" {ratings}'
    if study.task.kind == "slider":
        return f'felicity fit "rating ~ {effect} + {random}" {ratings}'
    return None


def write_codebook(study: RatingStudy, tables: Mapping[str, pl.DataFrame]) -> str:
    """Every column of every table, in Markdown."""
    warning = [f"**{SIMULATED_NOTE}**", ""] if is_simulated(tables["raters"]) else []
    lines = [
        f"# Codebook: {study.title}",
        "",
        *warning,
        f"Task: {study.task.kind}. {study.task.question}".rstrip(),
        "",
    ]
    if study.task.kind == "likert":
        scale = ", ".join(f"{n + 1} = {label}" for n, label in enumerate(study.task.labels) if label)
        lines += [f"Scale: 1 to {study.task.points} ({scale}).", ""]
    if study.task.kind == "binary":
        lines += [f"Scale: 1 = {study.task.options[0]}, 0 = {study.task.options[1]}.", ""]
    if study.task.kind == "choice":
        lines += ["Scale: 1 = the sentence in `text` was chosen, 0 = the one in `text_b`.", ""]
    if study.task.kind == "slider":
        ends = study.task
        lines += [f"Scale: {ends.minimum} ({ends.low}) to {ends.maximum} ({ends.high}).", ""]
    if study.task.kind == "magnitude":
        lines += [f"Scale: positive numbers; the reference sentence is {study.task.modulus:g}.", ""]
    questions = {question.name: question.question for question in study.demographics}
    for name, frame in tables.items():
        lines += [f"## {name}", "", "| column | type | meaning |", "|---|---|---|"]
        for column, kind in frame.schema.items():
            meaning = MEANINGS.get(column) or questions.get(column) or "column of the stimuli"
            lines.append(f"| {column} | {kind} | {meaning} |")
        lines.append("")
    lines += [
        "In the .csv files, an apostrophe stands before texts that a spreadsheet would run as a formula,"
    ]
    lines += ["unless they were exported with --raw; the .parquet files have every text as it is.", ""]
    line = suggest_fit(study)
    if line:
        lines += ["## A first model", "", f"    {line}", ""]
    return "\n".join(lines)


def write_export(
    store: Store, folder: Path, *, tests: bool = False, unfinished: bool = False, raw: bool = False
) -> dict[str, pl.DataFrame]:
    """Write every table as .csv and .parquet, and codebook.md; gives the tables.

    raw: CSV files have texts as they are, also those that a spreadsheet would run as a formula.

    Raises FelicityError if the folder cannot be written.
    """
    tables = build_rating_tables(store, tests=tests, unfinished=unfinished)
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
