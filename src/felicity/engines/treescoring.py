"""Log-probabilities of encoded sequences through their trie, piece by piece."""

from collections.abc import Iterator

import numpy as np

from felicity.engines.encoding import Encoded
from felicity.engines.passes import TreeModel
from felicity.engines.reading import Reader
from felicity.engines.spans import Shape, Span, plan_units
from felicity.engines.trie import Trie, build_trie

# Sequences, and the records of their wanted tokens, flat, in their order.
Scored = tuple[np.ndarray, np.ndarray]


def score_trie(
    model: TreeModel, encoded: Encoded, finished: np.ndarray, shape: Shape, reader: Reader
) -> Iterator[Scored]:
    """Score all sequences, a part whenever a pass is done; units that are wholly `finished` are not read."""
    trie = build_trie(encoded)
    bare = np.flatnonzero(trie.ready < 0)
    if len(bare) and not finished[bare].all():
        yield bare, np.empty(0, dtype=reader.record)
    by_ready = np.argsort(trie.ready, kind="stable")
    ready = trie.ready[by_ready]
    value = np.zeros(len(trie.place_token), dtype=reader.record)
    for unit in plan_units(trie, shape):
        inside = [
            by_ready[np.searchsorted(ready, span.begin) : np.searchsorted(ready, span.end)] for span in unit
        ]
        if all(finished[sequences].all() for sequences in inside):
            continue
        for sequences in filter(len, _read_unit(model, trie, encoded, unit, inside, value, reader)):
            yield sequences, value[trie.place[encoded.places(sequences, encoded.wanted)]]


def _read_unit(
    model: TreeModel,
    trie: Trie,
    encoded: Encoded,
    unit: list[Span],
    inside: list[np.ndarray],
    value: np.ndarray,
    reader: Reader,
) -> Iterator[np.ndarray]:
    """Fill in the values of the sequences that end in this unit; say which are done."""
    asked = [np.unique(trie.place[encoded.places(sequences, encoded.wanted)]) for sequences in inside]
    if len(unit) == 1 and unit[0].passes > 1:
        yield from _read_long(model, trie, unit[0], asked[0], inside[0], value, reader)
        return
    at = [_index(span, trie.asked_at[places]) for span, places in zip(unit, asked, strict=True)]
    distinct = [np.unique(indices) for indices in at]
    before = np.cumsum([0, *map(len, distinct)])
    row = [np.searchsorted(d, i) + b for d, i, b in zip(distinct, at, before[:-1], strict=True)]
    logits = model.read_rows(trie, unit, distinct)
    rows, places = np.concatenate(row), np.concatenate(asked)
    order = np.argsort(rows, kind="stable")
    value[places[order]] = reader.read(logits, rows[order], trie.place_token[places[order]])
    yield np.concatenate(inside)


def _read_long(
    model: TreeModel,
    trie: Trie,
    span: Span,
    places: np.ndarray,
    sequences: np.ndarray,
    value: np.ndarray,
    reader: Reader,
) -> Iterator[np.ndarray]:
    """A span of several passes; sequences are done with the pass that reads their last asked node."""
    at = _index(span, trie.asked_at[places])
    for nodes, here, logits in model.read_passes(trie, span, np.unique(at)):
        now = np.isin(at, here)
        row, chosen = np.searchsorted(here, at[now]), places[now]
        order = np.argsort(row, kind="stable")
        value[chosen[order]] = reader.read(logits, row[order], trie.place_token[chosen[order]])
        yield sequences[np.isin(trie.ready[sequences], nodes)]


def _index(span: Span, nodes: np.ndarray) -> np.ndarray:
    """Where nodes stand in a span, trunk first."""
    inside = nodes >= span.begin
    return np.where(
        inside, nodes - span.begin + len(span.trunk), np.searchsorted(span.trunk, np.where(inside, 0, nodes))
    )
