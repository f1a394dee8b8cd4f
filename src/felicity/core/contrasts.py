"""What a dataset predicts of its conditions, and by which number a judging rule is reported."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One prediction over the conditions of an item.

    phenomenon: the prediction holds for items of this phenomenon only; None means for all.
    """

    name: str
    better: str
    worse: tuple[str, ...]
    phenomenon: str | None = None


PAIR = Contrast(name="pair", better="good", worse=("bad",))


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The number that a rule is reported by, and how it is read.

    name: as in "Accuracy". chance: what guessing would give, if that is known. margin: what an item's
    margin is in, or empty where margins are not shown. kind: `accuracy`, where an item is right or wrong,
    or `concordance`, where an item has a share of others.
    """

    name: str = "Accuracy"
    kind: str = "accuracy"
    chance: float | None = 0.5
    margin: str = "nats"


ACCURACY = Headline()
