"""On which line of a JSON or TOML file each field stands, so that an error can name it.

The values are read by the standard parsers; these scanners only follow the same text once more.
"""

import json
import re
from collections.abc import Iterator

Where = tuple[str | int, ...]
Lines = dict[Where, int]

SPACE = re.compile(r"[ \t\n\r]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SCALAR = re.compile(r"[^,\]}\s]+")
HEADER = re.compile(r"\s*\[(\[?)([^\]]+)\]?\]")
KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
KEY_PART = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")


def locate_json(text: str) -> Lines:
    """The line of every value of a JSON text that is known to be well-formed.

    >>> locate_json('{"a":\\n [1,\\n 2]}')[("a", 1)]
    3
    """
    breaks = [0, *(found.end() for found in re.finditer("\n", text))]
    starts = dict(_walk_json(text))
    lines: Lines = {}
    line = 0
    for where, at in sorted(starts.items(), key=lambda pair: pair[1]):
        while line < len(breaks) and breaks[line] <= at:
            line += 1
        lines[where] = line
    return lines


def _walk_json(text: str) -> Iterator[tuple[Where, int]]:
    """Every value with the character it starts at, without recursion."""
    at = _skip(text, 0)
    stack: list[tuple[Where, str]] = []
    where: Where = ()
    while True:
        yield where, at
        mark = text[at]
        if mark in "{[":
            stack.append((where, mark))
            at = _skip(text, at + 1)
            count = 0
        else:
            at = _end(STRING if mark == '"' else SCALAR, text, at)
            at = _skip(text, at)
            count = _next(where)
        while stack and at < len(text) and text[at] in "}]":
            where = stack.pop()[0]
            at = _skip(text, at + 1)
            count = _next(where)
        if not stack:
            return
        if text[at] == ",":
            at = _skip(text, at + 1)
        home, kind = stack[-1]
        if kind == "{":
            end = _end(STRING, text, at)
            where = (*home, json.loads(text[at:end], strict=False))
            at = _skip(text, _skip(text, end) + 1)
        else:
            where = (*home, count)


def _next(where: Where) -> int:
    last = where[-1] if where else 0
    return last + 1 if isinstance(last, int) else 0


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at + 1


def locate_toml(text: str) -> Lines:
    """The line of every table header and key of a TOML text that is known to be well-formed.

    >>> locate_toml('[[items]]\\nn = 1\\n[[items]]\\nn = 2')[("items", 1, "n")]
    4
    """
    lines: Lines = {}
    counts: dict[Where, int] = {}
    home: Where = ()
    for number, statement in _statements(text):
        header = HEADER.match(statement)
        if header and not KEY.match(statement):
            home = _open(_split(header[2]), bool(header[1]), counts)
            lines[home] = number
            continue
        key = KEY.match(statement)
        if key:
            lines[(*home, *_split(key[1]))] = number
    return lines


def _open(parts: list[str], many: bool, counts: dict[Where, int]) -> Where:
    where: Where = ()
    for place, part in enumerate(parts):
        where = (*where, part)
        last = place == len(parts) - 1
        if last and many:
            counts[where] = counts.get(where, -1) + 1
        if where in counts:
            where = (*where, counts[where])
    return where


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Lines that begin a statement: not those within a bracket or a text of several lines."""
    depth = 0
    quote = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not depth and not quote:
            yield number, line
        depth, quote = _follow(line, depth, quote)


def _follow(line: str, depth: int, quote: str) -> tuple[int, str]:
    at = 0
    while at < len(line):
        if quote:
            if line[at] == "\\" and quote[0] == '"':
                at += 2
                continue
            if line.startswith(quote, at):
                at += len(quote)
                quote = ""
                continue
        elif line[at] in "\"'":
            quote = line[at] * 3 if line.startswith(line[at] * 3, at) else line[at]
            at += len(quote)
            continue
        elif line[at] == "#":
            break
        elif line[at] in "[{":
            depth += 1
        elif line[at] in "]}":
            depth -= 1
        at += 1
    return depth, quote if len(quote) == 3 else ""


def _split(dotted: str) -> list[str]:
    return [json.loads(part) if part[0] == '"' else part.strip("'") for part in KEY_PART.findall(dotted)]
