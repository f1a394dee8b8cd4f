"""The study of implicit causality (Huynh et al. 2022): stimuli x models in, tables and a report out.

The folder holds everything: `study.json` (what was asked), `stimuli.parquet`, under `models/NAME` the
run of each model with `preference.parquet` and `continuations.parquet`, `ratings.parquet` once people have
rated continuations, and the tables of all models as CSV files.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.engine import Sampling
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import disk_errors, read_frame
from felicity.core.progress import Progress
from felicity.run import (
    Model,
    RunFolder,
    carry_out,
    check_record,
    describe_study,
    is_study,
    name_models,
    read_record,
    write_record,
    write_sheets,
    write_table,
)
from felicity.studies.causality.continuations import (
    FULL_STOP,
    WHOLE_TOKENS,
    count_continuations,
    count_reasons,
    describe_diversity,
    score_continuations,
    write_continuations,
)
from felicity.studies.causality.preference import (
    PreferenceModels,
    average_verbs,
    describe_models,
    draw_agreement,
    fit_preference,
    plan_preference,
    predict_curves,
    tabulate_preference,
)
from felicity.studies.causality.ratings import RatingFindings, analyse_ratings, read_ratings
from felicity.studies.causality.reference import share_references
from felicity.studies.causality.stimuli import StimulusSet, read_stimuli_set

KIND = "causality"
STIMULI = "stimuli.parquet"
RATINGS = "ratings.parquet"
# The field of the record that names the model whose continuations were rated.
RATED = "rated"
PAPER_SAMPLING = Sampling(tokens=WHOLE_TOKENS, whole=WHOLE_TOKENS, stop=(FULL_STOP,))
FREQUENT_SHOWN = 30
# What is kept of each model beside its run.
KEPT = ("preference", "continuations")
# The tables that are written, beside those of the ratings.
TABLES = (
    "agreement",
    "verbs",
    "mixed_models",
    "curves",
    "diversity",
    "frequent",
    "references",
    "flags",
)


@dataclass(frozen=True)
class ModelFindings:
    """What one model prefers and writes; `written` is None if it was not asked to continue."""

    name: str
    preference: pl.DataFrame
    fitted: PreferenceModels
    written: pl.DataFrame | None


@dataclass(frozen=True)
class CausalityStudy:
    """The findings of every model, the tables over all of them, and those of the ratings if there are any."""

    record: dict[str, Any]
    stimuli: pl.DataFrame
    models: tuple[ModelFindings, ...]
    tables: dict[str, pl.DataFrame]
    ratings: RatingFindings | None = None


def run_causality(
    source: str,
    models: Sequence[Callable[[], Model]],
    out: Path,
    *,
    frequency: Path | None = None,
    sampling: Sampling | None = PAPER_SAMPLING,
    sample: int | None = None,
    seed: int = 0,
    progress: Callable[[str], Progress | None] | None = None,
) -> CausalityStudy:
    """Carry out the study with every model, resuming what is in the folder, and analyse it.

    sampling: how prompts are continued; None does not continue them. sample: only the first noun pairs,
    this many.

    Raises BadInput if the folder has another study.
    """
    stimuli = read_stimuli_set(source, frequency=frequency)
    if sample is not None:
        kept = stimuli.rows["noun_pair"].unique(maintain_order=True).head(sample).implode()
        stimuli = replace(stimuli, rows=stimuli.rows.filter(pl.col("noun_pair").is_in(kept)))
    record = _begin(out, stimuli, source, sampling, seed)
    names = name_models(models, short=True)
    # The models of this call are asked again; the others must be as they were.
    others = {"models": [name for name in record.get("models", []) if name not in names]}
    check_record(out, _list_kept(others)[1:], advice="run the study again with that model")
    if RATED in record:
        check_record(out, [RATINGS], advice="give them again with `felicity causality report --ratings`")
    for name, open_one in names.items():
        place = out / "models" / name
        _ask(open_one(), stimuli, place, sampling, seed=seed, progress=progress and progress(name))
    known = [*record.get("models", []), *names]
    _write_record(out, record | {"models": list(dict.fromkeys(known))})
    return read_causality(out)


def _ask(
    lm: Model,
    stimuli: StimulusSet,
    folder: Path,
    sampling: Sampling | None,
    *,
    seed: int,
    progress: Progress | None,
) -> None:
    """One model: the pronouns by the pipeline, then the continuations."""
    place = RunFolder(folder)
    plan = plan_preference(stimuli, seed=seed, options={"study": KIND})
    carry_out(lm, plan, place, progress=progress)
    table = tabulate_preference(stimuli, place.read("requests"), place.read("scores"))
    write_table(table, folder / "preference.parquet")
    if sampling is None:
        return
    written = write_continuations(lm, stimuli, sampling, progress=progress)
    write_table(score_continuations(lm, written), folder / "continuations.parquet")


def read_causality(
    out: Path, *, ratings: Path | None = None, model: str | None = None, check: bool = True
) -> CausalityStudy:
    """A study from its folder, analysed again; its tables are written there.

    ratings: the table or folder that `felicity rate export` wrote; it is kept with the study, and used when
    none is given later. model: the one whose continuations were rated, if several have written some.
    check: refuse a study whose files have changed since; without it, new ratings are not kept.

    Raises BadInput if the folder has no study, the ratings are of other sentences, or it is not known
    whose continuations they are.
    """
    record = _read(out, check=check)
    if check:
        # Ratings that are given anew replace those that were kept.
        check_record(out, [name for name in _list_kept(record) if ratings is None or name != RATINGS])
    stimuli = read_frame(out / STIMULI)
    models = tuple(_read_model(out / "models" / name, name) for name in record.get("models", []))
    if not models:
        raise BadInput(f"No model has finished in {out}; run `felicity causality run` with -o {out} again.")
    study = CausalityStudy(record, stimuli, models, _tabulate(models))
    if ratings is not None:
        rated, known = _rated_stimuli(models, model)
        table = read_ratings(ratings).select("participant", "sentence", "rating")
        study = replace(study, ratings=analyse_ratings(table, known))
        if check:
            write_table(table, out / RATINGS)
            _write_record(out, record | {RATED: rated})
    elif RATED in record:
        if model not in (None, record[RATED]):
            raise BadInput(
                f"The kept ratings are of continuations by '{record[RATED]}'; give --ratings as well to "
                f"report ratings of those by '{model}'."
            )
        _, known = _rated_stimuli(models, record[RATED])
        study = replace(study, ratings=analyse_ratings(read_frame(out / RATINGS), known))
    _write_tables(study, out)
    return study


def _read(out: Path, *, check: bool = True) -> dict[str, Any]:
    """What a study was asked.

    Raises BadInput if the folder has none, or one of another kind.
    """
    record = read_record(out, check=check) if is_study(out) else {}
    if record.get("study") != KIND:
        raise BadInput(f"{out} has no study of causality; make one with `felicity causality run -o {out}`.")
    return record


def _list_kept(record: dict[str, Any]) -> list[str]:
    """The files that everything else is computed from."""
    names = [f"models/{name}/{table}.parquet" for name in record.get("models", []) for table in KEPT]
    return [STIMULI, *names, *([RATINGS] if RATED in record else [])]


def read_continuations(
    out: Path, model: str | None = None, *, check: bool = True
) -> tuple[str, pl.DataFrame]:
    """The continuations of a model of the study, by name if there are several.

    check: refuse a study whose files have changed since.

    Raises BadInput if there are none.
    """
    record = _read(out, check=check)
    if check:
        check_record(out, _list_kept(record))
    names = record.get("models", [])
    if model is None and len(names) != 1:
        raise BadInput(f"{out} has the models {', '.join(names)}; choose one with --model.")
    name = model or names[0]
    path = out / "models" / name / "continuations.parquet"
    if name not in names or not path.exists():
        raise BadInput(
            f"{out} has no continuations of '{name}'; run `felicity causality run` without --no-continue."
        )
    return name, read_frame(path)


def _read_model(folder: Path, name: str) -> ModelFindings:
    preference = read_frame(folder / "preference.parquet")
    path = folder / "continuations.parquet"
    written = read_frame(path) if path.exists() else None
    return ModelFindings(name, preference, fit_preference(preference), written)


def _rated_stimuli(models: Sequence[ModelFindings], model: str | None) -> tuple[str, pl.DataFrame]:
    """The model that wrote the rated continuations, and every sentence with what that model says of it.

    The prompts are the same for all models, so ratings alone do not show whose continuations they are.
    """
    writers = {one.name: (one.preference, one.written) for one in models if one.written is not None}
    if not writers:
        raise BadInput("No model of this study has written continuations, so none can have been rated.")
    if model is None and len(writers) > 1:
        raise BadInput(f"{', '.join(writers)} have written continuations; say whose were rated with --model.")
    if model is not None and model not in writers:
        raise UnknownName("model", model, writers)
    name = model or next(iter(writers))
    preference, written = writers[name]
    written = written.filter(sample=0).select("item", "mean_lp", "continuation", "flagged", "reference")
    known = preference.join(written, on="item", how="left", maintain_order="left")
    return name, known.with_columns(sentence=pl.col("item"))


def _tabulate(models: Sequence[ModelFindings]) -> dict[str, pl.DataFrame]:
    """The tables over all models, each with the model's name in front."""
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for one in models:
        found = {
            "agreement": draw_agreement(one.preference),
            "verbs": average_verbs(one.preference),
            "mixed_models": describe_models(one.fitted.models),
            "curves": _curves(one.fitted.models),
        }
        if one.written is not None:
            found |= {
                "diversity": pl.DataFrame([describe_diversity(one.written)]),
                "frequent": count_continuations(one.written).filter(~pl.col("flagged")).head(FREQUENT_SHOWN),
                "references": share_references(one.written),
                "flags": count_reasons(one.written),
            }
        for name, table in found.items():
            if table.width:
                parts[name].append(table.select(pl.lit(one.name).alias("lm"), pl.all()))
    return {name: pl.concat(own) for name, own in parts.items() if own}


