"""Every table of the study of implicit causality, from the runs of its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.run import StudyFolder
from felicity.studies.causality.continuations import (
    count_continuations,
    count_reasons,
    describe_diversity,
    read_continuations,
)
from felicity.studies.causality.preference import (
    PreferenceModels,
    average_noun_pairs,
    average_verbs,
    count_pronouns,
    describe_models,
    draw_agreement,
    explain_variance,
    fit_preference,
    predict_curves,
    tabulate_preference,
)
from felicity.studies.causality.ratings import analyse_ratings, pick_examples, read_ratings
from felicity.studies.causality.reference import share_references

FREQUENT_SHOWN = 30


@dataclass(frozen=True)
class ModelFindings:
    """What one model prefers and writes; `written` is None if it was not asked to continue."""

    name: str
    preference: pl.DataFrame
    fitted: PreferenceModels
    written: pl.DataFrame | None


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Agreement, mixed models, continuations, and people's ratings if there are any.

    Raises BadInput if the ratings are of other sentences, or it is not known whose continuations they are.
    """
    settings = folder.record["settings"]
    models = [_read_model(folder, name, continued=settings["continuations"]) for name in folder.models]
    notes = [note for one in models for note in one.fitted.notes]
    tables = tabulate_models(models, folder.facts["pronouns"])
    if settings["ratings"]:
        found, noted = _tabulate_ratings(models, Path(settings["ratings"]), settings["rated"])
        tables |= found
        notes += noted
    tables["notes"] = pl.DataFrame({"note": notes}, schema={"note": pl.String})
    return {name: table for name, table in tables.items() if table.width}


def _read_model(folder: StudyFolder, name: str, *, continued: bool) -> ModelFindings:
    run = folder.run(name)
    preference = tabulate_preference(folder.read("stimuli"), run.read("requests"), run.read("scores"))
    written = read_continuations(folder, name) if continued else None
    return ModelFindings(name, preference, fit_preference(preference), written)


def tabulate_models(models: Sequence[ModelFindings], pronouns: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    """The tables over all models, each with the model's name in front."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for one in models:
        found = {
            "agreement": draw_agreement(one.preference),
            "pronouns": count_pronouns(one.preference, pronouns),
            "variance": explain_variance(one.preference),
            "noun_pairs": average_noun_pairs(one.preference),
            "verbs": average_verbs(one.preference),
            "mixed_models": describe_models(one.fitted.models),
            "curves": _curves(one.fitted.models),
            "preference": one.preference,
        }
        if one.written is not None:
            found |= {
                "diversity": pl.DataFrame([describe_diversity(one.written)]),
                "frequent": count_continuations(one.written).filter(~pl.col("flagged")).head(FREQUENT_SHOWN),
                "references": share_references(one.written),
                "flags": count_reasons(one.written),
                "continuations": one.written,
            }
        for name, table in found.items():
            if table.width:
                named = table.select(pl.lit(one.name).alias("lm"), pl.all())
                parts.setdefault(name, []).append(named)
    return {name: pl.concat(own) for name, own in parts.items()}


def _curves(fitted: dict[str, Any]) -> pl.DataFrame:
    shown = [("preference", False), ("quadratic", True)]
    parts = [predict_curves(fitted[name], quadratic=bent) for name, bent in shown if name in fitted]
    return pl.concat(parts) if parts else pl.DataFrame()


def _tabulate_ratings(
    models: Sequence[ModelFindings], path: Path, rated: str | None
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """The tables of the ratings, and notes on them; the ratings themselves are kept as one of the tables."""
    writer, known = _rated_stimuli(models, rated)
    ratings = read_ratings(path).select("participant", "sentence", "rating")
    found = analyse_ratings(ratings, known)
    tables = {
        "ratings": ratings,
        "rating_summary": pl.DataFrame([{"lm": writer} | found.summary]),
        "rating_counts": found.counts,
        "rating_thresholds": found.thresholds,
        "rating_items": found.items.drop("continuation", strict=False),
        "rating_models": describe_models(found.models),
        "rating_correlations": found.correlations,
        "rating_examples": pick_examples(found.items),
        "reliability": found.reliability,
    }
    return tables, found.notes


def _rated_stimuli(models: Sequence[ModelFindings], rated: str | None) -> tuple[str, pl.DataFrame]:
    """The model that wrote the rated continuations, and every sentence with what that model says of it.

    The prompts are the same for all models, so ratings alone do not show whose continuations they are.
    """
    writers = {one.name: (one.preference, one.written) for one in models if one.written is not None}
    if not writers:
        raise BadInput("No model of this study has written continuations, so none can have been rated.")
    if rated is None and len(writers) > 1:
        raise BadInput(
            f"{', '.join(writers)} have written continuations; say whose were rated, with --rated, or "
            "`felicity report --set rated=MODEL`."
        )
    if rated is not None and rated not in writers:
        raise UnknownName("model", rated, writers)
    name = rated or next(iter(writers))
    preference, written = writers[name]
    written = written.filter(sample=0).select("item", "mean_lp", "continuation", "flagged", "reference")
    known = preference.join(written, on="item", how="left", maintain_order="left")
    return name, known.with_columns(sentence=pl.col("item"))
