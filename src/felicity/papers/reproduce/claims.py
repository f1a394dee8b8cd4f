"""The claims of a paper: printed figures with their precision, tables, and the statuses of a check."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

HOLDS = "holds"
SLIP = "holds with the authors' slip"
FAILS = "does not hold"
NOT_RUN = "not run"
CHANGED = "input changed"
EXPECTED = (HOLDS, SLIP, FAILS)

NUMBER = re.compile(
    r"(?P<sign>[<>])?\s*(?P<number>[+-]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)\s*%?$", re.IGNORECASE
)
WORDS = {"yes": True, "no": False}


@dataclass(frozen=True)
class Printed:
    """A printed figure: its value, the unit of its last digit, and a sign if it is a bound."""

    text: str
    value: float
    unit: float
    sign: str = ""

    @classmethod
    def parse(cls, text: str) -> "Printed":
        """From `.940`, `22,326`, `1.9e-8`, `< .001`, `yes`.

        Raises ValueError if the text is not a figure.

        >>> Printed.parse(".940").unit
        0.001
        """
        if text.strip().lower() in WORDS:
            return cls(text, float(WORDS[text.strip().lower()]), 0.0, "word")
        match = NUMBER.match(text.strip())
        if match is None:
            raise ValueError(text)
        number = Decimal(match["number"].replace(",", ""))
        exponent = number.as_tuple().exponent
        return cls(text, float(number), float(Decimal(1).scaleb(int(exponent))), match["sign"] or "")

    def matches(self, computed: float, tolerance: float | None = None) -> bool:
        """Whether a computed figure matches the printed one: by default within half its last digit."""
        if self.sign == "<":
            return computed < self.value
        if self.sign == ">":
            return computed > self.value
        reach = self.unit / 2 if tolerance is None else tolerance
        # A small tolerance for binary fractions: 70.05 is printed as 70.0 or as 70.1.
        return abs(computed - self.value) <= reach * (1 + 1e-6) + 1e-12 * abs(self.value)

    def show(self, computed: float) -> str:
        """A computed figure in the format of the printed one, with one more digit."""
        if self.sign == "word":
            return "yes" if computed else "no"
        if "e" in self.text.lower() or (computed and abs(computed) < self.unit / 100):
            return f"{computed:.4g}"
        if float(computed).is_integer() and self.unit >= 1:
            return f"{computed:,.0f}"
        digits = max(0, -Decimal(repr(self.unit)).adjusted()) + 1
        return f"{computed:,.{digits}f}"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One figure of a paper.

    compute: the function that computes it from `inputs`, called with `arguments`. slip: other arguments
    under which an error of the authors gives the printed figure. corrected: arguments of a further reading
    that is shown beside it. run: the function that computes it with a model; `model` is its name in the
    paper. instead: what the data give if the claim does not hold. read_in: where the printed figure was
    read, if not in the paper itself.
    """

    id: str
    where: str
    printed: Printed
    line: int
    compute: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    slip: Mapping[str, Any] | None = None
    corrected: Mapping[str, Any] | None = None
    run: str | None = None
    model: str | None = None
    hours: float | None = None
    expected: str = HOLDS
    why: str = ""
    instead: Printed | None = None
    tolerance: float | None = None
    because: str = ""
    read_in: str = ""
    group: str = ""
    table: str | None = None
    row: str | None = None
    column: str | None = None

    @property
    def needs(self) -> str:
        """What checking the claim needs: data, or a model and the hours it takes."""
        if self.compute is not None:
            return "data"
        return f"model {self.model}" + (f", about {self.hours:g} h" if self.hours else "")


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of the paper: its title and the names of its rows and columns, in order."""

    id: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A claims file that has been read. inputs: the sha256 of each input file, by path."""

    name: str
    title: str
    path: Path
    citation: str = ""
    note: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[PaperTable, ...] = ()
    claims: tuple[Claim, ...] = ()


def shorten_title(title: str) -> str:
    """`Table 2` of `Table 2: accuracy`; a title without a number as it is."""
    first = title.split(":")[0]
    return first if re.fullmatch(r"(Table|Figure) \S+", first) else title
