"""The scores of a benchmark: every task as published and corrected, their average, and models in pairs."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.schemas import Schema
from felicity.run import RunFolder, StudyFolder
from felicity.stats import READING_TASKS, compare_all, correlate, estimate_suites, measure_reading
from felicity.studies.benchmark.tasks import READING, UNSPACED

PUBLISHED, CORRECTED = "as published", "corrected"
VERSIONS = (PUBLISHED, CORRECTED)
AVERAGE = "average"
Z_95 = 1.959963984540054
SCORE_TABLE: Schema = {
    "model": pl.String(),
    "task": pl.String(),
    "title": pl.String(),
    "version": pl.String(),
    "score": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "chance": pl.Float64(),
    "n": pl.Int64(),
    "ties": pl.Int64(),
    "interval": pl.String(),
}
Scored = dict[str, Any]


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Scores of every task, model and version; accuracy by suite; every two models compared within tasks."""
    tasks = folder.facts["tasks"]
    rows: list[Scored] = []
    for model in folder.models:
        for version in VERSIONS:
            found = [_score(folder, model, task, version) for task in tasks]
            rows += found
            if len(found) > 1:
                rows.append(_average(found, model, version))
    tables = {"scores": pl.DataFrame(rows, schema=SCORE_TABLE), "suites": _list_suites(folder, tasks)}
    compared = _compare(folder, tasks)
    if compared is not None:
        tables["comparisons"] = compared
    reading = [task for task in tasks if task["score"] in READING]
    return tables | ({"reading": _vary_reading(folder, reading)} if reading else {})


def _vary_reading(folder: StudyFolder, tasks: list[Mapping[str, Any]]) -> pl.DataFrame:
    """The reading scores in three ways: as published, with the space, and also without punctuated words."""
    ways = (
        ("without the space before a word, as published", UNSPACED, False),
        ("with the space", "", False),
        ("with the space, words with a full stop, comma or apostrophe left out", "", True),
    )
    rows = []
    for model in folder.models:
        for way, part, exclude in ways:
            words = read_words(folder.run(model, "_".join(filter(None, (tasks[0]["dataset"], part)))))
            for task in tasks:
                found = measure_reading(words, task["score"], exclude=exclude)
                rows.append((model, task["title"], way, found.share, found.n))
    return pl.DataFrame(rows, schema=("model", "task", "words", "score", "n"), orient="row")


def _score(folder: StudyFolder, model: str, task: Mapping[str, Any], version: str) -> Scored:
    run = folder.run(model, task["dataset"])
    if task["score"] in READING and version == PUBLISHED:
        run = folder.run(model, f"{task['dataset']}_{UNSPACED}")
    found = score_task(run, task["score"], version)
    named = {"model": model, "task": task["name"], "title": task["title"], "version": version}
    return named | {"chance": 100 * task["chance"]} | found


def score_task(run: RunFolder, score: str, version: str) -> Scored:
    """Score in per cent with its interval, n and ties, from a finished run."""
    return SCORERS[score](run, version)


def _score_suites(run: RunFolder, version: str) -> Scored:
    """The plain mean over suites; as published, a tie counts as right."""
    judged = run.read("judgements")
    judged = judged.filter(pl.col("measure") == judged["measure"][0])
    tied = (pl.col("passed") > 0) & (pl.col("passed") < 1)
    passed = pl.when(tied).then(1.0).otherwise("passed") if version == PUBLISHED else pl.col("passed")
    suites = judged.group_by("suite", maintain_order=True).agg(passed.mean().alias("share"), n=pl.len())
    found = estimate_suites(suites["share"].to_numpy(), suites["n"].to_numpy().astype(np.float64), macro=True)
    return {
        "score": 100 * float(str(found["accuracy"])),
        "low": 100 * float(str(found["low"])),
        "high": 100 * float(str(found["high"])),
        "n": found["n"],
        "ties": int(judged.select(tied.sum()).item()),
        "interval": found["interval"],
    }


