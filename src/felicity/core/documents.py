"""JSON and TOML files with the line of every field, so that error messages can name it."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from felicity.core.errors import BadInput
from felicity.core.files import read_text

Where = tuple[str | int, ...]
Lines = dict[Where, int]
T = TypeVar("T")

SPACE = re.compile(r"[ \t\n\r]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SCALAR = re.compile(r"[^,\]}\s]+")
HEADER = re.compile(r"\s*\[(\[?)([^\]]+)\]?\]")
KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
KEY_PART = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")
ENDINGS = (".toml", ".json")
DEEPEST = 40
# What is wrong with a field, by the names that pydantic gives to mistakes.
MISTAKES = {
    "missing": "is missing",
    "string_type": "is not a text",
    "too_short": "is empty",
    "tuple_type": "is not a list",
    "list_type": "is not a list",
    "dict_type": "is not a table of fields",
    "dataclass_type": "is not a table of fields",
    "unexpected_keyword_argument": "is not a known field",
}
# Half of a character in JSON; two of them in a row may make a complete one.
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class DuplicateField(ValueError):
    """A JSON object that gives one field two values."""


def load_json(text: str) -> Any:
    """The value of a JSON text, as `json.loads` reads it, but no object may have a field twice.

    Raises DuplicateField, and what `json.loads` raises.
    """
    content = json.loads(text, object_pairs_hook=_build_object)
    if ESCAPED_SURROGATE.search(text):
        json.dumps(content, ensure_ascii=False).encode()  # raises UnicodeEncodeError, which is a ValueError
    return content


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateField(f"has the field '{twice[:60]}' twice in one object")
    return fields


def locate_json(text: str) -> Lines:
    """The line of every value in a valid JSON text.

    >>> locate_json('{"a":\\n [1,\\n 2]}')[("a", 1)]
    3
    """
    breaks = [0, *(newline.end() for newline in re.finditer("\n", text))]
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
    match = SPACE.match(text, at)
    return match.end() if match else at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at + 1


def locate_toml(text: str) -> Lines:
    """The line of every table header and key in a valid TOML text.

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
    """Lines that start a statement, not those within brackets or multi-line strings."""
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


@dataclass(frozen=True)
class Document:
    """The content of a file, and the lines of its fields."""

    path: Path
    content: dict[str, Any]
    lines: Lines

    def line(self, where: Where) -> int:
        """The line of a field, or of its nearest ancestor."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)

    def fail(self, where: Where, problem: str) -> NoReturn:
        """Refuse the file, naming line and field.

        Raises BadInput.
        """
        field = ".".join(str(part + 1) if isinstance(part, int) else part for part in where)
        raise BadInput(f"{self.path}, line {self.line(where)}: '{field or 'the file'}' {problem}.")

    def get(self, where: Where, kind: type, what: str) -> Any:
        """The value of a field, which must exist and be of this type."""
        value: Any = self.content
        for part in where:
            if isinstance(part, int):
                value = value[part] if isinstance(value, list) and part < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            self.fail(where, f"is missing; it should be {what}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(where, f"is not {what}")
        return value

    def text(self, where: Where, what: str = "a text") -> str:
        """A non-empty text."""
        value = str(self.get(where, str, what)).strip()
        if not value:
            self.fail(where, f"is empty; it should be {what}")
        return value

    def texts(self, where: Where, what: str = "a list of texts") -> list[str]:
        """A list of texts, which may be empty."""
        values = self.get(where, list, what)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self.fail((*where, index), "is not a text")
        return list(values)

    def only(self, where: Where, allowed: Sequence[str]) -> None:
        """Refuse unknown fields, since they are usually misspelt."""
        for name in self.get(where, dict, "a table of fields") if where else self.content:
            if name not in allowed:
                self.fail((*where, name), f"is not a known field; known are {', '.join(allowed)}")

    def build(self, kind: type[T]) -> T:
        """The content as a dataclass, whose annotations say what each field must be; pydantic checks it.

        Raises BadInput naming the line and the field that is wrong.
        """
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(kind).validate_python(self.content)
        except ValidationError as error:
            first = error.errors()[0]
            problem = MISTAKES.get(first["type"]) or first["msg"].replace("Input should", "should")
            self.fail(first["loc"], problem)


@cache
def read_packaged_toml(package: str, name: str) -> dict[str, Any]:
    """The content of a TOML file that belongs to a package; callers must not change it."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


def read_packaged_folder(package: str, folder: str) -> list[dict[str, Any]]:
    """The contents of the TOML files in a folder of a package, by name; callers must not change them."""
    names = sorted(path.name for path in (files(package) / folder).iterdir() if path.name.endswith(".toml"))
    return [read_packaged_toml(package, f"{folder}/{name}") for name in names]


def is_document(path: Path) -> bool:
    """Whether a file is JSON or TOML by its name."""
    return "".join(path.suffixes[-2:]).removesuffix(".gz").endswith(ENDINGS)


def read_document(path: Path) -> Document:
    """A JSON or TOML file, plain or gzipped.

    Raises BadInput naming the line if it is not valid.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file.")
    text = read_text(path).replace("\r\n", "\n")
    if not text.strip():
        raise BadInput(f"{path} is empty.")
    return parse_document(path, text)


def parse_document(path: Path, text: str) -> Document:
    """The JSON or TOML text of a file, by the file's name.

    Raises BadInput naming the line if it is not valid.
    """
    toml = path.name.removesuffix(".gz").endswith(".toml")
    try:
        content = tomllib.loads(text) if toml else load_json(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"line (\d+)", str(error))
        line = int(match[1]) if match else text.count("\n") + 1
        reason = str(error).split(" (at")[0]
        raise BadInput(f"{path}, line {line}: not TOML ({reason}).") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from error
    except DuplicateField as error:
        raise BadInput(f"{path} {error}; remove one of them.") from error
    except UnicodeEncodeError as error:
        raise BadInput(f"{path} contains half of a character (a lone surrogate); correct it.") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read: it is nested too deeply or has a number that is too long."
        ) from error
    if not isinstance(content, dict):
        raise BadInput(f"{path}, line 1: not an object with named fields.")
    return Document(path, content, locate_toml(text) if toml else locate_json(text))
