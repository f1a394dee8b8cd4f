"""A JSON or TOML file whose every complaint names its line and field."""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from felicity.core.errors import BadInput
from felicity.data.positions import Lines, Where, locate_json, locate_toml
from felicity.data.tables import read_plain

ENDINGS = (".toml", ".json")
DEEPEST = 40


@dataclass(frozen=True)
class Document:
    """What a file holds, and where in it."""

    path: Path
    content: dict[str, Any]
    lines: Lines

    def line(self, where: Where) -> int:
        """The line of a field, or of the nearest thing around it."""
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
        """The value of a field, which must be there and of a kind."""
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
        """A text that is not empty."""
        value = str(self.get(where, str, what)).strip()
        if not value:
            self.fail(where, f"is empty; it should be {what}")
        return value

    def texts(self, where: Where, what: str = "a list of texts") -> list[str]:
        """A list of texts, which may be empty texts."""
        values = self.get(where, list, what)
        for place, value in enumerate(values):
            if not isinstance(value, str):
                self.fail((*where, place), "is not a text")
        return list(values)

    def only(self, where: Where, known: Sequence[str]) -> None:
        """Refuse fields that nothing reads, for they are misspelt more often than not."""
        for name in self.get(where, dict, "a table of fields") if where else self.content:
            if name not in known:
                self.fail((*where, name), f"is not a field felicity knows; known are {', '.join(known)}")


def is_document(path: Path) -> bool:
    """Whether a file is JSON or TOML by its name."""
    return "".join(path.suffixes[-2:]).removesuffix(".gz").endswith(ENDINGS)


def read_document(path: Path) -> Document:
    """A JSON or TOML file, plain or gzip.

    Raises BadInput naming the line where it is not well-formed.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file.")
    text = read_plain(path).replace("\r\n", "\n")
    toml = path.name.removesuffix(".gz").endswith(".toml")
    try:
        content = tomllib.loads(text) if toml else json.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        reason = str(error).split(" (at")[0]
        raise BadInput(f"{path}, line {line}: not TOML ({reason}).") from error
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: it is nested too deep or holds a number too long.") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path}, line 1: not an object with named fields.")
    return Document(path, content, locate_toml(text) if toml else locate_json(text))
