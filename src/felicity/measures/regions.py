"""Surprisal by region: the tokens of each region, found by their characters, put together."""

from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from felicity.core.schemas import REGIONS
from felicity.core.units import NATS_PER_BIT

METRICS: dict[str, Callable[[np.ndarray], float]] = {
    "sum": lambda values: float(values.sum()),
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
    "range": lambda values: float(np.ptp(values)),
    "max": lambda values: float(values.max()),
    "min": lambda values: float(values.min()),
}


def score_regions(items: pl.DataFrame, requests: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """Rows of REGIONS for every stimulus that has tokens here.

    A token belongs to the region that holds its first character other than a space. A token that could
    not be scored counts nowhere; a region without scored tokens has surprisal 0.
    """
    wanted = items.select("item", "suite", "condition", "text", "regions", "metric")
    named = requests.select("request", "item", "condition").join(wanted, on=["item", "condition"])
    rows = named.join(tokens, on="request", maintain_order="left")
    found: list[dict[str, object]] = []
    for row in rows.iter_rows(named=True):
        found += _regions(row)
    return pl.DataFrame(found, schema=REGIONS)


def _regions(row: dict[str, object]) -> Iterable[dict[str, object]]:
    text, regions = str(row["text"]), list(row["regions"])  # type: ignore[call-overload]
    starts = [_first_letter(text, at) for at in row["start"]]  # type: ignore[attr-defined]
    bits = [None if lp is None else -lp / NATS_PER_BIT for lp in row["logprob"]]  # type: ignore[attr-defined]
    for region in regions:
        own = [
            value
            for at, value in zip(starts, bits, strict=True)
            if value is not None and region["start"] <= at < region["end"]
        ]
        yield {
            "item": row["item"],
            "suite": row["suite"],
            "condition": row["condition"],
            "region": region["region"],
            "name": region["name"],
            "surprisal_bits": METRICS[str(row["metric"])](np.array(own)) if own else 0.0,
            "n_tokens": len(own),
        }


def _first_letter(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
