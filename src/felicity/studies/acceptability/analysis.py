"""Scores beside ratings: every table of the study, from what its folder holds."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from felicity.core.errors import UnknownName
from felicity.report import no_link
from felicity.run import StudyFolder
from felicity.studies.acceptability import people
from felicity.studies.acceptability.correlations import (
    SCORES,
    Cell,
    Vectors,
    compare_cells,
    correlate_cells,
    find_best,
    lay_out,
    measure_effects,
)
from felicity.studies.acceptability.ratings import RatedSentences
from felicity.studies.study import Study


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Correlations with their ceilings and tests, and what context does to ratings and to scores."""
    ratings = RatedSentences.restore(folder)
    models, missing = read_models(folder)
    scores = pl.concat(read_scores(folder, model) for model in folder.facts["readings"])
    return analyse_scores(ratings, scores, models, seed=folder.record["settings"]["seed"], notes=missing)


def analyse_scores(
    ratings: RatedSentences,
    scores: pl.DataFrame,
    models: pl.DataFrame,
    *,
    seed: int = 0,
    notes: list[str] | None = None,
) -> dict[str, pl.DataFrame]:
    """Every table of the study, from ratings and scores alone."""
    vectors, unusable = lay_out(scores, ratings)
    correlations = correlate_cells(vectors, ratings, seed=seed)
    ceilings, no_ceiling = people.bound_correlations(ratings, seed=seed)
    ordinal, not_fitted = people.fit_ordinal(ratings, _match(ratings, scores, correlations))
    return {
        "correlations": correlations,
        "ceilings": ceilings,
        "tests": compare_cells(vectors, ratings),
        "effects": measure_effects(vectors, ratings, seed=seed),
        "settings": people.correlate_settings(ratings, seed=seed),
        "lines": people.fit_lines(ratings),
        "line_tests": people.compare_contexts(ratings),
        "shifts": people.measure_shifts(ratings, seed=seed),
        "distribution": people.count_ratings(ratings),
        "ordinal": ordinal,
        "cleaning": ratings.steps,
        "models": models,
        "ratings": ratings.add_conditions(ratings.means),
        "sentences": ratings.add_conditions(ratings.sentences),
        "scores": ratings.add_conditions(scores),
        "notes": pl.DataFrame(
            {"note": [*(notes or ()), *unusable, *no_ceiling, *not_fitted]}, schema={"note": pl.String}
        ),
    }


def read_models(folder: StudyFolder) -> tuple[pl.DataFrame, list[str]]:
    """What was scored: model, family, parameters, policy, where counts are from; and what has no counts."""
    rows, notes = [], []
    for name in folder.facts["readings"]:
        manifest = folder.run(name).read_manifest()
        model, options = manifest["model"], manifest["options"]
        rows.append(
            {"model": name, "family": model["family"], "kind": model["kind"]}
            | {"parameters": model["parameters"], "unigram": options["unigram"] or ""}
            | {"unigram_digest": options.get("unigram_digest", ""), "policy": json.dumps(model["policy"])}
            | {"key": model["key"]}
        )
        notes += [options["no_counts"]] if options["no_counts"] else []
    return pl.DataFrame(rows), notes


def read_scores(folder: StudyFolder, model: str) -> pl.DataFrame:
    """Rows of SCORES of one model."""
    run = folder.run(model)
    measures = run.read_manifest()["measures"]
    requests = run.read("requests").select("request", "item", context="condition")
    scores = run.read("scores").filter(pl.col("measure").is_in(measures))
    joined = scores.join(requests, on="request", maintain_order="left").with_columns(
        pl.lit(model).alias("model")
    )
    return joined.select(pl.col(name).cast(dtype) for name, dtype in SCORES.items())


def _match(
    ratings: RatedSentences, scores: pl.DataFrame, correlations: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """For each model the scores of its best measure, in the context that the raters saw."""
    matched = {}
    first = ratings.settings[0]
    for model in correlations["model"].unique(maintain_order=True):
        context = choose_context(correlations, model, first)
        measure = find_best(correlations, setting=first, model=model, context=context)
        values = scores.filter(model=model, measure=measure).select("item", "value", setting="context")
        matched[f"{model} ({measure})"] = values
    return matched


def choose_context(correlations: pl.DataFrame, model: str, setting: str) -> str:
    """The context of a model to show beside the ratings of a setting: the raters' one, if it was scored."""
    contexts = correlations.filter(model=model, setting=setting)["context"].unique(maintain_order=True)
    return setting if setting in contexts else str(contexts[0])


@dataclass(frozen=True)
class Results:
    """The tables of a finished study with the ratings behind them, as its page reads them.

    link: where the sentences of a model's run are shown, as `Study.link` gives it.
    """

    ratings: RatedSentences
    tables: Mapping[str, pl.DataFrame]
    link: Callable[..., str] = no_link

    @classmethod
    def of(cls, study: Study) -> "Results":
        """Those of a study in a folder."""
        return cls(RatedSentences.restore(study.place), study.tables, study.link)

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return self.tables[name]

    @property
    def models(self) -> list[str]:
        """The models, in every reading."""
        return self["models"]["model"].to_list()

    @cached_property
    def vectors(self) -> Vectors:
        """The scores of each cell in the order of the sentences."""
        scores = self["scores"]
        if "stimulus" in scores.columns:
            scores = scores.drop("item", "condition").rename({"stimulus": "item"})
        return lay_out(scores, self.ratings)[0]

    def best(self, setting: str, model: str) -> Cell | None:
        """The cell of a model that correlates most strongly with a setting, in the raters' context.

        None if no score of the model could be used.
        """
        correlations = self["correlations"]
        if correlations.filter(model=model, setting=setting).is_empty():
            return None
        context = choose_context(correlations, model, setting)
        return Cell(model, context, find_best(correlations, setting=setting, model=model, context=context))
