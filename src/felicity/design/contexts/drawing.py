"""Contexts drawn from pools of sentences, the same ones for the same seed, whatever else is drawn.

Each series has a generator of its own, made from the seed and from what the series is: suite, group, kind,
source and number of the draw. So contexts do not depend on the order of items, nor on which other
kinds or suites are asked for; and a perturbed context is made of the sentences of the unperturbed one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.sweep import FROM_KINDS, KINDS, UNPERTURBED
from felicity.design.contexts.counting import Count, Tally
from felicity.design.contexts.growing import Drawn, Growth, grow
from felicity.design.contexts.joining import close_sentence, sentence_key
from felicity.design.contexts.plan import ContextPlan, assign_groups, make_rng
from felicity.design.contexts.stock import Shelf, Stock, build_stock
from felicity.design.contexts.tables import SHORT, Series, list_contexts, list_short

Perturb = Callable[[str, np.random.Generator], str]
SERIES_AT_ONCE = 2000


class Contexts(NamedTuple):
    """What was drawn: rows of SWEEP_CONTEXTS, and rows of SHORT for what could not be."""

    table: pl.DataFrame
    short: pl.DataFrame


class Group(NamedTuple):
    """Items that stand behind the same contexts, and the sentences that must not be in these."""

    suite: str
    name: str
    items: frozenset[str]
    keys: frozenset[str]


def draw_contexts(
    items: pl.DataFrame,
    pool: pl.DataFrame,
    unrelated: Sequence[str],
    plan: ContextPlan,
    count: Count,
    *,
    perturb: Perturb | None = None,
) -> Contexts:
    """Contexts for every group of `items`, each kind and draw of the plan, at each length that is reached.

    pool: rows of POOL, of the whole dataset, however few of its items stand in `items`. unrelated:
    sentences of running text, for the kind of that name. count: numbers of tokens of texts. perturb:
    what makes the context's sentences of those drawn; it must be given where the plan names one.

    No context holds a sentence of an item of its group, or twice the same sentence.

    Raises BadInput where a kind has nothing to draw from, UnknownName for a suite that is not there.
    """
    if (perturb is None) != (plan.perturb == UNPERTURBED):
        raise ValueError(f"the plan says perturb '{plan.perturb}', but the function does not go with it")
    if "unrelated" in plan.kinds and not unrelated:
        raise BadInput("Unrelated contexts need running text; name a text file, or leave the kind out.")
    stock = build_stock(pool, unrelated)
    for source in plan.from_suites:
        if source not in stock.suites:
            raise UnknownName("suite", source, stock.suites, hint="no acceptable sentence is known of it")
    tally = Tally(count)
    series = [(group, one) for group in _list_groups(items, plan) for one in _list_series(group, plan)]
    tables, shorts = [], []
    for start in range(0, max(len(series), 1), SERIES_AT_ONCE):
        block = series[start : start + SERIES_AT_ONCE]
        growths = [Growth(_draw(group, one, stock, plan, perturb)) for group, one in block]
        grown = grow(growths, plan.grown, plan.unit, tally)
        named = [one for _, one in block]
        tables.append(list_contexts(named, growths, grown))
        shorts.append(list_short(named, grown, plan.grown))
    return Contexts(pl.concat(tables), _sum_up(pl.concat(shorts)))


def _list_groups(items: pl.DataFrame, plan: ContextPlan) -> list[Group]:
    grouped = items.join(assign_groups(items, plan), on=["suite", "item"])
    about = grouped.group_by("suite", "group").agg("item", "text").sort("suite", "group")
    return [
        Group(suite, name, frozenset(names), frozenset(map(sentence_key, texts)))
        for suite, name, names, texts in about.iter_rows()
    ]


def _list_series(group: Group, plan: ContextPlan) -> Iterator[Series]:
    for kind in plan.kinds:
        for source in plan.from_suites if kind in FROM_KINDS else (None,):
            for draw in range(1, plan.draws + 1):
                yield Series(group.suite, group.name, kind, source, plan.perturb, draw)


def _draw(
    group: Group, series: Series, stock: Stock, plan: ContextPlan, perturb: Perturb | None
) -> Iterator[Drawn]:
    """Sentences for a series, one after another, until its shelf is empty."""
    shelf = _find_shelf(series, stock)
    own = (plan.seed, series.suite, series.group, series.kind, series.source, series.draw)
    rng = make_rng(*own)
    changing = make_rng(*own, plan.perturb)
    seen = set(group.keys)
    for place in shuffle(len(shelf), rng):
        taken = shelf[place]
        if taken.key in seen or taken.origin in group.items:
            continue
        seen.add(taken.key)
        sentence = taken.sentence
        if perturb is not None:
            sentence = perturb(sentence, changing)
            key = sentence_key(sentence)
            if key != taken.key and key in seen:
                continue
            seen.add(key)
        yield Drawn(close_sentence(sentence), taken.origin)


def _find_shelf(series: Series, stock: Stock) -> Shelf:
    about = (KINDS | FROM_KINDS)[series.kind]
    if about.acceptable is None:
        return stock.unrelated
    if series.source is not None:
        return stock.within(series.source, acceptable=about.acceptable)
    if about.matched:
        return stock.within(series.suite, acceptable=about.acceptable)
    return stock.outside(series.suite, acceptable=about.acceptable)


def shuffle(size: int, rng: np.random.Generator) -> Iterator[int]:
    """The numbers below `size` in random order, each drawn when it is asked for (Fisher and Yates).

    >>> sorted(shuffle(5, np.random.default_rng(1)))
    [0, 1, 2, 3, 4]
    """
    moved: dict[int, int] = {}
    batch = 128
    for start in range(0, size, batch):
        for place, chance in enumerate(rng.random(batch)[: size - start].tolist(), start=start):
            other = place + int(chance * (size - place))
            yield moved.get(other, other)
            moved[other] = moved.get(place, place)


def _sum_up(short: pl.DataFrame) -> pl.DataFrame:
    keys = ["suite", "kind", "source", "wanted"]
    summed = short.group_by(keys).agg(pl.col("reached").min(), pl.col("series").sum(), pl.col("of").sum())
    return summed.filter(pl.col("series") > 0).sort(keys).select(list(SHORT))
