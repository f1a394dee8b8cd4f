"""One judgement down to its tokens, under every model: what the view of an item shows."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from felicity.core.errors import UnknownName
from felicity.explore.collections import Collection
from felicity.explore.index import Source
from felicity.explore.layout import Layout, ScoredText, Sentence, lay_out
from felicity.explore.selection import show_rows

MOST_FILLERS = 10


def read_item(collection: Collection, measure: str, key: str) -> dict[str, Any]:
    """A judgement with its sentences, laid out by character, and their scores.

    Raises UnknownName if there is no such judgement.
    """
    found = collection.scan().filter(pl.col("measure") == measure, pl.col("key") == key).collect()
    if not len(found):
        raise UnknownName("item", key, [], hint="open the list of items and choose one.")
    return _show_items(collection, found)[0]


def read_all_items(collection: Collection) -> list[dict[str, Any]]:
    """Every judgement of a collection, as `read_item` gives it, in the order of the table."""
    return _show_items(collection, collection.scan().collect())


def _show_items(collection: Collection, rows: pl.DataFrame) -> list[dict[str, Any]]:
    sentences = _read_sentences(collection, rows)
    extras = [_read_extras(source, rows["item"]) for source in collection.sources]
    shown = []
    for row, about in zip(rows.iter_rows(named=True), show_rows(collection, rows), strict=True):
        own = sentences.get(_unit(collection.sources[0], row), [])
        laid = lay_out([sentence for sentence, _ in own])
        item = (
            about
            | {"measure": row["measure"]}
            | describe_layout(laid, [each for each, _ in own], collection.models)
        )
        item["sentences"] = [told | more for told, (_, more) in zip(item["sentences"], own, strict=True)]
        item["tables"] = [extra.get(row["item"], {}) for extra in extras]
        shown.append(item)
    return shown


def describe_layout(layout: Layout, sentences: Sequence[Sentence], models: Sequence[str]) -> dict[str, Any]:
    """A layout as plain lists: cells are column, place in it, characters, text, nats, number of the token."""
    return {
        "widths": list(layout.widths),
        "sentences": [
            {
                "condition": sentence.condition,
                "text": sentence.text,
                "words": list(layout.words[number]),
                "cells": [
                    [
                        [cell.column, cell.at, cell.span, cell.text, cell.logprob, cell.place]
                        for cell in layout.cells.get((number, model), ())
                    ]
                    for model in models
                ],
                "lp": [
                    layout.total(number, model) if (number, model) in layout.cells else None
                    for model in models
                ],
            }
            for number, sentence in enumerate(sentences)
        ],
        "running": [
            {
                "first": first,
                "second": second,
                "model": list(models).index(model),
                "margins": list(running.margins),
                "decided": running.decided,
            }
            for (first, second, model), running in layout.running.items()
        ],
    }


Unit = tuple[str | None, ...]


def _unit(source: Source, row: Mapping[str, Any]) -> Unit:
    """What a row of the table and its requests have in common."""
    found = []
    for name in source.unit:
        value = row[name]
        found.append(value[0] if isinstance(value, list) else value)
    return tuple(found)


def _read_sentences(
    collection: Collection, rows: pl.DataFrame
) -> dict[Unit, list[tuple[Sentence, dict[str, Any]]]]:
    """The sentences of these judgements in the order of their conditions, each with context and scores."""
    first = collection.sources[0]
    wanted = rows["item"].unique().to_list()
    few = len(wanted) < 1000
    asked = first.scan("requests").select("request", "item", "condition", "context", "text")
    requests = (asked.filter(pl.col("item").is_in(wanted)) if few else asked).collect()
    contexts = _read_contexts(first, requests["context"].drop_nulls().unique().to_list())
    tokens = [_read_tokens(source, requests["request"].to_list(), few=few) for source in collection.sources]
    scores = [_read_scores(source, requests["request"].to_list(), few=few) for source in collection.sources]
    order = {
        condition: place
        for names in rows["condition"].to_list()
        for place, condition in enumerate(names or [])
    }
    found: dict[Unit, list[tuple[Sentence, dict[str, Any]]]] = {}
    for row in requests.iter_rows(named=True):
        name = row["request"]
        scored = {
            model: own[name] for model, own in zip(collection.models, tokens, strict=True) if name in own
        }
        sentence = Sentence(condition=row["condition"], text=row["text"], scored=scored)
        more = {
            "request": name,
            "context": contexts.get(row["context"] or "", ""),
            "scores": [own.get(name, {}) for own in scores],
        }
        found.setdefault(_unit(first, row), []).append((sentence, more))
    for own in found.values():
        own.sort(key=lambda pair: order.get(pair[0].condition, len(order)))
    return found


def _read_contexts(source: Source, names: Sequence[str]) -> dict[str, str]:
    table = source.scan("contexts").filter(pl.col("context").is_in(list(names)))
    return dict(table.select("context", "context_text").unique("context").collect().iter_rows())


def _read_tokens(source: Source, requests: Sequence[str], *, few: bool) -> dict[str, ScoredText]:
    table = source.scan("tokens").select("request", "tokens", "start", "end", "logprob")
    frame = (table.filter(pl.col("request").is_in(list(requests))) if few else table).collect()
    return {
        name: ScoredText(tokens=tokens, start=start, end=end, logprob=logprob)
        for name, tokens, start, end, logprob in frame.iter_rows()
    }


def _read_scores(source: Source, requests: Sequence[str], *, few: bool) -> dict[str, dict[str, float]]:
    table = source.scan("scores").select("request", "measure", "value")
    frame = (table.filter(pl.col("request").is_in(list(requests))) if few else table).collect()
    found: dict[str, dict[str, float]] = {}
    for name, measure, value in frame.iter_rows():
        found.setdefault(name, {})[measure] = value
    return found


def _read_extras(source: Source, items: pl.Series) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What else some rules know about an item: surprisal by region, predictions, words for blanks."""
    columns = {
        "regions": ("item", "condition", "region", "name", "surprisal_bits"),
        "predictions": ("item", "rule", "passed", "margin", "stable"),
        "fillers": ("item", "condition", "frame", "target", "rank", "predictions"),
    }
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for table, names in columns.items():
        if not source.run.file(table).exists() or source.home.path != source.run.path:
            continue
        frame = source.scan(table).filter(pl.col("item").is_in(items.unique().to_list())).select(names)
        if table == "fillers":
            frame = frame.with_columns(pl.col("predictions").list.head(MOST_FILLERS))
        for row in frame.collect().iter_rows(named=True):
            found.setdefault(row.pop("item"), {}).setdefault(table, []).append(row)
    return found
