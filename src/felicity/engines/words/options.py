"""What the command line may say of words and casing, checked once."""

from typing import cast, get_args

from felicity.core.errors import UnknownName
from felicity.core.policy import Casing
from felicity.engines.words.cutting import Cut

TRAINING_CUTS = ("punctuation", "space")


def check_cut(name: str) -> Cut:
    """A way to cut text into words that a corpus can be read with.

    Raises UnknownName.
    """
    if name not in TRAINING_CUTS:
        raise UnknownName("way to cut words", name, TRAINING_CUTS)
    return cast(Cut, name)


def check_casing(name: str) -> Casing:
    """`keep` or `lower`.

    Raises UnknownName.
    """
    if name not in get_args(Casing):
        raise UnknownName("casing", name, get_args(Casing))
    return cast(Casing, name)
