"""What the study asks of every model: the likeliest words, and the probability of targets and contrasts."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import polars as pl

from felicity.core.ids import fingerprint
from felicity.core.progress import Progress
from felicity.core.schemas import PROMPTS
from felicity.data import sample_items
from felicity.run import Model, StudyFolder, plan_run
from felicity.studies.cloze.frames import ClozeSet, read_cloze_set, read_cloze_sets, wrote_items
from felicity.studies.cloze.settings import ClozeSettings
from felicity.studies.definition import Job, Models, Planned

BLANK = "___."
FRAMES_AT_ONCE = 256
# The table of a run that has the probabilities of targets and contrasts.
SPELT = "target_words"


def plan(settings: ClozeSettings, models: Models, folder: StudyFolder) -> Planned:  # noqa: ARG001
    """The frames of every dataset, and a run of every model on each."""
    sets = read_cloze_sets(settings)
    whole = {
        label: read_cloze_set(given, affirmative=settings.affirmative).items
        if settings.sample
        else data.items
        for given, (label, data) in zip(settings.datasets, sets.items(), strict=True)
    }
    frames = [
        whole[label].select(
            pl.lit(label).alias("dataset"),
            pl.all(),
            pl.col("item").is_in(data.items["item"].unique().implode()).alias("asked"),
        )
        for label, data in sets.items()
    ]
    kept = ("targets", "change", "looked_for", "sample")
    return Planned(
        jobs=_jobs(settings, models, sets),
        tables={"frames": pl.concat(frames)},
        facts={
            "sets": {label: {name: getattr(data, name) for name in kept} for label, data in sets.items()},
        },
        inputs=fingerprint([data.key for data in sets.values()]),
        notes=tuple(
            f"{model.name} is judged on {label}, whose items it wrote itself: its figures there say little."
            for model in models
            for label, data in sets.items()
            if wrote_items(data, name=model.name, spec=model.spec)
        ),
    )


def _jobs(settings: ClozeSettings, models: Models, sets: dict[str, ClozeSet]) -> Iterator[Job]:
    for model in models:
        lm = model.open()
        for label, data in sets.items():
            if data.data is None:
                continue
            planned = plan_run(
                data.data,
                sample_items(data.data.items, settings.sample, seed=settings.seed),
                lm,
                seed=settings.seed,
                options={"sample": settings.sample, "unigram": None},
            )
            ask = {SPELT: partial(score_targets, data.items)}
            yield Job(model=model.name, lm=lm, plan=replace(planned, ask=ask), part=label)


def score_targets(items: pl.DataFrame, lm: Model, progress: Progress | None = None) -> pl.DataFrame:  # noqa: ARG001
    """Columns item, condition, logprob, n_tokens, contrast_logprob: targets and contrasts in their frames.

    Log-probabilities are nats. A word that the model's vocabulary lacks has none; n_tokens is how many
    tokens the target has, since a target of several can never be the likeliest token.
    """
    contrasts = score_words(lm, items, "contrast").select(contrast_logprob="logprob")
    keys = items.select("item", "condition")
    return pl.concat([keys, score_words(lm, items, "target"), contrasts], how="horizontal")


def score_words(lm: Model, rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Columns logprob and n_tokens: the word of `column` in the blank of each row's frame, where known."""
    words = rows[column].to_list()
    spelt = find_spelt(lm, rows["context_text"].to_list(), words)
    places = [place for place, known in enumerate(spelt) if known]
    values: list[float | None] = [None] * len(words)
    sizes: list[int | None] = [None] * len(words)
    frames = [f"{context} {BLANK}" for context in rows["context_text"]]
    for begin in range(0, len(places), FRAMES_AT_ONCE):
        part = places[begin : begin + FRAMES_AT_ONCE]
        scored = lm.score_candidates([frames[place] for place in part], [[words[place]] for place in part])
        for place, row in zip(part, scored.iter_rows(named=True), strict=True):
            values[place], sizes[place] = row["logprob"], len(row["tokens"])
    return pl.DataFrame(
        {"logprob": values, "n_tokens": sizes}, schema={"logprob": pl.Float64, "n_tokens": pl.Int64}
    )


def find_spelt(lm: Model, contexts: list[str], words: list[str | None]) -> list[bool]:
    """Whether the model's vocabulary has all of each word; a missing word is not spelt."""
    places = [place for place, word in enumerate(words) if word]
    table = {
        "request": [str(place) for place in places],
        "context_text": [contexts[place] for place in places],
        "text": [words[place] for place in places],
    }
    spelt = [False] * len(words)
    if not places:
        return spelt
    encoded = lm.engine.encode(pl.DataFrame(table, schema=PROMPTS))
    for request, unknown in encoded.select("request", "n_unknown").iter_rows():
        # A server without a local tokenizer does not say; it reports what it cannot spell when it is asked.
        spelt[int(request)] = not unknown
    return spelt
