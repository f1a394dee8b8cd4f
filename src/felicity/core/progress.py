"""The progress protocol of long computations: rooms report, only the command line and web site display."""

from collections.abc import Callable

# Called with the current step, how much of it is done, and its total.
Progress = Callable[[str, int, int], None]


def no_progress(step: str, done: int, total: int) -> None:
    """Ignore progress."""


def share_progress(progress: Progress | None, *, before: int = 0, after: int = 0) -> Progress | None:
    """A step's progress as part of a total with `before` units before it and `after` units after it."""
    if progress is None:
        return None
    return lambda step, done, total: progress(step, before + done, before + total + after)
