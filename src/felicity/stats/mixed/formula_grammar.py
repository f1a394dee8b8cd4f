"""The grammar of formulas: names, numbers, operators and a list of functions, and nothing else.

Formulas come from command lines and study files, so none of their text is ever evaluated as Python. A side is
parsed into a tree; outside of function calls the operators combine terms (`a * b` is both and their
interaction), inside of them they calculate. R's precedence: `^`, unary minus, `:`, `* /`, `+ -`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from typing import TypeVar

from felicity.core.errors import BadInput

FACTORS = ("C", "factor", "as.factor")
FUNCTIONS = (
    "abs",
    "bs",
    "center",
    "exp",
    "I",
    "log",
    "log10",
    "log2",
    "poly",
    "scale",
    "sqrt",
    "standardize",
)
ROWWISE = ("abs", "cbind", "exp", "I", "log", "log10", "log2", "sqrt", *FACTORS)
"""Functions whose value in a row depends on that row alone."""

MOST_OPERATORS = 300
DEEPEST = 30
MOST_TERMS = 1_000
CLIP = 60
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<name>`[^`]+`|[^\W\d][\w.]*|\.(?!\d)[\w.]*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<operator>\*\*|[-+*/:^(),=])"
)


@dataclass(frozen=True)
class Name:
    """A column."""

    text: str


@dataclass(frozen=True)
class Number:
    """A number as written."""

    text: str


@dataclass(frozen=True)
class Call:
    """A function with its arguments, `poly(x, 2, raw = TRUE)`."""

    function: str
    arguments: tuple["Node", ...]
    options: tuple[tuple[str, "Node"], ...]


@dataclass(frozen=True)
class Operation:
    """An operator with one operand or two; `bracketed` if the source had brackets around it."""

    operator: str
    operands: tuple["Node", ...]
    bracketed: bool = False


Node = Name | Number | Call | Operation
Read = TypeVar("Read")


@dataclass(frozen=True)
class Atom:
    """A column or a call among the terms of a side, and its position in the text."""

    node: Name | Call
    start: int
    end: int


def parse_terms(side: str) -> list[Atom]:
    """The columns and calls in the terms of a right-hand side, from left to right.

    >>> [atom.node for atom in parse_terms("a * log(b)")]
    [Name(text='a'), Call(function='log', arguments=(Name(text='b'),), options=())]

    Raises BadInput for anything that is not a formula, naming the culprit.
    """
    parser = _Parser(side)
    parser.read_terms()
    return parser.atoms


def parse_value(expression: str) -> Node:
    """The tree of an expression that is calculated, such as the response `n - hits`.

    Raises BadInput for anything that is not a formula, naming the culprit.
    """
    return _Parser(expression).read_value()


def check_text(formula: str) -> None:
    """Refuse text that cannot be printed, and more of it than a formula can need.

    Raises BadInput.
    """
    shown = clip(formula)
    if any("\ud800" <= char <= "\udfff" for char in formula):
        raise BadInput(f"The formula '{shown}' has bytes that are not UTF-8 text; type it again.")
    if sum(char in "+-*/:^|" for char in formula) > MOST_OPERATORS:
        raise BadInput(f"The formula '{shown}' has more than {MOST_OPERATORS} operators; shorten it.")


def clip(text: str) -> str:
    """The beginning of a text, fit to be printed."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    return safe if len(safe) <= CLIP else safe[:CLIP] + "…"


def mask_quoted(text: str) -> str:
    """The text with quoted names blanked out, for finding brackets and bars by their place.

    >>> mask_quoted("`a|b` + c")
    '`___` + c'
    """
    return re.sub(r"`[^`]*`", lambda match: "`" + "_" * (len(match.group()) - 2) + "`", text)


def column_name(text: str) -> str:
    """A column's name without the quotes."""
    return text[1:-1] if text.startswith("`") else text


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    below: tuple[Node, ...] = ()
    if isinstance(node, Call):
        below = (*node.arguments, *(value for _, value in node.options))
    elif isinstance(node, Operation):
        below = node.operands
    for child in below:
        yield from walk(child)


