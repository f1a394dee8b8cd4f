"""What the study asks of every model: both pronouns after every prompt, and how the prompt goes on."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import polars as pl

from felicity.core.engine import Sampling
from felicity.core.progress import Progress
from felicity.run import Model, StudyFolder
from felicity.studies.causality.preference import plan_preference
from felicity.studies.causality.ratings import read_ratings
from felicity.studies.causality.reference import compare_nouns
from felicity.studies.causality.settings import FULL_STOP, STUDY, CausalitySettings
from felicity.studies.causality.stimuli import StimulusSet, read_stimuli_set
from felicity.studies.data_settings import name_data
from felicity.studies.definition import Job, Models, Planned

# The table of a run that has the continuations as the model wrote them.
GENERATED = "generated"


def plan(settings: CausalitySettings, models: Models, folder: StudyFolder) -> Planned:  # noqa: ARG001
    """The prompts, and a run of every model that scores both pronouns and continues them.

    Raises BadInput for stimuli or ratings that cannot be read, before anything is scored.
    """
    if settings.ratings is not None:
        read_ratings(settings.ratings)
    stimuli = read_stimuli_set(str(settings.stimuli), frequency=settings.frequency)
    if settings.sample is not None:
        kept = stimuli.rows["noun_pair"].unique(maintain_order=True).head(settings.sample).implode()
        stimuli = replace(stimuli, rows=stimuli.rows.filter(pl.col("noun_pair").is_in(kept)))
    return Planned(
        jobs=_jobs(settings, models, stimuli),
        tables={"stimuli": stimuli.rows},
        facts={"stimuli": name_data(settings.stimuli), "pronouns": stimuli.pronouns},
        inputs=stimuli.key,
        notes=stimuli.notes,
    )


def _jobs(settings: CausalitySettings, models: Models, stimuli: StimulusSet) -> Iterator[Job]:
    planned = plan_preference(stimuli, seed=settings.seed, options={"study": STUDY.name})
    if settings.sampling is not None:
        planned = replace(planned, ask={GENERATED: partial(generate, stimuli, settings.sampling)})
    for model in models:
        yield Job(model=model.name, lm=model.open(), plan=planned)


def generate(
    stimuli: StimulusSet, sampling: Sampling, lm: Model, progress: Progress | None = None
) -> pl.DataFrame:
    """One row per prompt and sample: what the model wrote, and how probable it finds that.

    mean_lp: log-probability per token of the continuation with its full stop, in nats. noun_margin: where
    the first pronoun may stand for either noun, by how many nats the continuation is more probable with
    the subject in its place than with the object. Batches are stored before the next begins, so that an
    interrupted study resumes.
    """
    rows = stimuli.rows
    written = lm.generate_all(rows["prompt"].to_list(), sampling=sampling, progress=progress)
    times = written.height // max(rows.height, 1)
    repeated = rows[[place for place in range(rows.height) for _ in range(times)]]
    table = pl.concat(
        [repeated, written.select("sample", "continuation", "n_tokens", "ended")], how="horizontal"
    ).with_columns(pl.col("continuation").str.replace_all(r"\s+", " ").str.strip_chars())
    scored = lm.score(
        [f"{text}{FULL_STOP}" for text in table["continuation"]], context=table["prompt"].to_list()
    )
    return table.select(
        "item",
        "sample",
        "continuation",
        "n_tokens",
        "ended",
        (scored["lp"] / scored["n_tokens"]).alias("mean_lp"),
        compare_nouns(lm, stimuli, table).alias("noun_margin"),
    )
