"""What the commands print: results to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import polars as pl

# Into a file or a pipe nothing is folded: a program, or `less -S`, may be reading.
PIPE_WIDTH = 240
out = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_rows(rows: list[dict[str, Any]], *, right: tuple[str, ...] = ()) -> None:
    """A plain table; `right` names the columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in rows[0] if rows else ():
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_plain(value) for value in row.values()))
    out.print(table)


def print_accuracy(estimates: "pl.DataFrame", level: str, *, measure: str) -> None:
    """Accuracy of one level with its intervals."""
    part = estimates.filter(level=level, measure=measure)
    rows = [
        {
            level: row["name"],
            "n": row["n"],
            "accuracy": f"{100 * row['accuracy']:.1f}",
            "95% interval": f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
            "ties": row["ties"],
        }
        for row in part.iter_rows(named=True)
    ]
    print_rows(rows, right=("n", "accuracy", "95% interval", "ties"))


@contextmanager
def progress_bar(label: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error that is told (done, total); in a log, a line every tenth of the way."""
    if quiet:
        yield None
        return
    if not err.is_terminal:
        yield _tenths(label)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def step_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar for long preparations, told (step, done, total); each new step is a bar of its own."""
    if quiet:
        yield None
        return
    if not err.is_terminal:
        yield _steps()
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    tasks: dict[str, TaskID] = {}
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=err) as bar:

        def update(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=None)
            bar.update(tasks[step], completed=done, total=total or None)

        yield update


@contextmanager
def named_bar(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """One bar over many parts, told (part, done, total); in a log, a line a part."""
    if quiet:
        yield None
        return
    if not err.is_terminal:
        yield _parts()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as bar:
        task = bar.add_task("", total=None)
        yield lambda part, done, total: bar.update(task, description=part, completed=done, total=total)


def _parts() -> Callable[[str, int, int], None]:
    told = ""

    def tell(part: str, done: int, total: int) -> None:
        nonlocal told
        if part != told and done < total:
            told = part
            err.print(f"{part}: {100 * done // total}% ({done:,} of {total:,})", soft_wrap=True, markup=False)

    return tell


def _steps() -> Callable[[str, int, int], None]:
    told: set[str] = set()

    def tell(step: str, _done: int, _total: int) -> None:
        if step not in told:
            told.add(step)
            err.print(f"{step} ...", soft_wrap=True)

    return tell


def _tenths(label: str) -> Callable[[int, int], None]:
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        tenth = 10 * done // total if total else 0
        if tenth > told:
            told = tenth
            err.print(f"{label}: {100 * done // total}% ({done:,} of {total:,})", soft_wrap=True)

    return tell


def _plain(value: Any) -> str:
    from rich.markup import escape

    if value is None:
        return ""
    return escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
