"""The study of larger probes (Shivagunde et al. 2023): datasets x models in, tables and a report out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.files import read_frame
from felicity.core.progress import Progress, rename_step
from felicity.run import Model, name_models, read_study, write_sheets, write_study
from felicity.studies.cloze.analysis import (
    Answers,
    Sets,
    count_targets,
    describe_targets,
    rate_humans,
    tabulate_accuracy,
)
from felicity.studies.cloze.plan import find_extensions, read_cloze_set, read_cloze_sets, wrote_items
from felicity.studies.cloze.scoring import ANSWERED, NOTE, answer_frames, read_answers
from felicity.studies.cloze.size_comparison import compare_accuracies, compare_sizes, fit_regressions
from felicity.studies.replay import read_published

# Table 3 to 5 of the paper: mean of two annotators on 100 sentences, and their kappa.
PUBLISHED_HUMANS = {
    "neg_1500_simp_temp": (58.5, 0.50),
    "neg_1500_simp_gen": (45.5, 0.45),
    "role_1500": (10.0, 0.07),
}
KIND = "cloze"


@dataclass(frozen=True)
class ClozeStudy:
    """What the study found, table by table; `warnings` are to be read first."""

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    extensions: list[tuple[str, str]]
    answers: Answers
    sets: Sets
    accuracy: pl.DataFrame
    targets: pl.DataFrame
    sizes: pl.DataFrame
    changes: pl.DataFrame
    regressions: pl.DataFrame
    words: pl.DataFrame
    humans: pl.DataFrame | None
    published: pl.DataFrame
    warnings: list[str]
    notes: list[str]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables that are written, by file name."""
        named = {
            "accuracy": self.accuracy,
            "targets": self.targets,
            "sizes": self.sizes,
            "changes": self.changes,
            "regressions": self.regressions,
            "target_words": self.words,
            "published": self.published,
        }
        if self.humans is not None:
            named["humans"] = self.humans
        return {name: table for name, table in named.items() if table.width}


