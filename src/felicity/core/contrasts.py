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

    name: as in "Accuracy". chance: what guessing would give, if that is known. margin: the unit of an item's
    margin, or empty if margins are not shown. kind: `accuracy` if an item is right or wrong, `concordance` if
    its value is the share of other items that are ordered alike.
    """

    name: str = "Accuracy"
    kind: str = "accuracy"
    chance: float | None = 0.5
    margin: str = "nats"


ACCURACY = Headline()
