"""The progress protocol of long computations: rooms report, faces and notebooks display it."""

import builtins
import sys
from collections.abc import Callable
from typing import TextIO

# Called with the current step, how much of it is done, and its total.
Progress = Callable[[str, int, int], None]
LOADING = "Loading"


def no_progress(step: str, done: int, total: int) -> None:
    """Ignore progress."""


def share_progress(progress: Progress | None, *, before: int = 0, after: int = 0) -> Progress | None:
    """A step's progress as part of a total with `before` units before it and `after` units after it."""
    if progress is None:
        return None
    return lambda step, done, total: progress(step, before + done, before + total + after)


def rename_step(progress: Progress | None, name: str) -> Progress | None:
    """Progress whose steps are shown as `name`, such as a model's; the loading of a model keeps its own."""
    if progress is None:
        return None
    return lambda step, done, total: progress(step if step.startswith(LOADING) else name, done, total)


def loading(name: str) -> str:
    """The step in which a model is loaded, before anything is scored."""
    return f"{LOADING} {name}"


def notebook_progress() -> Progress | None:
    """A line that counts up, in a notebook; None elsewhere, where the command line has its own display."""
    shell = getattr(builtins, "get_ipython", None)
    in_notebook = shell is not None and type(shell()).__name__ == "ZMQInteractiveShell"
    return write_line(sys.stderr) if in_notebook else None


def write_line(stream: TextIO) -> Progress:
    """Progress as one line that is written over, and ended when all is done."""
    last = -1, ""

    def tell(step: str, done: int, total: int) -> None:
        nonlocal last
        percent = 100 * done // total if total else 100
        if (percent, step) == last:
            return
        last = percent, step
        end = "\n" if done >= total else ""
        stream.write(f"\r{step}: {percent}% ({done:,} of {total:,}){end}")
        stream.flush()

    return tell
