"""What a study of reading scores: every sentence of its texts, after what precedes it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from felicity.core.engine import TokenExtras
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.progress import Progress
from felicity.core.regions import is_seamless
from felicity.core.schemas import ITEMS, Schema, conform
from felicity.data import Reading, read_reading
from felicity.design import build_prompts, build_requests
from felicity.run import Model, Plan, StudyFolder, digest_items
from felicity.studies.data_settings import name_data
from felicity.studies.definition import Job, Models, Planned
from felicity.studies.reading.settings import ReadingSettings
from felicity.studies.reading.word_table import (
    GIVEN,
    WordTable,
    complete_words,
    read_word_table,
    take_surprisals,
)

STORY, ALONE = "story", "sentence"
WORDS, FILLERS = "words", "fillers"
ENTROPIES = "entropies"
SENTENCES: Schema = {"sentence": pl.String(), "lead": pl.Int64(), "context_text": pl.String()}


def plan(settings: ReadingSettings, models: Models, folder: StudyFolder) -> Planned:
    """The words with their measures, and a run of every model on their sentences."""
    read_context(settings.context)
    table = read_word_table(settings)
    given = pl.DataFrame(schema=GIVEN)
    if settings.surprisal:
        given = take_surprisals(settings.surprisal, table.words, unit=settings.unit)
    if not models and given.is_empty():
        raise NotPossible("There is no surprisal to test; name a model with -m, or give --surprisal.")
    _check_columns(settings, table)
    fillers = _read_fillers(settings)
    sets = {WORDS: table} | ({FILLERS: fillers} if fillers else {})
    items = {name: list_sentences(one.reading, settings.context) for name, one in sets.items()}
    tables = {"corpus": table.words, "given": given}
    if table.reading.trials is not None:
        tables["trials"] = table.reading.trials
    tables |= dict(table.reading.effects)
    if fillers and fillers.reading.trials is not None:
        tables |= {"filler_words": fillers.words, "filler_trials": fillers.reading.trials}
    return Planned(
        jobs=_jobs(settings, models, items, folder),
        tables=tables,
        facts={
            "words": name_data(settings.words),
            "corpus": table.reading.name,
            "measures": list(table.reading.measures),
            "times": list(table.reading.times),
            "given": given["model"].unique(maintain_order=True).to_list(),
            "scored": [model.name for model in models],
            "sets": list(sets),
        },
        inputs=fingerprint([*(digest_items(one) for one in items.values()), digest_items(table.words)]),
        notes=(*table.notes, *(fillers.notes if fillers else ())),
    )


def read_context(context: str) -> int | None:
    """How many sentences precede a sentence; None for all of its text.

    Raises UnknownName for anything else.

    >>> read_context("story"), read_context("sentence"), read_context("3")
    (None, 0, 3)
    """
    if context.isdecimal():
        return int(context)
    if context not in (STORY, ALONE):
        raise UnknownName("context", context, (STORY, ALONE), hint="or give a number of sentences")
    return None if context == STORY else 0


def _check_columns(settings: ReadingSettings, table: WordTable) -> None:
    """Refuse columns that the words lack and options that would do nothing, before anything is scored."""
    known = table.words.columns
    named = [*settings.controls, *settings.predictors]
    if settings.condition is not None:
        named += [settings.condition, settings.item, *([settings.critical] if settings.critical else [])]
    for name in named:
        if name not in known:
            raise UnknownName("column", name, known, where=table.reading.name)
    if settings.critical is not None and settings.condition is None:
        raise BadInput("--critical marks words whose conditions are compared; name them with --condition.")
    if settings.fillers is not None and "observed" not in table.reading.effects:
        raise BadInput(
            f"--fillers turns effects by item into milliseconds, and {table.reading.name} has no such "
            "effects; omit it, or read the corpus sap."
        )
    if settings.preset == "michaelov2022" and settings.condition is None:
        raise BadInput("The preset michaelov2022 compares conditions; name their column with --condition.")


def _read_fillers(settings: ReadingSettings) -> WordTable | None:
    """The user's own fillers, of whose trials bits become milliseconds.

    Raises BadInput if they are not by reader.
    """
    if settings.fillers is None:
        return None
    reading = read_reading(settings.fillers)
    if reading.trials is None or not reading.times:
        raise BadInput("The fillers need times of single readers: a column 'reader', one row per word each.")
    return complete_words(reading, settings)


def list_sentences(reading: Reading, context: str) -> pl.DataFrame:
    """Rows of ITEMS, one per sentence, with `sentence`, `lead` and `context_text`, what a model reads before.

    The text begins with the last word before the sentence, `lead` characters long with the space after it, so
    that the space before the first word is scored with it, however a tokenizer divides them.
    """
    most, rows = read_context(context), []
    for (text,), part in reading.sentences.group_by("text", maintain_order=True):
        written = part["sentence_text"].to_list()
        for place, sentence in enumerate(part["sentence"].to_list()):
            before = written[:place] if most is None else written[max(0, place - most) : place]
            story, _, last = " ".join(before).rpartition(" ")
            gap = "" if is_seamless(last, written[place]) else " " * bool(last)
            rows.append(
                {
                    "item": str(text) if text == sentence else f"{text}/{sentence}",
                    "suite": text,
                    "phenomenon": reading.name,
                    "condition": "read",
                    "text": f"{last}{gap}{written[place]}",
                    "sentence": sentence,
                    "lead": len(last) + len(gap),
                    "context_text": story or None,
                }
            )
    items = pl.DataFrame(rows, schema=ITEMS | SENTENCES)
    twice = items.filter(pl.col("item").is_duplicated())
    if twice.height:
        raise BadInput(
            f"Two sentences are called '{twice['item'][0]}'; keep a text together and name them apart."
        )
    return items


def _jobs(
    settings: ReadingSettings, models: Models, sets: dict[str, pl.DataFrame], folder: StudyFolder
) -> Iterator[Job]:
    for model in models:
        lm = model.open()
        for name, items in sets.items():
            part = name if len(sets) > 1 else ""
            path = folder.run(model.name, part).path / f"{ENTROPIES}.parquet"
            wanted = settings.entropy and "more" in lm.info.can and name == WORDS
            yield Job(model=model.name, lm=lm, plan=plan_sentences(items, settings, wanted, path), part=part)


def plan_sentences(items: pl.DataFrame, settings: ReadingSettings, entropy: bool, path: Path) -> Plan:
    """One run over the sentences; entropy: also that of every prediction, kept at the path."""
    requests, contexts = build_requests(items)
    prompts = build_prompts(requests, contexts)
    return Plan(
        dataset=name_data(settings.words),
        stimuli=conform(items, ITEMS),
        items=conform(items, ITEMS),
        requests=requests,
        contexts=contexts,
        rule="words",
        measures=("surprisal",),
        seed=settings.seed,
        options={"context": settings.context},
        tables={"items": items, "contexts": contexts, "requests": requests},
        ask={ENTROPIES: partial(ask_entropies, prompts, path)} if entropy else {},
        estimated=False,
    )


def ask_entropies(prompts: pl.DataFrame, path: Path, lm: Model, progress: Progress | None) -> pl.DataFrame:
    """The entropy of the prediction at every token, in nats; those of an earlier attempt are kept."""
    if path.exists():
        before = pl.read_parquet(path.absolute(), glob=False)
        if before["request"].equals(prompts["request"]):
            return before
    parts, done = [], 0
    for part in lm.engine.score(prompts, extras=TokenExtras(entropy=True)):
        parts.append(part.select("request", "start", "entropy"))
        done += part.height
        if progress:
            progress("Computing entropy", done, prompts.height)
    scored = pl.concat(parts)
    return prompts.select("request").join(scored, on="request", how="left", maintain_order="left")
