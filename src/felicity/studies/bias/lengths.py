"""What the study of token-length bias scores, and how long the sentences of every pair are."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.ids import fingerprint
from felicity.data import Dataset
from felicity.engines import CountTokens, has_weights, open_counter
from felicity.measures import read_unigram
from felicity.run import StudyFolder, digest_items, plan_run
from felicity.studies.bias.settings import BiasSettings
from felicity.studies.data_settings import name_data
from felicity.studies.definition import Job, Models, NamedModel, Planned

SPLITS = ("A=U", "A>U", "A<U")
BIASED, DEBIASED = "biased", "debiased"
MEASURES, DEBIAS_MEASURES = ("lp",), ("lp", "mean_lp", "pen_lp")
Sets = Mapping[str, tuple[Dataset, pl.DataFrame]]


def plan(settings: BiasSettings, models: Models, folder: StudyFolder) -> Planned:  # noqa: ARG001
    """The pairs of one set or two, and a run of every model that has weights on each of them.

    Raises BadInput if a set is not one of pairs, NotPossible if --debias has nothing to compare.
    """
    sets = {BIASED: settings.read()}
    if settings.debias is not None:
        sets[DEBIASED] = settings.read(settings.debias)
    scored = [model.name for model in models if settings.score and has_weights(model.spec)]
    bare = [model.name for model in models if model.name not in scored]
    if settings.debias is not None and bare:
        why = "leave out --no-score" if not settings.score else f"{bare[0]} has no weights; name a model"
        raise NotPossible(f"--debias compares accuracies, but {why}.")
    lengths = [
        measure_lengths(items, open_counter(model.spec)).select(
            pl.lit(model.name).alias("model"), pl.lit(label).alias("set"), pl.all()
        )
        for model in models
        for label, (_, items) in sets.items()
    ]
    if not lengths:
        raise BadInput("Token lengths are those of a model; name one with -m.")
    return Planned(
        jobs=_jobs(settings, [model for model in models if model.name in scored], sets),
        tables={"lengths": pl.concat(lengths)},
        facts={
            "dataset": name_data(settings.dataset),
            "debias": None if settings.debias is None else name_data(settings.debias),
            "score": dict(sets[BIASED][0].score),
            "scored": scored,
            "measures": list(choose_measures(settings)),
        },
        inputs=fingerprint([digest_items(items) for _, items in sets.values()]),
        notes=tuple(f"{name}: tokenizer only, so there are splits but no accuracies." for name in bare),
    )


def choose_measures(settings: BiasSettings) -> tuple[str, ...]:
    """The measures asked for, or those of the paper if two sets are compared."""
    return settings.measures or (MEASURES if settings.debias is None else DEBIAS_MEASURES)


def _jobs(settings: BiasSettings, models: list[NamedModel], sets: Sets) -> Iterator[Job]:
    counts = read_unigram(settings.unigram) if settings.unigram else None
    options = {"sample": settings.sample, "unigram": str(settings.unigram) if settings.unigram else None}
    for model in models:
        lm = model.open()
        for label, (data, items) in sets.items():
            planned = plan_run(
                data,
                items,
                lm,
                measures=choose_measures(settings),
                counts=counts,
                unseen=settings.unseen,
                seed=settings.seed,
                options=options,
            )
            planned = replace(planned, settings=settings.measuring)
            yield Job(model=model.name, lm=lm, plan=planned, part=label if len(sets) > 1 else "")


def measure_lengths(items: pl.DataFrame, count: CountTokens) -> pl.DataFrame:
    """One row per pair: item, suite, tokens of A and of U, their difference, and the split.

    Raises BadInput if the items are not pairs of a good and a bad sentence.
    """
    if set(items["condition"].unique()) != {"good", "bad"}:
        raise BadInput(
            "Token-length bias needs pairs; this dataset's items are not pairs of a good and a bad sentence."
        )
    lengths = items.with_columns(pl.Series("length", count(items["text"].to_list()), dtype=pl.Int32))
    sides = [
        lengths.filter(pl.col("condition") == condition).select("item", pl.col("length").alias(name))
        for condition, name in (("good", "a"), ("bad", "u"))
    ]
    pairs = items.select("item", "suite").unique(maintain_order=True)
    for side in sides:
        pairs = pairs.join(side, on="item", maintain_order="left")
    difference = pl.col("a") - pl.col("u")
    split = pl.when(difference == 0).then(pl.lit(SPLITS[0])).when(difference > 0)
    return pairs.with_columns(
        difference.alias("difference"),
        split.then(pl.lit(SPLITS[1])).otherwise(pl.lit(SPLITS[2])).alias("split"),
    )
