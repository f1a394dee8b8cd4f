"""The settings of a benchmark."""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.settings import argument, option
from felicity.studies.definition import StudyDefinition


@dataclass(frozen=True, kw_only=True)
class BenchmarkSettings:
    """Score models on all tasks of a benchmark, as published and corrected, and average them.

    Every task is a run of its dataset, judged by the authors' rule. The page shows tasks by models with
    intervals, their macro average, and a paired test of every two models within each task. `felicity run
    BENCHMARK` does the same.

    \b
    Examples:
      felicity benchmark babylm -m smollm2 -o runs/babylm
      felicity benchmark babylm -m ./my-model -m smollm2 --sample 20
      felicity benchmark babylm --task blimp --task wug_adj
    """

    benchmark: str = argument("A benchmark's name (see `felicity data ls`).", metavar="BENCHMARK")
    tasks: tuple[str, ...] = option((), "Only this task; repeatable.", flag="--task")
    sample: int | None = option(None, "Use only this many items per suite.", least=1)
    seed: int = option(0, "Seed of the sample.", least=0)
    source: Path | None = option(
        None, "A folder with your own copies of the datasets.", flag="--from", metavar="DIR"
    )


STUDY = StudyDefinition(
    name="benchmark", title="Benchmark", settings=BenchmarkSettings, code="felicity.studies.benchmark"
)
