"""What the study of learning curves scores: every checkpoint on a dataset, or on the tasks of a benchmark."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint
from felicity.data import Dataset, find_benchmark, find_entry, has_copy, load_benchmarks
from felicity.engines import Checkpoint, list_checkpoints
from felicity.run import StudyFolder, digest_items, plan_run
from felicity.studies.data_settings import name_data
from felicity.studies.definition import Job, Models, Planned
from felicity.studies.trajectory.settings import TrajectorySettings

FEWEST = 2
# The accuracy of guessing, unless items say how many sentences there are to choose from.
CHANCE = 0.5
Sets = dict[str, tuple[Dataset, pl.DataFrame]]


def plan(settings: TrajectorySettings, models: Models, folder: StudyFolder) -> Planned:  # noqa: ARG001
    """A run of every checkpoint on every dataset.

    Raises BadInput if no training is named, one has a single checkpoint, or items are not right or wrong.
    """
    sets, notes = read_sets(settings)
    points = _list_points(models)
    if points.is_empty():
        raise BadInput("Learning curves are those of a training; name its checkpoints with -m.")
    sizes = points.group_by("training").len()
    single = sizes.filter(pl.col("len") < FEWEST)
    if len(single):
        raise BadInput(f"{single['training'][0]} has one checkpoint; a curve needs at least {FEWEST}.")
    return Planned(
        jobs=_jobs(settings, models, sets),
        tables={"checkpoints": points},
        facts={
            "dataset": name_data(settings.dataset),
            "sets": list(sets),
            "chance": {name: find_chance(data) for name, (data, _) in sets.items()},
        },
        # Checkpoints may be added later, so they are not part of what has to stay the same.
        inputs=fingerprint([digest_items(items) for _, items in sets.values()]),
        notes=notes,
    )


def read_sets(settings: TrajectorySettings) -> tuple[Sets, tuple[str, ...]]:
    """The datasets by name, with their items, and what is left out of a benchmark.

    Raises BadInput if a dataset has ratings instead of right and wrong.
    """
    if str(settings.dataset) not in load_benchmarks():
        data, items = settings.read()
        names, notes = {data.name: (data, items)}, list[str]()
    else:
        tasks = [task for task in find_benchmark(str(settings.dataset)).tasks if task.score == "macro"]
        present = [task for task in tasks if not task.optional or has_copy(find_entry(task.dataset))]
        names = {task.dataset: settings.read(task.dataset) for task in present}
        left = [task.title for task in tasks if task not in present]
        notes = [f"Left out, because not at hand: {', '.join(left)}."] if left else []
        notes.append("Only tasks that are accuracies have learning curves here.")
    for name, (data, _) in names.items():
        if data.rule == "rating":
            raise BadInput(f"{name} has ratings, not right and wrong answers; choose a dataset of pairs.")
    return names, tuple(notes)


def find_chance(data: Dataset) -> float:
    """The accuracy of guessing: one in so many sentences, if one contrast compares them."""
    return 1.0 / (1 + len(data.contrasts[0].worse)) if len(data.contrasts) == 1 else CHANCE


def _list_points(models: Models) -> pl.DataFrame:
    """The checkpoints by name, from the specs that opened them."""
    rows = [(model.name, *_place(model.spec)) for model in models]
    return pl.DataFrame(rows, schema=("model", "training", "label", "step"), orient="row")


def _place(spec: str) -> tuple[str, str, float]:
    point = _find_point(spec)
    return point.training, point.label, point.step


def _find_point(spec: str) -> Checkpoint:
    path = Path(spec)
    if path.is_dir():
        siblings = list_checkpoints(str(path.parent))
        return next(point for point in siblings if Path(point.spec).name == path.name)
    return list_checkpoints(spec)[0]


def _jobs(settings: TrajectorySettings, models: Models, sets: Sets) -> Iterator[Job]:
    for model in models:
        lm = model.open()
        for name, (data, items) in sets.items():
            planned = plan_run(data, items, lm, seed=settings.seed, options={"sample": settings.sample})
            yield Job(model=model.name, lm=lm, plan=planned, part=name if len(sets) > 1 else "")