def _curves(fitted: dict[str, Any]) -> pl.DataFrame:
    shown = [("preference", False), ("quadratic", True)]
    parts = [predict_curves(fitted[name], quadratic=bent) for name, bent in shown if name in fitted]
    return pl.concat(parts) if parts else pl.DataFrame()


def _write_tables(study: CausalityStudy, out: Path) -> None:
    tables = dict(study.tables)
    if study.ratings is not None:
        found = study.ratings
        tables |= {
            "rating_counts": found.counts,
            "rating_thresholds": found.thresholds,
            "rating_items": found.items.drop("continuation", strict=False),
            "rating_models": describe_models(found.models),
            "rating_correlations": found.correlations,
            "reliability": found.reliability,
        }
    write_sheets(out, {name: table for name, table in tables.items() if table.width})


def _begin(
    out: Path, stimuli: StimulusSet, source: str, sampling: Sampling | None, seed: int
) -> dict[str, Any]:
    """The record of a new study, or of the one that is resumed."""
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    asked = {
        "source": source,
        "stimuli": stimuli.key,
        "sampling": None if sampling is None else asdict(sampling) | {"stop": list(sampling.stop)},
        "seed": seed,
        "notes": list(stimuli.notes),
    }
    if is_study(out):
        old = _read(out)
        changed = next(
            (name for name in ("source", "stimuli", "sampling") if old.get(name) != asked[name]), None
        )
        if changed:
            raise BadInput(f"{out} contains a study with another {changed}; choose another folder with -o.")
        write_table(stimuli.rows, out / STIMULI)
        return old
    write_table(stimuli.rows, out / STIMULI)
    record = describe_study(KIND) | asked
    _write_record(out, record)
    return record


def _write_record(out: Path, record: dict[str, Any]) -> None:
    write_record(out, record, _list_kept(record))
