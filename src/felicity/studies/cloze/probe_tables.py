"""Every table of the study of larger probes, from the runs of its folder."""

from pathlib import Path

import polars as pl

from felicity.core.files import read_frame
from felicity.papers.replay import read_published
from felicity.run import StudyFolder
from felicity.studies.cloze.answers import (
    Answers,
    Sets,
    count_targets,
    describe_targets,
    pick_items,
    rate_humans,
    tabulate_accuracy,
)
from felicity.studies.cloze.frames import ClozeSet, find_extensions
from felicity.studies.cloze.size_comparison import compare_accuracies, compare_sizes, fit_regressions
from felicity.studies.cloze.targets import SPELT


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Hit rates, targets, both sizes compared, people's answers, and items to look at."""
    settings = folder.record["settings"]
    sets = read_sets(folder)
    answers = {
        (label, model): read_answers(folder, data, model)
        for model in folder.models
        for label, data in sets.items()
    }
    extensions = find_extensions(list(sets), settings["against"])
    accuracy = tabulate_accuracy(answers, sets)
    targets = describe_targets(answers, sets)
    regressions, unfitted = fit_regressions(answers, sets, extensions)
    notes = [*_note_sample(sets), *unfitted, *_note_targets(targets), *note_repeats(sets)]
    tables = {
        "accuracy": accuracy,
        "targets": targets,
        "sizes": compare_sizes(answers, sets, extensions, figures=settings["figures"]),
        "changes": compare_accuracies(accuracy, extensions),
        "regressions": regressions,
        "target_words": count_targets(sets),
        "published": _select_published(sets),
        "examples": _pick_examples(answers, sets),
        "notes": pl.DataFrame({"note": notes}, schema={"note": pl.String}),
    }
    if settings["human"]:
        given = read_frame(Path(settings["human"]), as_text=True)
        tables["humans"] = rate_humans(given, read_sets(folder, whole=True))
    return {name: table for name, table in tables.items() if table.width and table.height}


def read_sets(folder: StudyFolder, *, whole: bool = False) -> dict[str, ClozeSet]:
    """The cloze sets that the study kept; `whole`: with the items that a sample left out."""
    frames = folder.read("frames")
    kept = frames if whole else frames.filter("asked")
    return {
        label: ClozeSet(
            label,
            kept.filter(dataset=label).drop("dataset", "asked"),
            tuple(facts["targets"]),
            tuple(facts["change"]),
            sample=facts["sample"],
            looked_for=facts["looked_for"],
        )
        for label, facts in folder.facts["sets"].items()
    }


def read_answers(folder: StudyFolder, data: ClozeSet, model: str) -> pl.DataFrame:
    """One row per frame: the likeliest words, the target's rank among them, and the log-probability of the
    target and of its contrast, in nats.
    """
    run = folder.run(model, data.label)
    filled = run.read("fillers").with_columns(pl.concat_str("suite", "item", separator="/").alias("item"))
    keys = ["item", "condition"]
    answers = data.items.join(
        filled.select(*keys, "frame", "predictions", "rank"), on=keys, how="left", maintain_order="left"
    )
    spelt = run.read_file(run.path / f"{SPELT}.parquet")
    return answers.join(spelt, on=keys, how="left", maintain_order="left")


def _pick_examples(answers: Answers, sets: Sets) -> pl.DataFrame:
    """Frames to look at, one row per frame and model: its likeliest word, and the rank of the target."""
    parts = []
    for dataset in sets:
        picked = pick_items(answers, sets, dataset).with_row_index("place")
        parts += [
            picked.select(
                pl.lit(dataset).alias("dataset"),
                pl.col("place").cast(pl.Int64),
                "frame",
                "target",
                pl.lit(model).alias("model"),
                pl.col(f"{model} first").alias("likeliest"),
                pl.col(f"{model} rank").alias("rank"),
            )
            for label, model in answers
            if label == dataset
        ]
    return pl.concat(parts)


def _note_sample(sets: Sets) -> list[str]:
    sizes = {data.sample for data in sets.values() if data.sample}
    return [
        f"Every set is a sample of {size} items of each suite; published figures and people's are of all."
        for size in sizes
    ]


def _note_targets(targets: pl.DataFrame) -> list[str]:
    """Targets that can never be found, said once per dataset and model."""
    notes = []
    for row in targets.iter_rows(named=True):
        if row["several_tokens"]:
            notes.append(
                f"{row['model']} cuts {row['several_tokens']} of {row['n']} targets of {row['dataset']} into "
                "several tokens; none of these can be among its likeliest tokens."
            )
        if row["unknown"]:
            notes.append(
                f"{row['model']} does not know {row['unknown']} of {row['n']} targets of {row['dataset']}; "
                "they count as not found and have no probability."
            )
    return notes


def note_repeats(sets: Sets) -> list[str]:
    """Frames that occur more than once in a dataset, since tests and power treat them as independent."""
    notes = []
    for name, data in sets.items():
        frames = data.items.select("context_text", "target")
        again = len(frames) - frames.n_unique()
        if again:
            notes.append(f"{name} repeats {again} of its {len(frames)} sentences; tests count each of them.")
    return notes


def _select_published(sets: Sets) -> pl.DataFrame:
    """The published cells of the datasets at hand, for a backdrop."""
    cells = read_published().with_columns(
        pl.col("dataset").str.to_lowercase().str.replace_all("-", "_").alias("dataset")
    )
    return cells.filter(pl.col("dataset").is_in(list(sets)))
