"""Benchmarks: named sets of tasks, each a dataset with a score, and what their average is over."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from felicity.core.documents import read_packaged_folder
from felicity.core.errors import UnknownName

# How the score of a task is computed: the plain mean over suites, a correlation with what people chose, or
# the share of the variance of reading times.
SCORES = ("macro", "correlation", "eye_tracking", "self_paced")


@dataclass(frozen=True, kw_only=True)
class Task:
    """One line of a benchmark: a dataset, its judging rule (None: its authors'), and how it is scored.

    chance: the score of a model that knows nothing. optional: left out, and said to be missing, if the
    dataset is not at hand.
    """

    name: str
    title: str
    dataset: str
    score: str
    chance: float
    rule: str | None = None
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A named set of tasks whose scores are averaged.

    missing: what the benchmark has besides and is not evaluated. notes: how scores as published and
    corrected differ.
    """

    name: str
    title: str
    home: str
    language: str
    tasks: tuple[Task, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@cache
def load_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name."""
    found = [build_benchmark(fields) for fields in read_packaged_folder("felicity.data", "benchmark_entries")]
    return {benchmark.name: benchmark for benchmark in found}


def build_benchmark(fields: dict[str, Any]) -> Benchmark:
    """A benchmark from the fields of its file.

    Raises UnknownName for a score that does not exist.
    """
    given = dict(fields)
    tasks = tuple(Task(name=name, **spec) for name, spec in given.pop("tasks").items())
    for task in tasks:
        if task.score not in SCORES:
            raise UnknownName("score of a task", task.score, SCORES)
    missing, notes = (tuple(given.pop(name, ())) for name in ("missing", "notes"))
    return Benchmark(tasks=tasks, missing=missing, notes=notes, **given)


def find_benchmark(name: str) -> Benchmark:
    """A benchmark by name.

    Raises UnknownName suggesting the nearest.
    """
    known = load_benchmarks()
    if name not in known:
        raise UnknownName("benchmark", name, known, hint="see `felicity data ls`")
    return known[name]