def _score_correlation(run: RunFolder, version: str) -> Scored:
    """Spearman's correlation of P(-ity) with the share of people who chose it, times 100.

    Of two forms, P is a monotone function of the difference of their log-probabilities, so the margin is
    correlated. Both versions are the same.
    """
    del version
    judged = run.read("judgements")
    margins = judged.filter(pl.col("measure") == judged["measure"][0]).select("item", "margin")
    ratios = run.read("items").select("item", pl.col("ratio").cast(pl.Float64)).unique("item")
    both = margins.join(ratios, on="item")
    if both["margin"].n_unique() < 2:
        raise NotPossible(
            f"All {both.height} margins in {run.path} are {both['margin'][0]:g}, so they correlate with "
            "nothing: the model tells no form from another. Leave this task out: name the others with "
            "`felicity benchmark --task`."
        )
    found = correlate(both["margin"], both["ratio"], method="spearman").row(0, named=True)
    return {
        "score": 100 * found["r"],
        "low": 100 * found["low"],
        "high": 100 * found["high"],
        "n": found["n"],
        "ties": int((both["margin"] == 0).sum()),
        "interval": "Fisher's z over items",
    }


def _score_reading(measure: str) -> Callable[[RunFolder, str], Scored]:
    def score(run: RunFolder, version: str) -> Scored:
        """The share of the variance that the baseline leaves."""
        del version
        found = measure_reading(read_words(run), measure)
        return {"score": found.share, "n": found.n, "ties": 0, "interval": "none"}

    return score


def read_words(run: RunFolder) -> pl.DataFrame:
    """The words of a reading task with their surprisal and that of the word before."""
    items = run.read("items")
    words = items.filter(pl.col("condition") == "word")
    scores = run.read("scores").select("request", "value")
    requests = run.read("requests").select("request", "item", "condition").join(scores, on="request")
    for condition, name in (("word", "surprisal"), ("previous", "surprisal_1")):
        part = requests.filter(pl.col("condition") == condition)
        words = words.join(part.select("item", (-pl.col("value")).alias(name)), on="item", how="left")
    measures = [name for names in READING_TASKS.values() for name in names]
    numeric = ["position", "frequency", "length", "length_1", *measures]
    numbers = [pl.col(name).cast(pl.Float64) for name in numeric]
    return words.select(
        "item",
        "prev_item",
        "surprisal",
        "surprisal_1",
        *numbers,
        word="text",
        text="sentence",
        sentence=pl.lit(1),
    )


SCORERS: dict[str, Callable[[RunFolder, str], Scored]] = {
    "macro": _score_suites,
    "correlation": _score_correlation,
    "eye_tracking": _score_reading("eye_tracking"),
    "self_paced": _score_reading("self_paced"),
}


def _average(found: list[Scored], model: str, version: str) -> Scored:
    """The plain mean of the tasks; its interval adds up the variances of those that have one.

    Tasks are taken as they are, not as a sample of tasks.
    """
    errors = [(row["high"] - row["low"]) / (2 * Z_95) for row in found if row.get("low") is not None]
    error = math.sqrt(sum(value**2 for value in errors)) / len(found)
    score = float(np.mean([row["score"] for row in found]))
    return {
        "model": model,
        "task": AVERAGE,
        "title": f"Mean of {len(found)} tasks",
        "version": version,
        "score": score,
        "low": score - Z_95 * error if errors else None,
        "high": score + Z_95 * error if errors else None,
        "chance": float(np.mean([row["chance"] for row in found])),
        "n": sum(row["n"] for row in found),
        "ties": sum(row["ties"] for row in found),
        "interval": "from those of the tasks",
    }


def _list_suites(folder: StudyFolder, tasks: list[Mapping[str, Any]]) -> pl.DataFrame:
    parts = []
    for task in tasks:
        if task["score"] in READING:
            continue
        for model in folder.models:
            estimates = folder.run(model, task["dataset"]).read("estimates")
            measure = estimates["measure"][0]
            suites = estimates.filter(level="suite", measure=measure).select(
                pl.lit(model).alias("model"),
                pl.lit(task["name"]).alias("task"),
                pl.col("name").alias("suite"),
                "n",
                "accuracy",
                "low",
                "high",
                "ties",
            )
            parts.append(suites)
    columns = ("model", "task", "suite", "n", "accuracy", "low", "high", "ties")
    return pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def _compare(folder: StudyFolder, tasks: list[Mapping[str, Any]]) -> pl.DataFrame | None:
    """Every two models within each task that has items to pair; ties count half."""
    if len(folder.models) < 2:
        return None
    parts = []
    for task in tasks:
        if task["score"] in READING:
            continue
        answers = {}
        for model in folder.models:
            judged = folder.run(model, task["dataset"]).read("judgements")
            answers[model] = judged.filter(pl.col("measure") == judged["measure"][0])
        compared = compare_all(answers, cluster="suite")
        parts.append(compared.select(pl.lit(task["name"]).alias("task"), pl.all()))
    return pl.concat(parts) if parts else None
