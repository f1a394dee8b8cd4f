"""What a dataset predicts: which condition of an item should score higher than which others."""

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
