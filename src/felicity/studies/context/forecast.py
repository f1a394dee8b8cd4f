"""How long a study will take, said before it begins: from a small part of it that is scored first."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

# Characters of English to a token, near enough for a forecast.
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """requests: what is still to be scored. tokens: how many the model must read for it."""

    requests: int
    tokens: int
    seconds: float

    def __str__(self) -> str:
        work = f"{self.requests:,} texts to score, {self.tokens:,} tokens to read"
        return f"{work}: about {say_time(self.seconds)}."


def weigh(requests: pl.DataFrame, *, shared: bool) -> float:
    """Tokens that a model reads for these requests; `shared`: a context once, however many follow it."""
    texts = float((requests["text"].str.len_chars() / CHARACTERS_PER_TOKEN).sum())
    if not shared:
        return texts + float(requests["n_tokens"].cast(pl.Float64).sum())
    longest = requests.filter(pl.col("series").is_not_null()).group_by("series").agg(pl.col("n_tokens").max())
    return texts + float(longest["n_tokens"].cast(pl.Float64).sum())


def forecast_time(
    pending: pl.DataFrame, pilot: pl.DataFrame, score: Callable[[], object], *, shared: bool
) -> Forecast:
    """Score the pilot, which is part of the work, and reckon from it how long the rest will take."""
    begin = time.monotonic()
    score()
    spent = time.monotonic() - begin
    whole, part = weigh(pending, shared=shared), weigh(pilot, shared=shared)
    return Forecast(
        requests=len(pending) - len(pilot),
        tokens=round(whole - part),
        seconds=spent / part * max(whole - part, 0.0) if part else 0.0,
    )


def say_time(seconds: float) -> str:
    """Seconds as a person says them.

    >>> say_time(40), say_time(300), say_time(9000)
    ('40 seconds', '5 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"
