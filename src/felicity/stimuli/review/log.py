"""An append-only log of JSON lines, each chained to the last by its hash.

A line holds its number, its time, what happened, the hash of the line before it, and its own hash over
all of these. A line that is changed, left out or put elsewhere breaks the chain from there on. A line
that a kill cut short was never acknowledged, and is taken off by the next writer. What a chain cannot
show is that whole lines were cut off at the end: note the last hash, and pass it to `verify_log`.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors

START = "0" * 64
Event = dict[str, Any]


@dataclass(frozen=True)
class LogCheck:
    """Whether a log is intact: how many lines, the last hash, and the first thing that is wrong."""

    lines: int
    last: str
    problem: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem


class Log:
    """A log on disk that several processes may write to, one line at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(str(path) + ".lock")
        self._events: list[Event] = []
        self._position = 0

    @contextmanager
    def writing(self) -> Iterator[list[Event]]:
        """Hold the lock, so that nobody else appends; gives every event so far, read from the disk."""
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._cut_torn_line()
            yield self.read()

    def append(self, kind: str, content: Mapping[str, Any]) -> Event:
        """Add an event and store it on disk; the lock is taken unless it is already held."""
        return self.append_all([(kind, content)])[0]

    def append_all(self, new: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Add events in one write; a process killed meanwhile leaves some of them, in order."""
        with self.writing() as events:
            first = len(events)
            for kind, content in new:
                event: Event = {
                    "n": len(events) + 1,
                    "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                    "event": kind,
                    **content,
                    "previous": events[-1]["hash"] if events else START,
                }
                event["hash"] = hash_event(event)
                events.append(event)
            added = events[first:]
            lines = b"".join((json.dumps(event, ensure_ascii=False) + "\n").encode() for event in added)
            try:
                with disk_errors(self.path), self.path.open("ab") as handle:
                    handle.write(lines)
                    handle.flush()
                    os.fsync(handle.fileno())
            except BaseException:
                # What may be half on the disk is read again, or cut off, by the next call.
                del events[first:]
                raise
            self._position += len(lines)
            return added

    def read(self) -> list[Event]:
        """Every event so far; only what is new is read from the disk.

        Raises BadInput if the chain is broken.
        """
        if not self.path.exists():
            return self._events
        with self.path.open("rb") as handle:
            handle.seek(0, os.SEEK_END)
            if handle.tell() < self._position:
                raise BadInput(
                    f"{self.path} is shorter than it was: lines were cut off; restore the file from a copy."
                )
            handle.seek(self._position)
            new = handle.read()
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.splitlines():
            number = len(self._events) + 1
            problem = _find_problem(line, number, self._events[-1]["hash"] if self._events else START)
            if problem:
                raise BadInput(
                    f"{self.path}, line {number}: {problem}; restore the file from a copy "
                    "(`felicity stimuli check` checks it)."
                )
            self._events.append(json.loads(line))
        self._position += len(whole)
        return self._events

    def _cut_torn_line(self) -> None:
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb+") as handle:
            handle.seek(-1, os.SEEK_END)
            if handle.read(1) == b"\n":
                return
            handle.seek(0)
            handle.truncate(handle.read().rfind(b"\n") + 1)


def hash_event(event: Mapping[str, Any]) -> str:
    """The hash of all of a line but its own hash."""
    plain = {name: value for name, value in event.items() if name != "hash"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def verify_log(path: Path, *, last: str | None = None) -> LogCheck:
    """Follow the chain from the first line; `last` is a hash noted earlier that must be in it.

    Raises BadInput if the file cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    previous, number, hashes = START, 0, set[str]()
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        torn = not line.endswith(b"\n")
        problem = (
            "the last line breaks off: a write was interrupted"
            if torn
            else _find_problem(line, number, previous)
        )
        if problem:
            return LogCheck(number - 1, previous, f"line {number}: {problem}")
        previous = json.loads(line)["hash"]
        hashes.add(previous)
    if last is not None and last not in hashes:
        return LogCheck(number, previous, f"no line has the hash {last}: lines are missing at the end")
    return LogCheck(number, previous)


def _find_problem(line: bytes, number: int, previous: str) -> str:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(event, dict) or "hash" not in event:
        return "no hash"
    if event.get("hash") != hash_event(event):
        return "changed: its hash is not that of its content"
    if event.get("previous") != previous:
        return "does not follow the line before it: a line was changed, left out or moved"
    return "" if event.get("n") == number else f"numbered {event.get('n')}"
