"""How long steps say how far they are; nothing in this room prints."""

from collections.abc import Callable

# Called with the step's name, how much is done and how much there is (0 where that is not known).
Progress = Callable[[str, int, int], None]


def no_progress(step: str, done: int, total: int) -> None:
    """Say nothing."""