def columns_in(side: str) -> list[str]:
    """The columns that the terms of a side read, each once.

    >>> columns_in("log(freq) * len + poly(surprisal, 2)")
    ['freq', 'len', 'surprisal']
    """
    nodes = [node for atom in parse_terms(side) for node in walk(atom.node)]
    return list(dict.fromkeys(column_name(node.text) for node in nodes if isinstance(node, Name)))


def write(node: Node) -> str:
    """A tree as R prints it: spaces around `+ - *`, none around `/ : ^`."""
    match node:
        case Name(text) | Number(text):
            return column_name(text)
        case Call(function, arguments, options):
            parts = [write(part) for part in arguments] + [f"{name} = {write(v)}" for name, v in options]
            return f"{function}({', '.join(parts)})"
        case Operation(operator, operands, bracketed):
            gap = " " if operator in "+-*" and len(operands) == 2 else ""
            inside = f"{gap}{operator}{gap}".join(map(write, operands))
            inside = operator + inside if len(operands) == 1 else inside
            return f"({inside})" if bracketed else inside


class _Parser:
    """Recursive descent over the tokens of one side."""

    def __init__(self, text: str) -> None:
        check_text(text)
        self.text = text
        self.tokens = list(self._tokenize())
        self.position = 0
        self.depth = 0
        self.atoms: list[Atom] = []

    def _tokenize(self) -> Iterator[tuple[str, str, int]]:
        at = 0
        while at < len(self.text):
            match = TOKEN.match(self.text, at)
            if match is None:
                raise BadInput(
                    f"'{clip(self.text[at])}' has no meaning in the formula '{clip(self.text)}'; use names, "
                    f"numbers, + - * / : ^ and functions such as log()."
                )
            if match.lastgroup != "space":
                yield str(match.lastgroup), match.group(), at
            at = match.end()

    def read_terms(self) -> None:
        count = self._sum_of_terms()
        self._expect_end()
        if count > MOST_TERMS:
            raise BadInput(f"'{clip(self.text)}' stands for more than {MOST_TERMS} terms; simplify it.")

    def read_value(self) -> Node:
        node = self._sum()
        self._expect_end()
        return node

    # What operators mean among terms: each method gives an upper bound of the number of terms.

    def _sum_of_terms(self) -> int:
        count, sign = 0, self._take("+", "-")
        while True:
            taken_out = sign == "-"
            if taken_out and self.depth and self._peek()[1] == "1":
                raise self._intercept_in_brackets()
            term = self._product_of_terms()
            count += 0 if taken_out else term
            sign = self._take("+", "-")
            if sign is None:
                return count
            while self._peek()[1] == "-" and sign == "+":
                sign = self._take("-")

    def _product_of_terms(self) -> int:
        count = self._interaction()
        while operator := self._take("*", "/"):
            other = self._interaction()
            count = count + other + count * other if operator == "*" else count + other
            self._check_count(count)
        return count

    def _interaction(self) -> int:
        count = self._power_of_terms()
        while self._take(":"):
            count *= self._power_of_terms()
            self._check_count(count)
        return count

    def _power_of_terms(self) -> int:
        count = self._term()
        while self._take("^", "**"):
            kind, text, _ = self._next()
            if kind != "number" or not text.isdigit() or len(text) > 2 or int(text) == 0:
                raise BadInput(
                    f"'^{clip(text)}' among the terms of '{clip(self.text)}' must be a small whole number; "
                    f"write I(...) to calculate."
                )
            count = (
                sum(comb(count, k) for k in range(1, min(int(text), count) + 1)) if count < 64 else 1 << 64
            )
            self._check_count(count)
        return count

    def _term(self) -> int:
        kind, text, start = self._next()
        if text == "(":
            return self._nested(self._sum_of_terms)
        if kind == "number":
            if text not in ("0", "1"):
                raise BadInput(
                    f"The number {clip(text)} stands alone in '{clip(self.text)}'; only 0 and 1 do, write "
                    f"I(...) to calculate."
                )
            if text == "0" and self.depth:
                raise self._intercept_in_brackets()
            return 1
        if kind != "name":
            raise self._unexpected(text)
        if self._peek()[1] == "(":
            call = self._call(text)
            if call.function == "cbind":
                raise BadInput("'cbind' is for a response of counts, on the left of '~'.")
            self.atoms.append(Atom(call, start, self._last_end()))
        else:
            self.atoms.append(Atom(Name(text), start, start + len(text)))
        return 1

    def _check_count(self, count: int) -> None:
        if count > MOST_TERMS:
            raise BadInput(f"'{clip(self.text)}' stands for more than {MOST_TERMS} terms; simplify it.")

    def _intercept_in_brackets(self) -> BadInput:
        return BadInput(f"The 0 or -1 that removes the intercept of '{clip(self.text)}' is in brackets.")

    # What operators mean inside of calls: arithmetic.

    def _sum(self) -> Node:
        node = self._product()
        while operator := self._take("+", "-"):
            node = Operation(operator, (node, self._product()))
        return node

    def _product(self) -> Node:
        node = self._signed()
        while operator := self._take("*", "/"):
            node = Operation(operator, (node, self._signed()))
        return node

    def _signed(self) -> Node:
        sign = self._take("-", "+")
        if sign is None:
            return self._power()
        return Operation(sign, (self._deeper(self._signed),))

    def _power(self) -> Node:
        node = self._value()
        if self._take("^", "**"):
            return Operation("^", (node, self._deeper(self._signed)))
        return node

    def _value(self) -> Node:
        kind, text, _ = self._next()
        if text == "(":
            inner = self._nested(self._sum)
            if isinstance(inner, Operation):
                return Operation(inner.operator, inner.operands, bracketed=True)
            return inner
        if kind == "number":
            return Number(text)
        if kind != "name":
            raise self._unexpected(text)
        return self._call(text) if self._peek()[1] == "(" else Name(text)

    def _call(self, function: str) -> Call:
        if function not in (*FUNCTIONS, *FACTORS, "cbind"):
            raise BadInput(
                f"'{clip(function)}' is not a function of formulas; there are {', '.join(FUNCTIONS)}, "
                f"{', '.join(FACTORS)} and cbind."
            )
        self._next()
        arguments: list[Node] = []
        options: list[tuple[str, Node]] = []
        while True:
            if self._peek()[0] == "name" and self._peek(1)[1] == "=":
                name = self._next()[1]
                self._next()
                options.append((name, self._deeper(self._sum)))
            else:
                arguments.append(self._deeper(self._sum))
            _, text, _ = self._next()
            if text == ")":
                return Call(function, tuple(arguments), tuple(options))
            if text != ",":
                raise self._unexpected(text)

    def _nested(self, read: Callable[[], Read]) -> Read:
        inner = self._deeper(read)
        _, text, _ = self._next()
        if text != ")":
            raise self._unexpected(text)
        return inner

    def _deeper(self, read: Callable[[], Read]) -> Read:
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadInput(
                f"The formula '{clip(self.text)}' is nested more than {DEEPEST} deep; simplify it."
            )
        inner = read()
        self.depth -= 1
        return inner

    def _peek(self, ahead: int = 0) -> tuple[str, str, int]:
        at = self.position + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "", len(self.text))

    def _next(self) -> tuple[str, str, int]:
        token = self._peek()
        self.position += 1
        return token

    def _take(self, *operators: str) -> str | None:
        if self._peek()[0] == "operator" and self._peek()[1] in operators:
            return self._next()[1]
        return None

    def _last_end(self) -> int:
        _, text, start = self.tokens[self.position - 1]
        return start + len(text)

    def _expect_end(self) -> None:
        if self._peek()[0] != "end":
            raise self._unexpected(self._peek()[1])

    def _unexpected(self, text: str) -> BadInput:
        where = (
            f"'{clip(text)}' is not expected where it stands in"
            if text
            else "Something is missing at the end of"
        )
        return BadInput(f"{where} the formula '{clip(self.text)}'.")
