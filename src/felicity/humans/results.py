"""Results as they come: completions over time, answers by condition, of one rater, and trials of a list."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from felicity.humans.assignment import RaterRefused
from felicity.humans.lists import draw_order
from felicity.humans.progress import describe_progress
from felicity.humans.store import Store
from felicity.humans.study import RatingStudy
from felicity.humans.tables import answers, raters, slots

COUNTED = ("finished", "live")
BINS = 10
# Reading times above this are in the last bar.
LONGEST_SHOWN_MS = 1_000


@dataclass(frozen=True)
class Results:
    """What has come in so far; test runs are left out.

    completions: when each list was finished, with the number so far. conditions: one row per condition of the
    targets: n, mean, sd and the share of answers in each of `bars`; for texts, the commonest answer instead.
    unit: what the mean is of; empty if there are no numbers.
    """

    completions: list[tuple[float, int]]
    conditions: list[dict[str, Any]]
    bars: list[str]
    unit: str


def describe_results(store: Store) -> Results:
    """Completions and answers by condition, of everybody who has finished or is answering."""
    tests = {row.id for row in store.rows(raters) if row.test}
    kept = {row.id: row for row in store.rows(slots) if row.rater not in tests and row.state in COUNTED}
    ends = sorted(row.finished for row in kept.values() if row.finished is not None)
    study = store.study
    given: dict[str, list[Any]] = {}
    for row in store.rows(answers):
        if row.slot in kept and row.kind == "trial" and row.role == "target":
            given.setdefault(study.stimuli[row.row].condition, []).append(row)
    order = dict.fromkeys(one.condition for one in study.stimuli if one.role == "target")
    bars, unit = _find_bars(study)
    found = [{"condition": name} | _describe(study, given.get(name, []), len(bars)) for name in order]
    return Results(list(zip(ends, range(1, len(ends) + 1), strict=True)), found, bars, unit)


def _find_bars(study: RatingStudy) -> tuple[list[str], str]:
    """What the bars of a condition stand for, and what its mean is of."""
    task = study.task
    if study.timed:
        step = LONGEST_SHOWN_MS // BINS
        return [f"{n * step} to {(n + 1) * step} ms" for n in range(BINS - 1)] + [
            f"{LONGEST_SHOWN_MS - step} ms and more"
        ], "ms per word"
    if task.kind == "likert":
        return [str(n + 1) for n in range(task.points)], "rating"
    if task.kind in ("binary", "choice"):
        names = task.options if task.kind == "binary" else ("first sentence", "second sentence")
        return list(names), f"share of '{names[0]}'"
    if task.kind == "slider":
        width = (task.maximum - task.minimum) / BINS
        ends = [task.minimum + n * width for n in range(BINS + 1)]
        return [f"{low:g} to {high:g}" for low, high in pairwise(ends)], "rating"
    return [], "number" if task.kind == "magnitude" else ""


def _describe(study: RatingStudy, given: list[Any], bars: int) -> dict[str, Any]:
    values = list(_values(study, given))
    row: dict[str, Any] = {"n": len(given), "mean": None, "sd": None, "shares": [], "common": ""}
    if values:
        row["mean"], row["sd"] = fmean(values), stdev(values) if len(values) > 1 else None
    if values and bars:
        counts = Counter(_find_bar(study, value, bars) for value in values)
        row["shares"] = [counts[n] / len(values) for n in range(bars)]
    texts = Counter(one.normalised for one in given if one.normalised)
    if texts:
        word, times = texts.most_common(1)[0]
        row["common"] = f"{word} ({times})"
    return row


def _values(study: RatingStudy, given: Iterable[Any]) -> Iterable[float]:
    if study.timed:
        return (fmean(row.detail["ms"]) for row in given)
    return (row.value for row in given if row.value is not None)


def _find_bar(study: RatingStudy, value: float, bars: int) -> int:
    task = study.task
    if task.kind == "likert":
        return int(value) - 1
    if task.kind in ("binary", "choice"):
        return 1 - int(value)
    low, high = (0.0, float(LONGEST_SHOWN_MS)) if study.timed else (float(task.minimum), float(task.maximum))
    return min(int(bars * (value - low) / (high - low)), bars - 1)


def describe_rater(store: Store, rater: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One rater: a row per list with its state, and a row per answer in the order they were given.

    Raises RaterRefused if there is no such rater.
    """
    lists = [row for row in describe_progress(store).raters if row["rater"] == rater]
    if not lists:
        raise RaterRefused("unknown")
    owned = {row.id: row.list for row in store.rows(slots) if row.rater == rater}
    given = [row for row in store.rows(answers) if row.slot in owned and row.kind in ("trial", "question")]
    rows = []
    for row in sorted(given, key=lambda one: (one.created, one.step)):
        stimulus = store.study.stimuli[row.row]
        asked = row.kind == "question"
        rows.append(
            {
                "list": owned[row.slot],
                "trial": row.trial or "practice",
                "item": stimulus.item,
                "condition": stimulus.condition,
                "role": "question" if asked else row.role,
                "text": stimulus.question if asked else stimulus.text,
                "answer": _write_answer(store.study, row),
                "ms": round(row.rt_ms) if row.rt_ms is not None else None,
                "correct": row.correct,
                "flags": ", ".join(row.flags),
            }
        )
    return lists, rows


def _write_answer(study: RatingStudy, row: Any) -> str:
    if row.kind == "question":
        return str(row.raw)
    if study.timed:
        return " ".join(f"{ms:.0f}" for ms in row.detail["ms"])
    if study.task.kind == "binary" and row.value is not None:
        return str(study.task.options[0 if row.value == 1.0 else 1])
    if study.task.kind == "choice" and row.value is not None:
        stimulus = study.stimuli[row.row]
        return str(stimulus.text if row.value == 1.0 else stimulus.text_b)
    return str(row.raw)


def preview_list(store: Store, name: str) -> list[dict[str, Any]] | None:
    """The trials of a list in one of the orders that a rater may see; None if there is no such list."""
    drawn = next((one for one in store.lists if one.name == name), None)
    if drawn is None:
        return None
    rows = []
    number = 0
    for trial in draw_order(store.study, drawn, seed=0, turn=0):
        stimulus = store.study.stimuli[trial.row]
        practice = stimulus.role == "practice"
        number += not practice
        rows.append({"trial": "practice" if practice else number, "stimulus": stimulus})
    return rows
