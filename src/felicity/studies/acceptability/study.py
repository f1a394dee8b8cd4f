"""The study of acceptability in context: ratings and models in, tables and a report out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors
from felicity.core.policy import Policy
from felicity.core.progress import Progress
from felicity.measures import MEASURES
from felicity.run import describe_study, is_study, read_record, write_record, write_sheets
from felicity.studies.acceptability import people
from felicity.studies.acceptability.correlations import (
    Cell,
    Vectors,
    compare_cells,
    correlate_cells,
    find_best,
    lay_out,
    measure_effects,
)
from felicity.studies.acceptability.ratings import RatedSentences, read_ratings, sample_sentences
from felicity.studies.acceptability.scoring import CountSource, OpenModel, open_readings, score_reading

KIND = "acceptability"


@dataclass(frozen=True, kw_only=True)
class AcceptabilityStudy:
    """What the study found, table by table.

    models: name, family, parameters, policy, where the unigram counts are from. vectors: the scores of each
    cell in the order of the sentences. notes: what a reader must know. record: what `study.json` holds.
    """

    ratings: RatedSentences
    models: pl.DataFrame
    vectors: Vectors
    scores: pl.DataFrame
    correlations: pl.DataFrame
    ceilings: pl.DataFrame
    tests: pl.DataFrame
    pairs: pl.DataFrame
    lines: pl.DataFrame
    line_tests: pl.DataFrame
    shifts: pl.DataFrame
    distribution: pl.DataFrame
    ordinal: pl.DataFrame
    effects: pl.DataFrame
    notes: tuple[str, ...]
    record: dict[str, Any]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables that are written, by file name."""
        return {
            "correlations": self.correlations,
            "ceilings": self.ceilings,
            "tests": self.tests,
            "effects": self.effects,
            "settings": self.pairs,
            "lines": self.lines,
            "line_tests": self.line_tests,
            "shifts": self.shifts,
            "distribution": self.distribution,
            "ordinal": self.ordinal,
            "cleaning": self.ratings.steps,
            "models": self.models,
            "ratings": self.ratings.add_conditions(self.ratings.means),
            "sentences": self.ratings.add_conditions(self.ratings.sentences),
            "scores": self.ratings.add_conditions(self.scores),
        }

    def best(self, setting: str, *, model: str, context: str) -> Cell:
        """The cell of a model in a context that correlates most strongly with the ratings of a setting."""
        measure = find_best(self.correlations, setting=setting, model=model, context=context)
        return Cell(model, context, measure)


