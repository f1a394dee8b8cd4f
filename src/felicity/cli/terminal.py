"""Printing: results to standard output, everything else to standard error."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from felicity.core.progress import LOADING, Progress
from felicity.core.wording import decimal, format_interval, percent

if TYPE_CHECKING:
    import polars as pl

# Control characters move the cursor, recolour the terminal or rename its window; line breaks and tabs do not.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain_text(text: str) -> str:
    r"""A text whose control characters are escaped, safe to print to a terminal.

    >>> plain_text("red \x1b[31m")
    'red \\x1b[31m'
    """
    return CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class PlainConsole(Console):
    """A console that escapes the control characters in its output."""

    def render_str(self, text: str, **options: Any) -> Any:
        """Like rich's, with control characters escaped."""
        return super().render_str(plain_text(text), **options)


# Lines are not wrapped in a file or a pipe, which a program may read.
PIPE_WIDTH = 240
out = PlainConsole(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
err = PlainConsole(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # JSON itself escapes the control characters of ASCII, and no others.
    sys.stdout.write(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def print_rows(rows: list[dict[str, Any]], *, right: tuple[str, ...] = ()) -> None:
    """A plain table; `right` names the columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in rows[0] if rows else ():
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_plain(value) for value in row.values()))
    out.print(table)


def format_numbers(table: "pl.DataFrame", digits: int = 3) -> list[dict[str, Any]]:
    """The rows of a table for printing, its fractions rounded."""
    return [
        {name: decimal(value, digits) if isinstance(value, float) else value for name, value in row.items()}
        for row in table.iter_rows(named=True)
    ]


def print_accuracy(estimates: "pl.DataFrame", level: str, *, measure: str, score: str = "accuracy") -> None:
    """Accuracy of one level with its intervals; `score` is what the dataset calls it."""
    part = estimates.filter(level=level, measure=measure)
    rows = [
        {
            level: row["name"],
            "n": row["n"],
            "suites": row["suites"],
            score: percent(row["accuracy"]),
            "95% interval": format_interval(row["low"], row["high"], percent),
            "over": _units(row),
            "ties": row["ties"],
        }
        | ({"people": percent(row["people"])} if "people" in row else {})
        for row in part.iter_rows(named=True)
    ]
    print_rows(rows, right=("n", "suites", score, "95% interval", "ties", "people"))


def describe_units(row: dict[str, Any]) -> str:
    """How many items and suites an estimate is of, and which of them its interval is over."""
    if row["suites"] == 1:
        return f"{row['n']:,} items of one suite; interval over items, which says nothing about other suites"
    mean = "plain mean of the languages; " if _units(row) == "languages" else ""
    return f"{mean}{row['n']:,} items of {row['suites']:,} suites; interval over {_units(row)}"


def _units(row: dict[str, Any]) -> str:
    # Runs of earlier versions have 'Wilson', over items, or 'bootstrap over suites'.
    known = ("suites", "languages")
    return next((unit for unit in known if row["interval"].endswith(f"over {unit}")), "items")


@contextmanager
def progress_bar(label: str | None = None, *, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error; in a log, a line per tenth.

    Without a label it shows the name of each step, such as that of a model.
    """
    if quiet:
        yield None
        return
    if not err.is_terminal:
        yield log_progress(label)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=err) as bar:
        task = bar.add_task(label or "", total=None)

        def update(step: str, done: int, total: int) -> None:
            shown = step if label is None or step.startswith(LOADING) else label
            bar.update(task, description=shown, completed=done, total=total)

        yield update


@contextmanager
def step_bar(*, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar for long preparations, one bar per step."""
    if quiet:
        yield None
        return
    if not err.is_terminal:
        yield _steps()
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    tasks: dict[str, TaskID] = {}
    with Bar(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=err) as bar:

        def update(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=None)
            bar.update(tasks[step], completed=done, total=total or None)

        yield update


def _steps() -> Progress:
    told: set[str] = set()

    def tell(step: str, _done: int, _total: int) -> None:
        if step not in told:
            told.add(step)
            err.print(f"{step} ...", soft_wrap=True, markup=False)

    return tell


def log_progress(label: str | None = None) -> Progress:
    """Progress in a log: a line when a model is loaded, and a line per tenth of each part, to 100%.

    Without a label, every part has its own name and count.
    """
    told: dict[str, int] = {}
    loaded: set[str] = set()

    def tell(step: str, done: int, total: int) -> None:
        if step.startswith(LOADING):
            if step not in loaded:
                loaded.add(step)
                err.print(f"{step} ...", soft_wrap=True, markup=False)
            return
        name = label or step
        tenth = 10 * done // total if total else 10
        if tenth > told.get(name, 0):
            told[name] = tenth
            share = 100 * done // total if total else 100
            err.print(f"{name}: {share}% ({done:,} of {total:,})", soft_wrap=True, markup=False)

    return tell


def _plain(value: Any) -> str:
    from rich.markup import escape

    if value is None:
        return ""
    return escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
