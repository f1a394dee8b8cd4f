"""Two models on the same items: their answers side by side, or a refusal.

Answers to the same items hang together, so two models are compared item by item. A comparison of
answers that cannot be paired is the commonest mistake here, and is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Codes, Frame, Vector, as_polars, column

Ties = Literal["wrong", "half", "drop"]
TIE = 0.5


@dataclass(frozen=True)
class Pairs:
    """Answers of two models to the same items, between 0 and 1, and the cluster of each item.

    ties: how many answers of either model were ties.
    """

    first: Vector
    second: Vector
    clusters: Codes | None
    ties: int

    @property
    def n(self) -> int:
        """Items."""
        return len(self.first)

    @property
    def differences(self) -> Vector:
        """First minus second, per item."""
        return self.first - self.second

    @property
    def discordant(self) -> tuple[int, int]:
        """Items that only the first, and only the second, model gets right.

        Raises BadInput where answers are not all right or wrong.
        """
        for name, answers in (("first", self.first), ("second", self.second)):
            if not np.isin(answers, (0.0, 1.0)).all():
                raise BadInput(
                    f"The {name} model has answers that are neither right nor wrong; "
                    f"count ties as wrong or drop them."
                )
        return int((self.first > self.second).sum()), int((self.first < self.second).sum())


def pair_answers(
    first: Frame,
    second: Frame,
    *,
    on: str | Sequence[str] = "item",
    value: str = "passed",
    cluster: str | None = None,
    ties: Ties = "wrong",
) -> Pairs:
    """Join two tables of answers item by item.

    on: the columns that together name an item. value: 1 right, 0 wrong, 0.5 a tie.
    cluster: a column of the first table, such as 'suite', whose items hang together.
    ties: count a tie as 'wrong' (as most papers do), as 'half', or 'drop' the item.

    Raises BadInput where an item is missing on one side, stands twice, or has no answer.
    """
    keys = [on] if isinstance(on, str) else list(on)
    if ties not in ("wrong", "half", "drop"):
        raise UnknownName("treatment of ties", str(ties), ("wrong", "half", "drop"))
    left, right = (_answers(as_polars(frame), keys, value, side) for frame, side in _sides(first, second))
    _check_same_items(left, right, keys)
    if cluster is not None:
        labels = as_polars(first).select(*keys, pl.Series("cluster", column(as_polars(first), cluster)))
        left = left.join(labels, on=keys, maintain_order="left")
    joined = left.join(right.rename({"answer": "other"}), on=keys, maintain_order="left")
    tied = (pl.col("answer") == TIE) | (pl.col("other") == TIE)
    count = joined.select(
        ((pl.col("answer") == TIE).cast(int) + (pl.col("other") == TIE).cast(int)).sum()
    ).item()
    if ties == "drop":
        joined = joined.filter(~tied)
        if not joined.height:
            raise BadInput("Every item is a tie, so dropping ties leaves nothing to compare.")
    elif ties == "wrong":
        joined = joined.with_columns(pl.col("answer", "other").replace(TIE, 0.0))
    return Pairs(
        first=joined["answer"].to_numpy(),
        second=joined["other"].to_numpy(),
        clusters=joined["cluster"].rank("dense").cast(int).to_numpy() - 1 if cluster is not None else None,
        ties=int(count),
    )


def _sides(first: Frame, second: Frame) -> list[tuple[Frame, str]]:
    return [(first, "first"), (second, "second")]


def _answers(frame: pl.DataFrame, keys: list[str], value: str, side: str) -> pl.DataFrame:
    for name in [*keys, value]:
        column(frame, name)
    answers = frame.select(*keys, pl.col(value).cast(pl.Float64).alias("answer"))
    outside = answers.filter(~pl.col("answer").is_between(0.0, 1.0))
    if outside.height:
        raise BadInput(f"The {side} table's '{value}' holds {outside['answer'][0]:g}; answers lie in 0 to 1.")
    twice = answers.filter(pl.struct(keys).is_duplicated())
    if twice.height:
        item = " ".join(str(part) for part in twice.select(keys).row(0))
        raise BadInput(
            f"Item '{item}' stands more than once in the {side} table; "
            f"filter it to one answer per item or name more columns."
        )
    return answers


def _check_same_items(left: pl.DataFrame, right: pl.DataFrame, keys: list[str]) -> None:
    for here, there, side in ((left, right, "second"), (right, left, "first")):
        lonely = here.join(there, on=keys, how="anti")
        if lonely.height:
            item = " ".join(str(part) for part in lonely.select(keys).row(0))
            raise BadInput(
                f"{lonely.height} items have no answer in the {side} table, '{item}' for one; "
                f"compare the models on the same items."
            )