def study_cloze(
    datasets: Sequence[str],
    models: Sequence[Callable[[], Model]],
    *,
    out: Path,
    against: Sequence[str] = (),
    figures: Sequence[str] = ("top1", "top5", "sensitivity"),
    human: Path | None = None,
    affirmative: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ClozeStudy:
    """Ask every model about every dataset and draw the conclusions; the tables are kept in `out`.

    `models` are opened one after another. `against` adds pairs of a small set and its extension, written
    SMALL:LARGE. `human` is a table of people's answers: dataset, item, condition, annotator, answer.
    `affirmative` is the condition of files whose targets are looked for, by default all. `sample` takes only
    this many items of each suite; people's answers are then still those to all items.

    Raises BadInput if a dataset or model is named twice.
    """
    sets = read_cloze_sets(datasets, against=against, affirmative=affirmative, sample=sample, seed=seed)
    answers: dict[tuple[str, str], pl.DataFrame] = {}
    warnings: list[str] = []
    for name, open_one in name_models(models, short=True).items():
        lm = open_one()
        for label, data in sets.items():
            if wrote_items(data, name=lm.info.name, spec=lm.spec):
                warnings.append(
                    f"{name} is judged on {label}, whose items it wrote itself: its figures there say little."
                )
            shown = rename_step(progress, f"{name} on {label}")
            answers[label, name] = answer_frames(lm, data, out / "runs" / f"{label}-{name}", progress=shown)
    study = analyse(answers, sets, find_extensions(list(sets), against), figures=figures, human=human)
    study.warnings[:0] = warnings
    tables = write_sheets(out, study.tables)
    kept = [f"runs/{label}-{model}/{file}" for label, model in answers for file in (ANSWERED, NOTE)]
    write_study(
        out,
        KIND,
        files=[*(path.name for path in tables), *kept],
        datasets=list(datasets),
        against=list(against),
        figures=list(figures),
        human=str(human) if human else None,
        affirmative=affirmative,
        sample=sample,
        seed=seed,
        runs=[{"dataset": label, "model": model} for label, model in answers],
        warnings=warnings,
    )
    return study


def read_again(folder: Path, *, check: bool = True) -> ClozeStudy:
    """The study in a folder, analysed again from the answers that are kept there.

    check: refuse answers that have changed since.

    Raises BadInput if a dataset is no longer what the models answered.
    """
    record = read_study(folder, check=check).record
    # Earlier versions took no sample.
    sample, seed = record.get("sample"), record.get("seed", 0)
    sets = read_cloze_sets(
        record["datasets"],
        against=record["against"],
        affirmative=record.get("affirmative"),
        sample=sample,
        seed=seed,
    )
    answers = {
        (run["dataset"], run["model"]): read_answers(
            sets[run["dataset"]], folder / "runs" / f"{run['dataset']}-{run['model']}"
        )
        for run in record["runs"]
    }
    human = Path(record["human"]) if record["human"] else None
    extensions = find_extensions(list(sets), record["against"])
    study = analyse(answers, sets, extensions, figures=record["figures"], human=human)
    study.warnings[:0] = record["warnings"]
    return study


def analyse(
    answers: Answers,
    sets: Sets,
    extensions: list[tuple[str, str]],
    *,
    figures: Sequence[str],
    human: Path | None = None,
) -> ClozeStudy:
    """Every table of the study, from answers alone."""
    accuracy = tabulate_accuracy(answers, sets)
    targets = describe_targets(answers, sets)
    regressions, notes = fit_regressions(answers, sets, extensions)
    notes = [*_note_sample(sets), *notes, *_note_targets(targets), *note_repeats(sets)]
    return ClozeStudy(
        datasets=tuple(sets),
        models=tuple(dict.fromkeys(model for _, model in answers)),
        extensions=extensions,
        answers=answers,
        sets=sets,
        accuracy=accuracy,
        targets=targets,
        sizes=compare_sizes(answers, sets, extensions, figures=figures),
        changes=compare_accuracies(accuracy, extensions),
        regressions=regressions,
        words=count_targets(sets),
        humans=None if human is None else rate_humans(_read_human(human), _whole(sets)),
        published=_select_published(sets),
        warnings=[],
        notes=notes,
    )


def _note_sample(sets: Sets) -> list[str]:
    sizes = {data.sample for data in sets.values() if data.sample}
    return [
        f"Every set is a sample of {size} items of each suite; published figures and people's are of all."
        for size in sizes
    ]


def _note_targets(targets: pl.DataFrame) -> list[str]:
    """Targets that can never be found, said once per dataset and model."""
    found = []
    for row in targets.iter_rows(named=True):
        if row["several_tokens"]:
            found.append(
                f"{row['model']} cuts {row['several_tokens']} of {row['n']} targets of {row['dataset']} into "
                "several tokens; none of these can be among its likeliest tokens."
            )
        if row["unknown"]:
            found.append(
                f"{row['model']} does not know {row['unknown']} of {row['n']} targets of {row['dataset']}; "
                "they count as not found and have no probability."
            )
    return found


def note_repeats(sets: Sets) -> list[str]:
    """Frames that occur more than once in a dataset, since tests and power treat them as independent."""
    found = []
    for name, data in sets.items():
        frames = data.items.select("context_text", "target")
        again = len(frames) - frames.n_unique()
        if again:
            found.append(f"{name} repeats {again} of its {len(frames)} sentences; tests count each of them.")
    return found


def _select_published(sets: Sets) -> pl.DataFrame:
    """The published cells of the datasets at hand, for a backdrop."""
    cells = read_published().with_columns(
        pl.col("dataset").str.to_lowercase().str.replace_all("-", "_").alias("dataset")
    )
    return cells.filter(pl.col("dataset").is_in(list(sets)))


def _whole(sets: Sets) -> Sets:
    """The datasets without their sampling."""
    return {
        label: read_cloze_set(data.name, affirmative=data.affirmative) if data.sample else data
        for label, data in sets.items()
    }


def _read_human(path: Path) -> pl.DataFrame:
    return read_frame(path, as_text=True)