def study_acceptability(
    source: str,
    specs: Sequence[str],
    folder: Path,
    *,
    open_one: OpenModel,
    policy: Policy | None = None,
    measures: Sequence[str] = (),
    unigram: Sequence[str] = (),
    corpus: Path | None = None,
    unseen: float = 0.05,
    copy: Path | None = None,
    clean: str | None = None,
    scale: tuple[float, float] | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> AcceptabilityStudy:
    """Ask every model about every sentence in every context, and compare with what people say.

    source: a dataset's name, an export of a rating study, or a table (`read_ratings`); copy: a folder with
    the dataset. measures: those to compute; all registered ones by default. unigram: FILE or MODEL=FILE;
    corpus: a text to count tokens in. sample: this many sentences of each suite. clean: the rules to clean
    raw ratings by (`lau2020`); scale: the lowest and highest rating possible, if not those that were given.

    Raises BadInput for ratings that cannot be used and for two models of the same name.
    """
    for name in measures:
        MEASURES[name]
    ratings = read_ratings(source, folder=copy, clean=clean, scale=scale)
    if sample is not None:
        ratings = sample_sentences(ratings, sample, seed=seed)
    record = _begin(folder, source, ratings, policy or Policy(), clean=clean, seed=seed)
    counting = CountSource.parse(unigram, corpus=corpus, folder=folder / "counts", unseen=unseen)
    texts = ratings.sentences["text"].to_list()
    scores, models, notes = [], [], []
    for model in open_readings(specs, policy or Policy(), open_one):
        counts, origin, missing = counting.find(model, texts)
        if missing and (not measures or set(measures) & {"norm_lp", "slor"}):
            notes.append(missing)
        scores.append(
            score_reading(
                model,
                ratings,
                folder,
                measures=measures,
                counts=counts,
                origin=origin,
                unseen=unseen,
                seed=seed,
                progress=_tell(progress, model.name),
            )
        )
        info = model.lm.info
        models.append(
            {
                "model": model.name,
                "family": info.family,
                "kind": info.kind,
                "parameters": info.parameters,
                "unigram": origin,
                "unigram_digest": counts.key if counts else "",
                "policy": json.dumps(info.policy),
                "key": info.key,
            }
        )
    record |= {"models": [row["model"] for row in models]}
    study = analyse(ratings, pl.concat(scores), pl.DataFrame(models), notes=notes, record=record, seed=seed)
    write_tables(study, folder)
    return study


def analyse(
    ratings: RatedSentences,
    scores: pl.DataFrame,
    models: pl.DataFrame,
    *,
    notes: Sequence[str] = (),
    record: dict[str, Any] | None = None,
    seed: int = 0,
) -> AcceptabilityStudy:
    """Every table of the study, from ratings and scores alone."""
    vectors, unusable = lay_out(scores, ratings)
    table = correlate_cells(vectors, ratings, seed=seed)
    ceilings, no_ceiling = people.bound_correlations(ratings, seed=seed)
    ordinal, not_fitted = people.fit_ordinal(ratings, _matched(ratings, scores, table))
    return AcceptabilityStudy(
        ratings=ratings,
        models=models,
        vectors=vectors,
        scores=scores,
        correlations=table,
        ceilings=ceilings,
        tests=compare_cells(vectors, ratings),
        pairs=people.correlate_settings(ratings, seed=seed),
        lines=people.fit_lines(ratings),
        line_tests=people.compare_contexts(ratings),
        shifts=people.measure_shifts(ratings, seed=seed),
        distribution=people.count_ratings(ratings),
        ordinal=ordinal,
        effects=measure_effects(vectors, ratings, seed=seed),
        notes=(*ratings.describe_stimuli(), *ratings.notes, *notes, *unusable, *no_ceiling, *not_fitted),
        record=record or {},
    )


def _matched(ratings: RatedSentences, scores: pl.DataFrame, table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """For each model the scores of its best measure, in the context that the raters saw."""
    found = {}
    for model in table["model"].unique(maintain_order=True):
        first = ratings.settings[0]
        known = table.filter(model=model, setting=first)["context"].unique(maintain_order=True).to_list()
        measure = find_best(table, setting=first, model=model, context=first if first in known else known[0])
        own = scores.filter(model=model, measure=measure).select("item", "value", setting="context")
        found[f"{model} ({measure})"] = own
    return found


def _begin(
    folder: Path, source: str, ratings: RatedSentences, policy: Policy, *, clean: str | None, seed: int
) -> dict[str, Any]:
    """Write the record of the study; a folder with a study of other ratings is refused."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    record = describe_study(KIND) | {
        "ratings": source,
        "ratings_digest": ratings.key,
        "sentences": len(ratings.sentences),
        "settings": list(ratings.settings),
        "scale": list(ratings.scale),
        "clean": clean,
        "policy": policy.as_dict(),
        "seed": seed,
    }
    if is_study(folder):
        old = read_record(folder)
        # Earlier versions called the field `digest`.
        if old.get("ratings_digest", old.get("digest")) != ratings.key:
            raise BadInput(
                f"{folder} contains a study of other ratings ({old.get('ratings')}, {old.get('sentences')} "
                "sentences); choose another folder with -o, or remove it."
            )
    write_record(folder, record)
    return record


def write_tables(study: AcceptabilityStudy, folder: Path) -> None:
    """Each table as a CSV file in the folder, and the record with the models."""
    write_sheets(folder, study.tables)
    write_record(folder, study.record, [f"{name}.csv" for name in study.tables])


def _tell(progress: Progress | None, name: str) -> Progress | None:
    return None if progress is None else lambda _step, done, total: progress(name, done, total)
