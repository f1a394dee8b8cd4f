"""The page of a benchmark: tasks by models, as published and corrected."""

from functools import partial
from typing import Any

import polars as pl

from felicity.core.wording import NO_DIFFERENCE, decimal, format_interval, p_cell, percent_interval, points
from felicity.report import Figure, Linked, Page, Section, count
from felicity.report.charts import Row, chart_accuracy
from felicity.studies.benchmark.scores import AVERAGE, CORRECTED, PUBLISHED, VERSIONS
from felicity.studies.benchmark.tasks import READING
from felicity.studies.study import Study

INTERVALS = (
    "95% intervals: Wilson's over suites for accuracies, Fisher's for correlations; reading scores have "
    "none. That of the mean adds up the variances of the tasks, which are taken as they are."
)


def sections(study: Study) -> Page:
    """The mean of the tasks first, then every task, models in pairs, and suites."""
    scores = study["scores"]
    return Page(
        title=study.facts["title"],
        subject=study.facts["benchmark"],
        question="How do the models score on the tasks, as published and with ties and words corrected?",
        answer=_answer(scores),
        hero=_hero(study, scores),
        sure=(INTERVALS, *study.facts["notes"]),
        findings=tuple(_findings(scores)),
        sections=(
            _tasks(study, scores),
            *_comparisons(study),
            *_reading(study),
            _suites(study),
        ),
        legend="Scores are per cent: accuracies, 100 times a correlation, or the share of the variance of "
        "reading times that surprisal adds to the baseline.",
        summary="tasks",
    )


def _answer(scores: pl.DataFrame) -> str:
    means = scores.filter(task=AVERAGE)
    if means.is_empty():
        rows = scores.filter(version=CORRECTED).to_dicts()
        scored = ", ".join(f"{row['model']} scores {_cell(row)}" for row in rows)
        return f"On {rows[0]['title']}, {scored}; chance is {rows[0]['chance']:g}."
    parts = []
    for (model,), part in means.group_by("model", maintain_order=True):
        cells = {row["version"]: row for row in part.iter_rows(named=True)}
        published = decimal(cells[PUBLISHED]["score"])
        parts.append(f"{model} {_cell(cells[CORRECTED])} corrected, {published} as published")
    return f"Mean over the tasks at hand: {'; '.join(parts)}."


def _link(study: Study, model: str, task: str, **filters: str) -> str:
    """Where the items of a task are; empty for the mean of all and for words, which have no verdicts."""
    found = next((one for one in study.facts["tasks"] if task in (one["name"], one["title"])), None)
    if found is None or found["score"] in READING:
        return ""
    return study.link(model, found["dataset"], **filters)


def _hero(study: Study, scores: pl.DataFrame) -> Figure | None:
    """Every task of every model, corrected, on one scale."""
    shown = scores.filter(pl.col("version") == CORRECTED, pl.col("low").is_not_null())
    several = shown["model"].n_unique() > 1
    rows = [
        Row(
            f"{row['title']}, {row['model']}" if several else row["title"],
            max(row["score"], 0.0) / 100,
            max(row["low"], 0.0) / 100,
            max(row["high"], 0.0) / 100,
            row["n"],
            link=_link(study, row["model"], row["task"]),
        )
        for row in shown.iter_rows(named=True)
    ]
    if len(rows) < 2:
        return None
    chances = {row["chance"] / 100 for row in shown.iter_rows(named=True)}
    return Figure(
        name="tasks",
        title="Scores by task, corrected",
        subtitle=study.facts["benchmark"],
        label="The score of every task with its 95% interval; the numbers are in the table of tasks.",
        chart=partial(
            chart_accuracy, rows, chance=chances.pop() if len(chances) == 1 else None, noun="items"
        ),
    )


