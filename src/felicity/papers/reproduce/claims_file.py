"""Reading claims files: TOML in, a Paper out, errors with line numbers.

Figures of a table are written as the table stands in the paper, one cell per claim (`[[table]]`); figures of
the text one by one (`[[claim]]`). docs/studies/reproduce.md describes every field.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NoReturn

from felicity.core.documents import read_document
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text
from felicity.papers.reproduce.claims import (
    EXPECTED,
    HOLDS,
    SLIP,
    Claim,
    Paper,
    PaperTable,
    Printed,
    shorten_title,
)

PAPERS = Path(str(files("felicity.papers").joinpath("published")))
PAPER_KEYS = {"paper", "title", "citation", "note", "sums", "inputs", "claim", "table"}
SHARED_KEYS = {
    "id", "group", "compute", "arguments", "inputs", "slip", "corrected", "run", "hours", "tolerance",
    "because", "read_in",
}  # fmt: skip
CLAIM_KEYS = SHARED_KEYS | {"where", "printed", "expected", "why", "instead", "model"}
TABLE_KEYS = SHARED_KEYS | {"title", "columns", "rows", "groups", "differs"}
DIFFERS_KEYS = {"row", "column", "expected", "why", "instead"}
HEADER = re.compile(r"^\[\[?(?P<name>[A-Za-z_.]+)\]?\]\s*(?:#.*)?$")
SUM_LINE = re.compile(r"^(?P<digest>[0-9a-f]{64}) [ *](?P<path>\S.*)$")
TYPES: tuple[tuple[tuple[str, ...], Any, str], ...] = (
    (
        ("id", "where", "title", "group", "compute", "run", "model", "because", "why", "read_in"),
        str,
        "a text in quotation marks",
    ),
    (("arguments", "slip", "corrected", "groups"), dict, "a table in braces"),
    (("tolerance", "hours"), (int, float), "a number"),
    (("differs",), list, "a list; write [[table.differs]]"),
)


def list_papers() -> list[str]:
    """Names of the papers whose claims are included in felicity."""
    return sorted(path.stem for path in PAPERS.glob("*.toml"))


def read_paper(name: str) -> Paper:
    """The claims of a paper by name, or from a claims file.

    Raises UnknownName, or BadInput naming the line that cannot be used.
    """
    if name.endswith(".toml"):
        return read_claims(Path(name))
    if name not in list_papers():
        raise UnknownName(
            "paper", name, list_papers(), hint="see `felicity reproduce list`, or give a .toml claims file"
        )
    return read_claims(PAPERS / f"{name}.toml")


def read_claims(path: Path) -> Paper:
    """Read a claims file.

    Raises BadInput naming the line that cannot be used.
    """
    return _Reader(path, read_text(path)).read(read_document(path).content)


class _Reader:
    """Builds a Paper and keeps the line of each part, for messages."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        self.headers = [
            (match["name"], number)
            for number, line in enumerate(self.lines, start=1)
            if (match := HEADER.match(line.strip()))
        ]
        self.inputs: dict[str, str] = {}

    def read(self, content: dict[str, Any]) -> Paper:
        self.refuse_unknown(content, PAPER_KEYS, 1)
        for name in ("paper", "title"):
            if not isinstance(content.get(name), str) or not content[name]:
                self.refuse(1, f'a claims file begins with {name} = "...", and this one does not')
        self.inputs = self.read_inputs(content)
        tables, claims = [], []
        for entry, line in zip(self.blocks(content, "table"), self.lines_of("table"), strict=False):
            table, cells = self.read_table(entry, line)
            tables.append(table)
            claims += cells
        for entry, line in zip(self.blocks(content, "claim"), self.lines_of("claim"), strict=False):
            claims.append(self.read_claim(entry, line))
        if not claims:
            self.refuse(1, "there is no [[claim]] and no [[table]]; add at least one")
        seen: dict[str, int] = {}
        for claim in claims:
            if claim.id in seen:
                self.refuse(
                    claim.line, f"the id '{claim.id}' is taken by line {seen[claim.id]}; choose another"
                )
            seen[claim.id] = claim.line
        return Paper(
            name=content["paper"],
            title=content["title"],
            path=self.path,
            citation=str(content.get("citation", "")),
            note=str(content.get("note", "")),
            inputs=self.inputs,
            tables=tuple(tables),
            claims=tuple(claims),
        )

    def read_inputs(self, content: dict[str, Any]) -> dict[str, str]:
        """The sha256 of every input: `[inputs]`, and files that sha256sum wrote."""
        found: dict[str, str] = {}
        sums = content.get("sums", [])
        if not isinstance(sums, list):
            self.refuse(self.line_of_key("sums", 1), "sums is a list of files that sha256sum wrote")
        for name in sums:
            listed = self.path.parent / str(name)
            for number, line in enumerate(read_text(listed).splitlines(), start=1):
                match = SUM_LINE.match(line)
                if match is None and line.strip():
                    raise BadInput(f"{listed}, line {number}: not a line that sha256sum writes.")
                if match is not None:
                    found[match["path"]] = match["digest"]
        given = content.get("inputs", {})
        if not isinstance(given, dict):
            self.refuse(self.line_of_key("inputs", 1), "[inputs] is a table of paths and their sha256")
        for name, digest in given.items():
            if not re.fullmatch(r"[0-9a-f]{64}", str(digest)):
                at = self.line_with(f'"{name}"', 1)
                self.refuse(
                    at, f"the sha256 of '{name}' is not 64 hexadecimal digits; run sha256sum on the file"
                )
            found[name] = digest
        return found

    def read_claim(self, entry: dict[str, Any], line: int) -> Claim:
        self.refuse_unknown(entry, CLAIM_KEYS, line)
        self.refuse_types(entry, line)
        for name in ("id", "where", "printed"):
            if not isinstance(entry.get(name), str) or not entry[name]:
                self.refuse(self.line_of_key(name, line), f'a claim needs {name} = "...", in quotation marks')
        return self.build(
            entry,
            entry,
            line=line,
            id=entry["id"],
            where=entry["where"],
            printed=entry["printed"],
            arguments=dict(entry.get("arguments", {})),
            model=entry.get("model"),
            group=entry.get("group", ""),
        )

    def read_table(self, entry: dict[str, Any], line: int) -> tuple[PaperTable, list[Claim]]:
        self.refuse_unknown(entry, TABLE_KEYS, line)
        self.refuse_types(entry, line)
        for name in ("id", "title", "columns", "rows"):
            if not entry.get(name):
                self.refuse(line, f"a [[table]] needs {name}")
        columns, rows = (self.named(entry[name], name, line) for name in ("columns", "rows"))
        differs = self.read_differs(entry, line, {c["name"] for c in columns}, {r["name"] for r in rows})
        claims = []
        for row in rows:
            here = self.line_with(f'"{row["name"]}"', line)
            cells = row.get("cells")
            if not isinstance(cells, list) or len(cells) != len(columns):
                count = len(cells) if isinstance(cells, list) else 0
                self.refuse(
                    here, f"row '{row['name']}' has {count} cells, but there are {len(columns)} columns"
                )
            for column, printed in zip(columns, cells, strict=True):
                if printed == "":
                    continue
                arguments = dict(entry.get("arguments", {})) | _rest(column) | _rest(row)
                special, at = differs.pop((row["name"], column["name"]), ({}, here))
                claims.append(
                    self.build(
                        entry,
                        special,
                        line=at,
                        id=f"{entry['id']}/{row['name']}/{column['name']}",
                        where=f"{shorten_title(entry['title'])}, {row['name']}, {column['name']}",
                        printed=printed,
                        arguments=arguments,
                        model=arguments.get("model"),
                        group=entry.get("groups", {}).get(row["name"], entry.get("group", "")),
                        table=entry["id"],
                        row=row["name"],
                        column=column["name"],
                    )
                )
        for (row_name, column_name), (_, at) in differs.items():
            self.refuse(at, f"the cell of '{row_name}' and '{column_name}' is empty, so nothing can differ")
        names = {
            name: tuple(part["name"] for part in parts)
            for name, parts in (("rows", rows), ("columns", columns))
        }
        return PaperTable(
            id=entry["id"], title=entry["title"], rows=names["rows"], columns=names["columns"]
        ), claims

    def read_differs(
        self, entry: dict[str, Any], line: int, columns: Collection[str], rows: Collection[str]
    ) -> dict[tuple[str, str], tuple[dict[str, Any], int]]:
        """The cells of a table that are expected to differ, with the line of each."""
        following = [at for name, at in self.headers if name == "table" and at > line]
        places = [
            at for name, at in self.headers
            if name == "table.differs" and line < at < (following[0] if following else len(self.lines) + 1)
        ]  # fmt: skip
        found: dict[tuple[str, str], tuple[dict[str, Any], int]] = {}
        for special, at in zip(entry.get("differs", []), chain(places, repeat(line)), strict=False):
            self.refuse_unknown(special, DIFFERS_KEYS, at)
            for name, known in (("row", rows), ("column", columns)):
                if special.get(name) not in known:
                    here = self.line_of_key(name, at)
                    self.refuse(here, f"table '{entry['id']}' has no {name} '{special.get(name)}'")
            found[special["row"], special["column"]] = (special, at)
        return found

    def build(
        self, shared: dict[str, Any], own: dict[str, Any], *, line: int, printed: Any, **given: Any
    ) -> Claim:
        """A claim from the fields that its table gives for all cells and those of this cell."""
        expected, why = own.get("expected", HOLDS), str(own.get("why", ""))
        if expected not in EXPECTED:
            at = self.line_of_key("expected", line)
            self.refuse(at, f"'{expected}' is not a status; expected is one of: {', '.join(EXPECTED)}")
        if expected != HOLDS and not why:
            self.refuse(line, f"'{given['id']}' is expected not to hold as printed; say why")
        if expected == SLIP and "slip" not in shared:
            self.refuse(line, f"'{given['id']}' needs slip, the arguments that give the authors' figure")
        if not ({"compute", "run"} & set(shared)):
            self.refuse(
                line, f"'{given['id']}' has neither compute nor run; name the function that computes it"
            )
        if "run" in shared and not given["model"]:
            self.refuse(line, f"'{given['id']}' is run with a model; name it with model")
        tolerance = shared.get("tolerance")
        if tolerance is not None and not shared.get("because"):
            at = self.line_of_key("tolerance", line)
            self.refuse(at, "a tolerance other than half the last digit needs an argument; add because")
        figure = self.figure(printed, "printed", line)
        instead = self.figure(own["instead"], "instead", line) if "instead" in own else None
        return Claim(
            line=line,
            printed=figure,
            instead=instead,
            expected=expected,
            why=why,
            compute=shared.get("compute"),
            inputs=self.choose_inputs(shared.get("inputs", ["*"]), line) if "compute" in shared else (),
            slip=shared.get("slip"),
            corrected=shared.get("corrected"),
            run=shared.get("run"),
            hours=shared.get("hours"),
            tolerance=tolerance,
            because=shared.get("because", ""),
            read_in=shared.get("read_in", ""),
            **given,
        )

    def figure(self, text: Any, name: str, line: int) -> Printed:
        try:
            return Printed.parse(text)
        except (ValueError, TypeError, AttributeError):
            at = self.line_of_key(name, line)
            self.refuse(at, f'{name} is {text!r}, not a figure such as "0.94", "22,326", "< .001" or "yes"')

    def choose_inputs(self, patterns: Any, line: int) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            matching = [name for name in self.inputs if fnmatchcase(name, str(pattern))]
            if not matching and self.inputs:
                self.refuse(
                    self.line_of_key("inputs", line),
                    f"no input matches '{pattern}'; list it in [inputs] with its sha256",
                )
            found |= dict.fromkeys(matching)
        return tuple(found)

    def named(self, parts: Any, what: str, line: int) -> list[dict[str, Any]]:
        if not isinstance(parts, list):
            self.refuse(self.line_of_key(what, line), f"{what} is not a list")
        whole = [{"name": part} if isinstance(part, str) else part for part in parts]
        for part in whole:
            if not isinstance(part, dict) or not isinstance(part.get("name"), str):
                self.refuse(self.line_of_key(what, line), f"each of {what} needs a name")
        names = [part["name"] for part in whole]
        for name in names:
            if names.count(name) > 1:
                self.refuse(self.line_with(f'"{name}"', line), f"{what} has '{name}' twice")
        return whole

    def blocks(self, content: dict[str, Any], name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = content.get(name, [])
        if not isinstance(found, list):
            self.refuse(self.line_of_key(name, 1), f"write [[{name}]] with two brackets")
        return found

    def lines_of(self, name: str) -> Iterator[int]:
        """The first lines of the blocks with a name; 1 for one that is not written as a block."""
        return chain((line for header, line in self.headers if header == name), repeat(1))

    def line_of_key(self, key: str, start: int) -> int:
        """The line of `key = ...` in the block that begins at `start`; else that of the block."""
        for number in range(start, len(self.lines) + 1):
            line = self.lines[number - 1].strip()
            if number > start and HEADER.match(line):
                break
            if re.match(rf"{re.escape(key)}\s*=", line):
                return number
        return start

    def line_with(self, text: str, start: int) -> int:
        return next((n for n in range(start, len(self.lines) + 1) if text in self.lines[n - 1]), start)

    def refuse_unknown(self, entry: Mapping[str, Any], known: Collection[str], line: int) -> None:
        for name in entry:
            if name not in known:
                advice = UnknownName("field", name, known)
                raise BadInput(f"{self.path}, line {self.line_of_key(name, line)}: {_lower(str(advice))}")

    def refuse_types(self, entry: Mapping[str, Any], line: int) -> None:
        for names, kind, what in TYPES:
            for name in names:
                given = entry.get(name)
                if given is not None and (isinstance(given, bool) or not isinstance(given, kind)):
                    self.refuse(self.line_of_key(name, line), f"{name} is not {what}")

    def refuse(self, line: int, reason: str) -> NoReturn:
        raise BadInput(f"{self.path}, line {line}: {reason}.")


def _rest(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("name", "cells")}


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
