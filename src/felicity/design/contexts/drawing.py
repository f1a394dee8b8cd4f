"""Contexts sampled from pools of sentences: the same contexts for the same seed, whatever else is sampled.

Each series has its own generator, seeded by the seed and by the identity of the series: suite, group, kind,
source and number of the draw. So contexts do not depend on the order of items, nor on which other kinds or
suites are requested; and a perturbed context consists of the sentences of the unperturbed one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.schemas import TEXT, Schema, conform, empty_table
from felicity.core.sweep import FROM_KINDS, KINDS, SWEEP_CONTEXTS, UNPERTURBED
from felicity.design.contexts.growth import ContextSentence, Count, Grown, Growth, TokenCounter, grow
from felicity.design.contexts.plan import ContextPlan, assign_groups, make_rng
from felicity.design.contexts.sentence_pools import (
    SentencePools,
    SentenceView,
    close_sentence,
    index_pool,
    sentence_identity,
)

# A length that `series` of the `of` series could not reach; `reached` is the length of the shortest of them.
SHORT: Schema = {
    "suite": TEXT,
    "kind": TEXT,
    "source": TEXT,
    "wanted": pl.Int64(),
    "reached": pl.Int64(),
    "series": pl.Int64(),
    "of": pl.Int64(),
}
SERIES_AT_ONCE = 2000


class Series(NamedTuple):
    """The identity of a series of contexts that are extensions of one another."""

    suite: str
    group: str
    kind: str
    source: str | None
    perturbation: str
    draw: int

    @property
    def name(self) -> str:
        """The id: suite/group/kind[/source]/draw[/perturbation]."""
        source = () if self.source is None else (self.source,)
        perturbation = () if self.perturbation == UNPERTURBED else (self.perturbation,)
        return "/".join((self.suite, self.group, self.kind, *source, str(self.draw), *perturbation))


def list_contexts(
    series: Sequence[Series], growths: Sequence[Growth], grown: Sequence[Grown]
) -> pl.DataFrame:
    """A row of SWEEP_CONTEXTS for each context of each series."""
    if not any(one.prefixes for one in grown):
        return empty_table(SWEEP_CONTEXTS)
    about = pl.DataFrame(
        {
            **{field: [getattr(one, field) for one in series] for field in Series._fields},
            "series": [one.name for one in series],
            "place": range(len(series)),
            "sentences": [[drawn.sentence for drawn in growth.drawn] for growth in growths],
            "origins": [[drawn.origin for drawn in growth.drawn] for growth in growths],
        },
        schema_overrides={"source": pl.String(), "place": pl.Int64()},
    )
    prefixes = [(place, *cut) for place, one in enumerate(grown) for cut in one.prefixes]
    texts = [growths[place].text(number) for place, _, number, _ in prefixes]
    rows = pl.DataFrame(
        prefixes,
        schema={"place": pl.Int64(), "length": pl.Int64(), "number": pl.Int64(), "n_tokens": pl.Int64()},
        orient="row",
    )
    rows = rows.with_columns(
        pl.Series("context_text", texts), pl.Series("context", [fingerprint(text) for text in texts])
    )
    joined = rows.join(about, on="place", how="left", maintain_order="left")
    return conform(joined.with_columns(pl.col("sentences", "origins").list.head("number")), SWEEP_CONTEXTS)


def list_short(series: Sequence[Series], grown: Sequence[Grown], lengths: Sequence[int]) -> pl.DataFrame:
    """A row of SHORT for each series and length, to be summed up; `reached` is null if it was reached."""
    rows = []
    for one, got in zip(series, grown, strict=True):
        for length in lengths:
            missed = length > (got.prefixes[-1].length if got.prefixes else 0)
            reached = got.reached if missed else None
            rows.append((one.suite, one.kind, one.source, length, reached, int(missed), 1))
    return pl.DataFrame(rows, schema=SHORT, orient="row")


def describe_short(short: pl.DataFrame, unit: str) -> list[str]:
    """Sentences about the suites that are too small for the requested lengths."""
    keys = ["suite", "kind", "source"]
    about = short.sort("wanted").group_by(keys, maintain_order=True).first()
    sentences = []
    for row in about.sort(keys).iter_rows(named=True):
        source = f" {row['source']}" if row["source"] else ""
        sentences.append(
            f"{row['suite']}: too few sentences for {row['kind']}{source} contexts of {row['wanted']} {unit} "
            f"and more; {row['series']} of {row['of']} end sooner, the shortest at {row['reached']}."
        )
    return sentences


Perturb = Callable[[str, np.random.Generator], str]


class Contexts(NamedTuple):
    """The sampled contexts: rows of SWEEP_CONTEXTS, and rows of SHORT for lengths that were not reached."""

    table: pl.DataFrame
    short: pl.DataFrame


class Group(NamedTuple):
    """Items that share their contexts, and the sentences that these must not contain."""

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

    pool: rows of POOL, of the whole dataset, even if `items` is a sample of it. unrelated: sentences of
    running text, for the kind of that name. count: the number of tokens of texts. perturb: a function applied
    to each sentence; required if the plan names a perturbation.

    No context contains a sentence of an item of its group, or the same sentence twice.

    Raises BadInput if a kind has no sentences, UnknownName for an unknown suite.
    """
    if (perturb is None) != (plan.perturb == UNPERTURBED):
        raise ValueError(f"the plan says perturb '{plan.perturb}', but the function does not match")
    if "unrelated" in plan.kinds and not unrelated:
        raise BadInput("Unrelated contexts need running text; give a text file, or omit the kind.")
    stock = index_pool(pool, unrelated)
    for source in plan.from_suites:
        if source not in stock.suites:
            raise UnknownName("suite", source, stock.suites, hint="it has no sentence known to be acceptable")
    counter = TokenCounter(count)
    series = [(group, one) for group in _list_groups(items, plan) for one in _list_series(group, plan)]
    tables, shorts = [], []
    for start in range(0, max(len(series), 1), SERIES_AT_ONCE):
        block = series[start : start + SERIES_AT_ONCE]
        growths = [Growth(_draw(group, one, stock, plan, perturb)) for group, one in block]
        grown = grow(growths, plan.grown, plan.unit, counter)
        named = [one for _, one in block]
        tables.append(list_contexts(named, growths, grown))
        shorts.append(list_short(named, grown, plan.grown))
    return Contexts(pl.concat(tables), _sum_up(pl.concat(shorts)))