def _findings(scores: pl.DataFrame) -> list[str]:
    """What counting differently changes, and the tasks on which a model is not above chance."""
    found = []
    for (model, title), part in scores.group_by("model", "title", maintain_order=True):
        cells = {row["version"]: row for row in part.iter_rows(named=True)}
        change = cells[CORRECTED]["score"] - cells[PUBLISHED]["score"]
        if abs(change) >= 0.005:
            found.append(
                f"{model}, {title}: {decimal(cells[PUBLISHED]['score'])} as published, "
                f"{decimal(cells[CORRECTED]['score'])} corrected."
            )
        low, chance = cells[CORRECTED]["low"], cells[CORRECTED]["chance"]
        if low is not None and low <= chance and cells[CORRECTED]["task"] != AVERAGE:
            below = cells[CORRECTED]["high"] < chance
            found.append(
                f"{model}, {title}: {'below' if below else f'{NO_DIFFERENCE} from'} chance ({chance:g})."
            )
    return found


def _tasks(study: Study, scores: pl.DataFrame) -> Section:
    models = study.models
    columns = [f"{model}, {version}" for model in models for version in VERSIONS]
    rows = []
    for (title,), part in scores.group_by("title", maintain_order=True):
        cells = {(row["model"], row["version"]): row for row in part.iter_rows(named=True)}
        shown = [
            Linked(_cell(cells[model, version]), _link(study, model, cells[model, version]["task"]))
            for model in models
            for version in VERSIONS
        ]
        first = next(iter(cells.values()))
        rows.append((str(title), *shown, f"{first['chance']:g}", count(first["n"]), _ties(part)))
    return Section(
        name="tasks",
        title="Tasks",
        lede=f"Score and 95% interval of every task. {INTERVALS}",
        columns=("Task", *columns, "Chance", "Items", "Ties"),
        rows=tuple(rows),
    )


def _ties(part: pl.DataFrame) -> str:
    return ", ".join(count(value) for value in part.filter(version=CORRECTED)["ties"])


def _cell(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return decimal(row["score"])
    return f"{decimal(row['score'])} {format_interval(row['low'], row['high'], places=1)}"


def _comparisons(study: Study) -> tuple[Section, ...]:
    compared = study.tables.get("comparisons")
    if compared is None:
        return ()
    rows = tuple(
        (
            row["task"],
            row["first"],
            row["second"],
            Linked(
                f"{points(row['difference'])} {format_interval(row['low'], row['high'], points)}",
                _link_pair(study, row),
            ),
            p_cell(row["p"]),
            p_cell(row["p_holm"]),
            row["over"],
        )
        for row in compared.iter_rows(named=True)
    )
    return (
        Section(
            name="comparisons",
            title="Models in pairs",
            lede="Difference in accuracy, in points, over the items both were judged on; the score test over "
            "suites, or over items where a task has one suite. Ties count half.",
            columns=("Task", "First", "Second", "First − second", "p", "p, Holm within the task", "Over"),
            rows=rows,
            names=3,
        ),
    )


def _link_pair(study: Study, row: dict[str, Any]) -> str:
    """Where the items of two models on a task are compared."""
    found = next((one for one in study.facts["tasks"] if row["task"] in (one["name"], one["title"])), None)
    return study.link_pair(row["first"], row["second"], found["dataset"]) if found else ""


def _reading(study: Study) -> tuple[Section, ...]:
    table = study.tables.get("reading")
    if table is None:
        return ()
    rows = tuple(
        (row["model"], row["task"], row["words"], decimal(row["score"]), count(row["n"]))
        for row in table.iter_rows(named=True)
    )
    return (
        Section(
            name="reading",
            title="Reading scores",
            lede="Per cent of the variance that the baseline leaves, by how words are scored.",
            columns=("Model", "Task", "Words", "Score", "n"),
            rows=rows,
            names=3,
        ),
    )


def _suites(study: Study) -> Section:
    rows = tuple(
        (
            row["task"],
            row["suite"],
            row["model"],
            Linked(percent_interval(row["accuracy"], row["low"], row["high"]), link),
            Linked(count(row["n"]), link),
            count(row["ties"]),
        )
        for row in study["suites"].iter_rows(named=True)
        for link in (_link(study, row["model"], row["task"], suite=row["suite"]),)
    )
    return Section(
        name="suites",
        title="By suite",
        lede="Accuracy of every suite, ties by chance; intervals are over its items.",
        columns=("Task", "Suite", "Model", "Accuracy, %", "Items", "Ties"),
        rows=rows,
        names=3,
    )
