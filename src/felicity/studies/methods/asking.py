"""What the methods ask: every pair as probabilities, in a template, as a question, or as Yes or No."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from felicity.core.contrasts import PAIR
from felicity.core.errors import BadInput, NotPossible
from felicity.data import Dataset
from felicity.design import cross_targets
from felicity.judge import COUNTER, SWAPPED, name_variant
from felicity.run import StudyFolder, digest_items, plan_run
from felicity.studies.data_settings import name_data
from felicity.studies.definition import Job, Models, Planned
from felicity.studies.methods.settings import METHODS, MethodsSettings
from felicity.studies.methods.wording import Wording, read_wording

Stimulus = Mapping[str, Any]
GOOD, BAD = "good", "bad"
# Methods whose answers are words about the sentences, not the sentences.
PROMPTED = ("question", "yes_no")
ARTICLES = ("a", "an")


@dataclass(frozen=True)
class Pairs:
    """Pairs to ask about: columns item, suite, phenomenon, context, good, bad.

    kind: `sentence`, or `word` if both are continuations of one context. left_out: items that are no pairs.
    """

    rows: pl.DataFrame
    kind: str
    left_out: int = 0


def plan(settings: MethodsSettings, models: Models, folder: StudyFolder) -> Planned:  # noqa: ARG001
    """Every pair by every method, for every model.

    Raises BadInput for items that are not pairs or a language without prompts, NotPossible for a model that
    does not read from left to right.
    """
    data, items = settings.read()
    pairs = find_pairs(data, items)
    wording = read_wording(_find_language(data, settings), settings.prompts)
    methods = tuple(dict.fromkeys(settings.methods)) or METHODS
    for model in models:
        if model.info is None or model.info.kind != "left-to-right":
            raise NotPossible(
                f"'{model.name}' does not continue a text from left to right, so it cannot answer a prompt; "
                "name a causal or a served model."
            )
    notes = (f"{pairs.left_out:,} items are not pairs and were left out.",) if pairs.left_out else ()
    return Planned(
        jobs=_jobs(settings, models, data, pairs, methods, wording),
        facts={
            "dataset": name_data(settings.dataset),
            "methods": list(methods),
            "kind": pairs.kind,
            "score": dict(data.score),
            "prompts": wording.as_dict(),
        },
        inputs=digest_items(items),
        notes=notes,
    )


def _jobs(
    settings: MethodsSettings,
    models: Models,
    data: Dataset,
    pairs: Pairs,
    methods: tuple[str, ...],
    wording: Wording,
) -> Iterator[Job]:
    for model in models:
        lm = model.open()
        for method in methods:
            asked = ask(pairs, method, wording)
            dataset = replace(
                data,
                items=asked,
                rule="answers" if method in PROMPTED else "contrast",
                method=method,
                contrasts=(PAIR,),
                cross=False,
                measures=(),
            )
            options = {"sample": settings.sample, "method": method, "prompts": wording.as_dict()}
            planned = plan_run(dataset, asked, lm, seed=settings.seed, options=options)
            yield Job(model=model.name, lm=lm, plan=planned, part=method)


def _find_language(data: Dataset, settings: MethodsSettings) -> str:
    tags = {tag.partition("-")[0] for tag in data.languages}
    if len(tags) > 1:
        raise BadInput(
            f"'{data.name}' is in {', '.join(sorted(tags))}, but prompts are in one; choose with --language."
        )
    return next(iter(tags), settings.prompt_language)


def find_pairs(data: Dataset, items: pl.DataFrame) -> Pairs:
    """The items of a dataset as pairs: of one contrast, or the targets of cloze frames beside other words.

    Raises BadInput if the dataset has neither.
    """
    if data.rule == "cloze":
        found = [pair for _, group in _by_item(cross_targets(items)) for pair in _pair_targets(group, data)]
        left_out = items["item"].n_unique() - len({good["item"] for _, good, _ in found})
    elif data.rule == "contrast" and len(data.contrasts) == 1 and len(data.contrasts[0].worse) == 1:
        better, worse = data.contrasts[0].better, data.contrasts[0].worse[0]
        groups = [(item, {row["condition"]: row for row in group}) for item, group in _by_item(items)]
        found = [(item, rows[better], rows[worse]) for item, rows in groups if {better, worse} <= set(rows)]
        left_out = len(groups) - len(found)
    else:
        raise BadInput(
            f"'{data.name}' has the rule {data.method}, not one contrast of two sentences, so there are no "
            "pairs to ask about; choose a set of pairs or of cloze frames."
        )
    if not found:
        raise BadInput(f"No item of '{data.name}' has two sentences or words to ask about.")
    return _lay_out(found, left_out)


def _by_item(items: pl.DataFrame) -> Iterator[tuple[str, list[Stimulus]]]:
    for (item,), group in items.group_by("item", maintain_order=True):
        yield str(item), list(group.iter_rows(named=True))


def _pair_targets(group: list[Stimulus], data: Dataset) -> Iterator[tuple[str, Stimulus, Stimulus]]:
    """Each target that is looked for beside the other words of its frame, else of the item's other frame."""
    for good in group:
        name = good["condition"]
        if name not in data.targets:
            continue
        others = [row for row in group if row["text"] != good["text"]]
        same = [
            row
            for row in others
            if row["context_text"] == good["context_text"] and ":" not in row["condition"]
        ]
        crossed = [row for row in others if row["condition"].startswith(f"{name}:")]
        for bad in same or crossed:
            yield f"{good['item']}/{name}/{bad['condition'].removeprefix(f'{name}:')}", good, bad


