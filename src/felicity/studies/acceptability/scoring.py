"""What the study scores: every sentence without a context and in every context that people saw.

A masked model is asked in both ways of masking, an XLNet in both orders, unless the policy says which.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.data import LEFT_OUT, Dataset
from felicity.measures import MEASURES, Unigram, needs_unigram
from felicity.run import StudyFolder, plan_run
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import RatedSentences, read_ratings, sample_sentences
from felicity.studies.acceptability.settings import AcceptabilitySettings
from felicity.studies.acceptability.unigram_counts import CountSource
from felicity.studies.definition import Job, Models, NamedModel, Planned

# The readings of a family: the field of the policy, and its values.
READINGS = {"masked": ("pll", ("original", "word_l2r")), "xlnet": ("order", ("left", "both"))}


class Reading(NamedTuple):
    """A model as one row of the table, and the policy it is read with if not the command's."""

    name: str
    model: NamedModel
    policy: Policy | None = None


def plan(settings: AcceptabilitySettings, models: Models, folder: StudyFolder) -> Planned:
    """The ratings, which are kept, and a run of every model in every reading.

    Raises BadInput for ratings that cannot be used, NotPossible if no measure is left.
    """
    for name in settings.measures:
        MEASURES[name]
    ratings = read_ratings(
        settings.ratings, folder=settings.source, clean=settings.clean, scale=parse_scale(settings.scale)
    )
    if settings.sample is not None:
        ratings = sample_sentences(ratings, settings.sample, seed=settings.seed)
    counting = CountSource.parse(
        settings.unigram, corpus=settings.corpus, folder=folder.path / "counts", unseen=settings.unseen
    )
    readings = [reading for model in models for reading in list_readings(model)]
    return Planned(
        jobs=_jobs(settings, readings, ratings, counting),
        tables=ratings.tables,
        facts={
            "ratings": ratings.name,
            "settings": list(ratings.settings),
            "scale": list(ratings.scale),
            "readings": [reading.name for reading in readings],
        },
        inputs=ratings.key,
        notes=(*ratings.describe_stimuli(), *ratings.notes),
    )


def parse_scale(scale: str | tuple[float, float] | None) -> tuple[float, float] | None:
    """The ends of a rating scale, as LOW:HIGH or as two numbers.

    Raises BadInput.

    >>> parse_scale("1:7"), parse_scale((1, 7))
    ((1.0, 7.0), (1, 7))
    """
    if not isinstance(scale, str):
        return scale
    try:
        low, high = map(float, scale.split(":"))
    except ValueError as error:
        raise BadInput(
            f"--scale is '{scale}'; write the lowest and the highest rating, such as 1:7."
        ) from error
    return low, high


def list_readings(model: NamedModel) -> list[Reading]:
    """A model as it is, or in every reading of its family if its policy leaves that open."""
    family = model.info.family if model.info else ""
    if family not in READINGS or model.policy is None:
        return [Reading(model.name, model)]
    field, values = READINGS[family]
    if getattr(model.policy, field) != "auto":
        return [Reading(model.name, model)]
    return [
        Reading(f"{model.name} {value}", model, model.policy.replace(**{field: value})) for value in values
    ]


def _jobs(
    settings: AcceptabilitySettings,
    readings: Sequence[Reading],
    ratings: RatedSentences,
    counting: CountSource,
) -> Iterator[Job]:
    stimuli = build_stimuli(ratings)
    data = Dataset(
        name=ratings.name,
        items=stimuli,
        rule="rating",
        method="rating",
        rows=len(stimuli),
        left_out=pl.DataFrame(schema=LEFT_OUT),
    )
    texts = ratings.sentences["text"].to_list()
    wanted = settings.measures or tuple(name for name in MEASURES if MEASURES[name].usual)
    for name, model, policy in readings:
        lm = model.open(policy)
        counts, origin, missing = counting.find(lm, name, texts)
        planned = plan_run(
            data,
            stimuli,
            lm,
            measures=choose_measures(wanted, counts),
            counts=counts,
            unseen=settings.unseen,
            seed=settings.seed,
            options={
                "study": "acceptability",
                "unigram": origin or None,
                "no_counts": missing if needs_unigram(wanted) else "",
            },
        )
        yield Job(model=name, lm=lm, plan=planned)


def build_stimuli(ratings: RatedSentences) -> pl.DataFrame:
    """One row per sentence and context that a model is given; `rating` is that of the same setting.

    Without ratings in the setting `none`, sentences without a context carry those of the first setting, so
    that a model can be asked without a context too.
    """
    parts = []
    for context in (NONE, *ratings.in_context):
        setting = context if context in ratings.settings else ratings.settings[0]
        contexts = ratings.contexts.filter(setting=context).select("item", "context_text")
        parts.append(
            ratings.sentences.join(contexts, on="item", how="left", maintain_order="left").with_columns(
                pl.lit(context).alias("condition"), pl.Series("rating", ratings.mean(setting))
            )
        )
    stimuli = pl.concat(parts)
    return stimuli.select("item", "suite", "phenomenon", "condition", "text", "context_text", "rating")


def choose_measures(wanted: Sequence[str], counts: Unigram | None) -> list[str]:
    """These measures; without counts, those that need none.

    Raises NotPossible if no measure is left.
    """
    needy = [] if counts else needs_unigram(list(wanted))
    chosen = [name for name in wanted if name not in needy]
    if not chosen:
        raise NotPossible(f"'{wanted[0]}' needs unigram counts; give them with --unigram or --corpus.")
    return chosen
