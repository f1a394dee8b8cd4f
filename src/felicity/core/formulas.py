"""The prediction language of SyntaxGym: comparisons of region surprisals, joined by `&` and `|`.

    formula   a comparison, then any number of  & comparison  or  | comparison, evaluated left to right
    compare   sum < sum,  sum > sum,  sum = sum
    sum       terms joined by + and -
    term      (6;%match%)  a region of a condition      (*;%match%)  all regions of it
              a number, or a formula or sum in ( ) or [ ]

`+ -` bind most closely, then `< > =`, then `& |`. A region is given by its number or its name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from felicity.core.errors import BadInput

ALL_REGIONS = "*"
TOKEN = re.compile(
    r"\s*(?:(?P<region>\(\s*(?P<name>[^;()\[\]%&|<>=]+?)\s*;\s*%(?P<condition>[^%]*)%\s*\))"
    r"|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<mark>[-+<>=&|()\[\]]))"
)
CLOSING = {"(": ")", "[": "]"}
COMPARISONS = ("<", ">", "=")
CONNECTIVES = ("&", "|")
DEEPEST = 100
LONGEST = 600


@dataclass(frozen=True)
class Region:
    """The surprisal of one region of one condition; `*` is all of them together."""

    region: str
    condition: str


@dataclass(frozen=True)
class RegionNumber:
    """A number as written."""

    value: float


@dataclass(frozen=True)
class RegionOperation:
    """Two operands and their operator."""

    mark: str
    left: "Part"
    right: "Part"


Part = Region | RegionNumber | RegionOperation


def parse_prediction(text: str) -> RegionOperation:
    """A prediction formula as a tree.

    Raises BadInput that shows where the formula is wrong.

    >>> parse_prediction("(2;%a%) < (2;%b%)").mark
    '<'
    """
    parser = _Parser(text)
    part = parser.formula(0)
    parser.finish()
    if not isinstance(part, RegionOperation) or part.mark in "+-":
        raise parser.error("nothing is compared; write < > or = between two sums", 0)
    return part


def list_regions(part: Part) -> Iterator[Region]:
    """Every region that a formula mentions.

    >>> [place.condition for place in list_regions(parse_prediction("(2;%a%) < (2;%b%)"))]
    ['a', 'b']
    """
    if isinstance(part, Region):
        yield part
    elif isinstance(part, RegionOperation):
        yield from list_regions(part.left)
        yield from list_regions(part.right)


def is_claim(part: Part) -> bool:
    """Whether a part is true or false, rather than a number."""
    return isinstance(part, RegionOperation) and part.mark not in "+-"


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._scan())
        self.position = 0
        if len(self.tokens) > LONGEST:
            raise self.error(f"more than {LONGEST} regions, numbers and marks", 0)

    def formula(self, depth: int) -> Part:
        if depth > DEEPEST:
            raise self.error("brackets are nested too deeply", self._start())
        left = self.comparison(depth)
        while self._mark() in CONNECTIVES:
            at, mark = self._start(), self._take()
            right = self.comparison(depth)
            for part in (left, right):
                if not is_claim(part):
                    raise self.error(f"'{mark}' joins comparisons, not numbers", at)
            left = RegionOperation(mark, left, right)
        return left

    def comparison(self, depth: int) -> Part:
        left = self.sum(depth)
        if self._mark() not in COMPARISONS:
            return left
        at, mark = self._start(), self._take()
        right = self.sum(depth)
        if is_claim(left) or is_claim(right):
            raise self.error(f"'{mark}' compares numbers, not comparisons", at)
        if self._mark() in COMPARISONS:
            raise self.error("a second comparison; join two comparisons with &", self._start())
        return RegionOperation(mark, left, right)

    def sum(self, depth: int) -> Part:
        left = self.term(depth)
        while self._mark() in ("+", "-"):
            at, mark = self._start(), self._take()
            right = self.term(depth)
            if is_claim(left) or is_claim(right):
                raise self.error(f"'{mark}' needs numbers on both sides", at)
            left = RegionOperation(mark, left, right)
        return left

    def term(self, depth: int) -> Part:
        if self.position == len(self.tokens):
            raise self.error("something is missing at the end", len(self.text))
        at = self._start()
        token = self.tokens[self.position]
        if token["region"]:
            self.position += 1
            if not token["condition"].strip():
                raise self.error("a region without a condition; write (1;%condition%)", at)
            return Region(token["name"].strip(), token["condition"].strip())
        if token["number"]:
            self.position += 1
            return RegionNumber(float(token["number"]))
        mark = self._take()
        if mark == "-":
            return RegionOperation("-", RegionNumber(0.0), self.term(depth))
        if mark not in CLOSING:
            raise self.error(f"'{mark}' is where a region or number should be", at)
        part = self.formula(depth + 1)
        if self._mark() != CLOSING[mark]:
            where = self._start()
            raise self.error(f"'{CLOSING[mark]}' is missing for the '{mark}' at character {at + 1}", where)
        self._take()
        return part

    def finish(self) -> None:
        if self.position < len(self.tokens):
            raise self.error(f"'{self._mark() or 'this'}' follows a complete formula", self._start())

    def error(self, problem: str, at: int) -> BadInput:
        shown = self.text if len(self.text) <= 200 else self.text[:200] + "..."
        return BadInput(f"Formula '{shown}', character {at + 1}: {problem}.")

    def _scan(self) -> Iterator[re.Match[str]]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = TOKEN.match(self.text, at)
            if not match:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                raise self.error(f"'{self.text[at]}' is not part of a formula", at)
            yield match
            at = match.end()

    def _mark(self) -> str:
        return (self.tokens[self.position]["mark"] or "") if self.position < len(self.tokens) else ""

    def _start(self) -> int:
        if self.position == len(self.tokens):
            return len(self.text)
        token = self.tokens[self.position]
        return token.start() + len(token[0]) - len(token[0].lstrip())

    def _take(self) -> str:
        mark = self._mark()
        self.position += 1
        return mark
