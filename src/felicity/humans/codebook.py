"""What the columns of an export mean, and the first model to fit to it."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from felicity.core.schemas import SIMULATED_NOTE, is_simulated
from felicity.humans.study import RatingStudy

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
    "region": "region of the word, from 1, if the text has bars between regions; else its position",
    "outlier": "fast (below 100 ms), slow (above 3,000 ms), deviant (more than 3 standard deviations from "
    "the rater's mean, in logarithms) or empty; the time is kept",
    "trials": "timed trials that the rater has answered",
    "measured": "of these, trials in which the browser measured its screen and clock",
    "refresh_hz": "how often the screen was redrawn per second, the median over trials",
    "frames": "frames shown while words were read",
    "dropped": "frames that the browser left out meanwhile",
    "dropped_share": "share of frames that were dropped",
    "longest_ms": "longest time between two frames",
    "clock_ms": "smallest step of the browser's clock",
    "certified": "every trial measured, at most 1% of frames dropped, a clock of 1 ms or finer",
    "raters": "raters in this row",
    "mean": "mean over raters of each rater's mean time per word, outliers and wrong choices left out",
    "low": "lower end of the 95% interval",
    "high": "upper end of the 95% interval",
    "words": "word times",
    "left_out": "of these, outliers and wrong choices",
    "baseline": "condition that is subtracted",
    "difference": "mean over raters of condition minus baseline, milliseconds per word",
    "p": "t test over raters",
    "p_holm": "the same, adjusted for the number of regions and conditions (Holm)",
    "errors": "wrong first choices",
    "share": "share of the row's words",
    "fast": "words read in less than 100 ms",
    "slow": "words read in more than 3,000 ms",
    "deviant": "words more than 3 standard deviations from the rater's mean, in logarithms",
    "word": "word",
    "foil": "the other word in a Maze",
    "left": "whether the word stood on the left",
    "correct": "whether the word was chosen at the first try",
    "block": "block of the order",
    "group": "group of related items",
    "between": "levels of the between-participant factors",
}


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
