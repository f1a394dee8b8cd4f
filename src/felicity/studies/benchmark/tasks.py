"""What a benchmark scores: one run per task and model; words of a reading task also without their space."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.policy import Policy
from felicity.data import (
    Benchmark,
    Dataset,
    Task,
    find_benchmark,
    find_entry,
    has_copy,
    read_dataset,
    sample_items,
)
from felicity.run import Model, StudyFolder, digest_items, plan_run
from felicity.studies.benchmark.settings import BenchmarkSettings
from felicity.studies.definition import Job, Models, Planned

READING = ("eye_tracking", "self_paced")
# The run of a reading task in which words have no space before them, as BabyLM scores them.
UNSPACED = "without_space"


@dataclass(frozen=True)
class TaskItems:
    """A task with its dataset, and the items that are scored."""

    task: Task
    data: Dataset
    items: pl.DataFrame


def plan(settings: BenchmarkSettings, models: Models, folder: StudyFolder) -> Planned:  # noqa: ARG001
    """A run of every model on every task whose dataset is at hand.

    Raises UnknownName for a task that the benchmark does not have, BadInput if no task can be carried out.
    """
    benchmark = find_benchmark(settings.benchmark)
    chosen = choose_tasks(benchmark, settings.tasks)
    absent = [task for task in chosen if task.optional and not _is_at_hand(task, settings)]
    present = [_read(task, settings) for task in chosen if task not in absent]
    if not present:
        raise BadInput(f"None of the datasets of {benchmark.name} is at hand; see `felicity data get NAME`.")
    left_out = tuple(
        f"{task.title} is left out: {task.dataset} is not at hand; give a folder with it with --from."
        for task in absent
    )
    runs = {one.data.name: one for one in present}
    return Planned(
        jobs=_jobs(settings, models, list(runs.values())),
        facts={
            "benchmark": benchmark.name,
            "title": benchmark.title,
            "language": benchmark.language,
            "tasks": [asdict(one.task) for one in present],
            "notes": list(benchmark.notes),
        },
        inputs=fingerprint([digest_items(one.items) for one in present]),
        notes=(*left_out, *benchmark.missing),
    )


def choose_tasks(benchmark: Benchmark, asked: tuple[str, ...]) -> list[Task]:
    """The tasks that are asked for, in the order of the benchmark; all of them if none is.

    Raises UnknownName.
    """
    known = {task.name: task for task in benchmark.tasks}
    for name in asked:
        if name not in known:
            raise UnknownName(f"task of {benchmark.name}", name, known)
    return [task for task in benchmark.tasks if not asked or task.name in asked]


def _read(task: Task, settings: BenchmarkSettings) -> TaskItems:
    data = read_dataset(task.dataset, rule=task.rule, folder=_own(task, settings))
    # Regressions and correlations need all their words.
    size = settings.sample if task.score == "macro" else None
    return TaskItems(task, data, sample_items(data.items, size, seed=settings.seed))


def _own(task: Task, settings: BenchmarkSettings) -> Path | None:
    """The user's folder, if it has the files of the task."""
    folder = settings.source
    return folder if folder is not None and has_copy(find_entry(task.dataset), folder) else None


def _is_at_hand(task: Task, settings: BenchmarkSettings) -> bool:
    return _own(task, settings) is not None or has_copy(find_entry(task.dataset))


def _jobs(settings: BenchmarkSettings, models: Models, tasks: list[TaskItems]) -> Iterator[Job]:
    options: dict[str, object] = {"sample": settings.sample, "benchmark": settings.benchmark}
    for model in models:
        lm = model.open()
        for one in tasks:
            yield _job(model.name, lm, one, options, settings.seed, part=one.data.name)
        for one in tasks:
            if one.task.score in READING:
                unspaced = model.open(Policy(**lm.info.policy).replace(seam="apart"))  # type: ignore[arg-type]
                yield _job(
                    model.name, unspaced, one, options, settings.seed, part=f"{one.data.name}_{UNSPACED}"
                )


def _job(name: str, lm: Model, one: TaskItems, options: dict[str, object], seed: int, *, part: str) -> Job:
    planned = plan_run(one.data, one.items, lm, seed=seed, options=dict(options))
    return Job(model=name, lm=lm, plan=planned, part=part)