def _list_groups(items: pl.DataFrame, plan: ContextPlan) -> list[Group]:
    grouped = items.join(assign_groups(items, plan), on=["suite", "item"])
    about = grouped.group_by("suite", "group").agg("item", "text").sort("suite", "group")
    return [
        Group(suite, name, frozenset(names), frozenset(map(sentence_identity, texts)))
        for suite, name, names, texts in about.iter_rows()
    ]


def _list_series(group: Group, plan: ContextPlan) -> Iterator[Series]:
    for kind in plan.kinds:
        for source in plan.from_suites if kind in FROM_KINDS else (None,):
            for draw in range(1, plan.draws + 1):
                yield Series(group.suite, group.name, kind, source, plan.perturb, draw)


def _draw(
    group: Group, series: Series, stock: SentencePools, plan: ContextPlan, perturb: Perturb | None
) -> Iterator[ContextSentence]:
    """Sentences for a series, one after another, until none are left."""
    shelf = _choose_sentences(series, stock)
    seed_key = (plan.seed, series.suite, series.group, series.kind, series.source, series.draw)
    rng = make_rng(*seed_key)
    changing = make_rng(*seed_key, plan.perturb)
    seen = set(group.keys)
    for place in shuffle(len(shelf), rng):
        taken = shelf[place]
        if taken.key in seen or taken.origin in group.items:
            continue
        seen.add(taken.key)
        sentence = taken.sentence
        if perturb is not None:
            sentence = perturb(sentence, changing)
            key = sentence_identity(sentence)
            if key != taken.key and key in seen:
                continue
            seen.add(key)
        yield ContextSentence(close_sentence(sentence), taken.origin)


def _choose_sentences(series: Series, stock: SentencePools) -> SentenceView:
    about = (KINDS | FROM_KINDS)[series.kind]
    if about.acceptable is None:
        return stock.unrelated
    if series.source is not None:
        return stock.within(series.source, acceptable=about.acceptable)
    if about.matched:
        return stock.within(series.suite, acceptable=about.acceptable)
    return stock.outside(series.suite, acceptable=about.acceptable)


def shuffle(size: int, rng: np.random.Generator) -> Iterator[int]:
    """The numbers below `size` in random order, each sampled when needed (Fisher and Yates).

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
