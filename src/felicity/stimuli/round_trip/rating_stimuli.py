"""From originals and their translations to the stimuli of a rating study: balanced, in every context."""

import random
from collections.abc import Sequence

import polars as pl

from felicity.core.errors import BadInput
from felicity.stimuli.round_trip.degradation import Degraded
from felicity.stimuli.round_trip.sentences import Original

ORIGINAL = "original"
TRANSLATED = "round_trip_translation"
STRATA = 3
STIMULI = {
    "item": pl.String,
    "condition": pl.String,
    "context": pl.String,
    "text": pl.String,
    "suite": pl.String,
    "phenomenon": pl.String,
    "original": pl.String,
}


def balance_sources(
    originals: Sequence[Original], degraded: Degraded, *, size: int, home: str = "en", seed: int = 0
) -> dict[str, list[str]]:
    """`size` items of each source (the originals and every route), each original in one source only.

    Originals are put into three classes by their length in words, and every source takes the same number of
    each class, so that sources do not differ in length.

    Raises BadInput if there are too few sentences.
    """
    sources = [home, *degraded.texts]
    rng = random.Random(seed)
    order = sorted(originals, key=lambda one: (len(one.text.split()), one.item))
    cut = len(order) / STRATA
    strata = [order[round(k * cut) : round((k + 1) * cut)] for k in range(STRATA)]
    wanted = [size // STRATA + (k < size % STRATA) for k in range(STRATA)]
    chosen: dict[str, list[str]] = {source: [] for source in sources}
    for stratum, number in zip(strata, wanted, strict=True):
        free = [one.item for one in stratum]
        rng.shuffle(free)
        # Sources with the fewest sentences choose first.
        for source in sorted(sources, key=lambda name: len(degraded.texts.get(name, originals))):
            known = degraded.texts.get(source)
            fit = [item for item in free if known is None or item in known][:number]
            if len(fit) < number:
                raise BadInput(
                    f"There are too few sentences for {size} of each of {len(sources)} sources: '{source}' "
                    "finds "
                    f"{len(fit)} of {number} in one class of length; ask for fewer, or give more originals."
                )
            chosen[source] += fit
            free = [item for item in free if item not in set(fit)]
    return chosen


def build_rating_stimuli(
    originals: Sequence[Original],
    degraded: Degraded,
    *,
    home: str = "en",
    chosen: dict[str, list[str]] | None = None,
) -> pl.DataFrame:
    """Rows of STIMULI: every sentence without a context and, if contexts are known, in both of them.

    suite: the source, `home` for originals. chosen: the items of each source; by default every sentence of
    every source.
    """
    known = {one.item: one for one in originals}
    texts = {home: {one.item: one.text for one in originals}} | degraded.texts
    rows: list[dict[str, str | None]] = []
    for source, found in texts.items():
        for item in found if chosen is None else chosen[source]:
            original = known[item]
            row: dict[str, str | None] = {
                "item": f"{source}/{item}",
                "text": found[item],
                "suite": source,
                "phenomenon": ORIGINAL if source == home else TRANSLATED,
                "original": original.text,
            }
            rows.append(row | {"condition": "none", "context": None})
            if original.real:
                rows.append(row | {"condition": "real", "context": original.real})
                rows.append(row | {"condition": "random", "context": original.unrelated})
    return pl.DataFrame(rows, schema=STIMULI)