def _lay_out(found: Sequence[tuple[str, Stimulus, Stimulus]], left_out: int) -> Pairs:
    """Pairs of words if both members of every pair continue one context, else of whole sentences."""
    rows = [
        {"item": item, "suite": good["suite"], "phenomenon": good["phenomenon"], **_join(good, bad)}
        for item, good, bad in found
    ]
    words = all(row["context"] for row in rows)
    if not words:
        rows = [row | _write_out(row["context"], row[GOOD], row[BAD]) for row in rows]
    return Pairs(pl.DataFrame(rows), "word" if words else "sentence", left_out)


def _join(good: Stimulus, bad: Stimulus) -> dict[str, str]:
    """What both members share as context; a final article that differs goes with its word."""
    contexts = [row.get("context_text") or "" for row in (good, bad)]
    texts = [row["text"] for row in (good, bad)]
    if contexts[0] != contexts[1]:
        parts = [context.rpartition(" ") for context in contexts]
        if parts[0][0] != parts[1][0] or not {part[2] for part in parts} <= set(ARTICLES):
            whole = [f"{context} {text}".strip() for context, text in zip(contexts, texts, strict=True)]
            return _write_out("", *whole)
        contexts = [part[0] for part in parts]
        texts = [f"{part[2]} {text}" for part, text in zip(parts, texts, strict=True)]
    return {"context": contexts[0], GOOD: texts[0], BAD: texts[1]}


def _write_out(context: str, good: str, bad: str) -> dict[str, str]:
    """Whole sentences, without a context."""
    return {"context": "", GOOD: f"{context} {good}".strip(), BAD: f"{context} {bad}".strip()}


def ask(pairs: Pairs, method: str, wording: Wording) -> pl.DataFrame:
    """The stimuli of a method: what stands before, and what is scored."""
    rows = [
        {name: row[name] for name in ("item", "suite", "phenomenon")}
        | {"condition": condition, "context_text": before or None, "text": text}
        for row in pairs.rows.iter_rows(named=True)
        for condition, before, text in _ask(row, method, pairs.kind, wording)
    ]
    return pl.DataFrame(rows, schema_overrides={"context_text": pl.String})


def _ask(row: Mapping[str, str], method: str, kind: str, wording: Wording) -> Iterator[tuple[str, str, str]]:
    """Condition, context and scored text of every request about a pair."""
    if method == "direct":
        for side in (GOOD, BAD):
            yield side, row["context"], row[side]
        return
    prompt, answers = wording.prompts[kind][method], wording.answers
    for side in (GOOD, BAD):
        if method == "in_template" and kind == "sentence":
            yield side, prompt.removesuffix("{sentence}").rstrip(), row[side]
        elif method == "in_template":
            yield side, prompt.format(context=row["context"]), row[side]
        elif method == "yes_no":
            asked = prompt.format(sentence=row[side], context=row["context"], word=row[side])
            yield side, asked, answers["yes"]
            yield name_variant(side, COUNTER), asked, answers["no"]
        else:
            for order, variant in (((GOOD, BAD), ""), ((BAD, GOOD), SWAPPED)):
                first, second = (row[one] for one in order)
                asked = prompt.format(context=row["context"], first=first, second=second)
                label = answers["first" if order[0] == side else "second"]
                condition = name_variant(side, variant) if variant else side
                yield condition, asked, label if kind == "sentence" else row[side]
