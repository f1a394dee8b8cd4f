"""Model formulas as lme4 reads them: `rt ~ cond + (1 + cond | subj) + (1 | item)`.

The random terms are taken out and expanded here; what is left is the fixed part, for formulaic.
"""

import re
from dataclasses import dataclass

from felicity.core.errors import BadInput
from felicity.stats.mixed.formula_grammar import check_text, clip, mask_quoted, parse_terms, parse_value

GROUP = r"(?:[\w.]+|`[^`:/]+`)"


@dataclass(frozen=True)
class RandomTerm:
    """One `(left | group)`: the columns of `left` vary, correlated, over the levels of `group`.

    group: the columns whose joint values are the levels, `("class", "school")` for `class:school`.
    """

    left: str
    group: tuple[str, ...]

    @property
    def group_name(self) -> str:
        """The group as lme4 prints it."""
        return ":".join(self.group)

    def __str__(self) -> str:
        return f"({self.left} | {self.group_name})"


@dataclass(frozen=True)
class Formula:
    """A parsed formula; `str()` gives it back, expanded."""

    response: str
    fixed: str
    random: tuple[RandomTerm, ...]

    def __str__(self) -> str:
        return f"{self.response} ~ " + " + ".join([self.fixed, *map(str, self.random)])

    @property
    def sides(self) -> tuple[str, ...]:
        """The fixed part and the effects of every random term."""
        return (self.fixed, *(term.left for term in self.random))


def parse_formula(text: str) -> Formula:
    """Split a formula into response, fixed part and random terms.

    >>> parse_formula("rt ~ cond + (cond || subj)").random
    (RandomTerm(left='1', group=('subj',)), RandomTerm(left='0 + cond', group=('subj',)))

    Raises BadInput if there is no `~`, nothing on its left, or a random term cannot be read.
    """
    check_text(text)
    masked = mask_quoted(text)
    middle = masked.find("~")
    if masked.count("~") != 1 or not text[:middle].strip():
        raise BadInput(f"The formula '{clip(text)}' must be 'response ~ predictors', with one '~'.")
    right = text[middle + 1 :].strip()
    if not right or right[-1] in "+-*/:^|":
        raise BadInput(f"Something is missing at the end of the formula '{clip(text)}'.")
    fixed, bars = _take_out_bars(right, text)
    parse_terms(fixed)
    random = [term for bar in bars for term in _expand_bar(bar)]
    response = text[:middle].strip()
    parse_value(response)
    return Formula(response=response, fixed=fixed, random=tuple(random))


def split_top(text: str, separators: str) -> list[str]:
    """Pieces of `text` between separators outside all brackets.

    >>> split_top("a + log(b + c)", "+")
    ['a ', ' log(b + c)']
    """
    pieces, depth, start = [], 0, 0
    for i, char in enumerate(mask_quoted(text)):
        depth += (char in "([{") - (char in ")]}")
        if char in separators and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    return [*pieces, text[start:]]


def _take_out_bars(side: str, whole: str) -> tuple[str, list[str]]:
    fixed, bars, i = "", [], 0
    masked = mask_quoted(side)
    while i < len(side):
        end = _closing(masked, i, whole) if masked[i] == "(" else i
        inside = side[i + 1 : end]
        if end > i and len(split_top(inside, "|")) > 1:
            bars.append(inside)
        else:
            fixed += side[i : end + 1]
        i = end + 1
    if "|" in mask_quoted(fixed):
        raise BadInput(
            f"A random term must be in brackets, '(1 | group)'; correct the formula '{clip(whole)}'."
        )
    pieces = [piece.strip() for piece in split_top(fixed, "+")]
    kept = " + ".join(piece for piece in pieces if piece) or "1"
    return re.sub(r"\+\s*-", "-", kept), bars


def _closing(text: str, start: int, whole: str) -> int:
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise BadInput(f"A bracket is not closed in the formula '{clip(whole)}'.")


def _expand_bar(bar: str) -> list[RandomTerm]:
    uncorrelated = "||" in bar
    sides = [side.strip() for side in bar.split("||" if uncorrelated else "|")]
    if len(sides) != 2 or not all(sides):
        raise BadInput(f"The random term '({bar})' must be '(effects | group)'.")
    parse_terms(sides[0])
    lefts = _separate(sides[0]) if uncorrelated else [sides[0]]
    return [RandomTerm(left, group) for group in _expand_group(sides[1], bar) for left in lefts]


def _separate(left: str) -> list[str]:
    """The independent terms of `(left || group)`, as lme4 splits them."""
    terms = expand_terms(left)
    if not terms:
        raise BadInput(f"'{left}' names no random effect; write (1 | group) for intercepts.")
    return ["1" if term == "1" else f"0 + {term}" for term in terms]


def expand_terms(side: str) -> list[str]:
    """The terms of a right-hand side, the intercept as '1'.

    >>> expand_terms("a * b")
    ['1', 'a', 'b', 'a:b']
    """
    from formulaic import Formula as FormulaicFormula
    from formulaic.errors import FormulaicError

    try:
        return [str(term) for term in FormulaicFormula(side.replace("^", "**"))]
    except (FormulaicError, SyntaxError, ValueError, RecursionError) as error:
        raise BadInput(
            f"'{clip(side)}' cannot be read as model terms: {str(error).splitlines()[0]}."
        ) from error


def _expand_group(side: str, bar: str) -> list[tuple[str, ...]]:
    if not re.fullmatch(rf"{GROUP}(\s*[:/]\s*{GROUP})*", side):
        raise BadInput(
            f"The group '{side}' of the random term '({bar})' must be columns joined by ':' or '/'."
        )
    nested = [tuple(name.strip("` ") for name in part.split(":")) for part in side.split("/")]
    if len(nested) == 1:
        return nested
    # lme4 writes (1 | a/b) as (1 | b:a) + (1 | a).
    groups = [tuple(name for part in reversed(nested[: i + 1]) for name in part) for i in range(len(nested))]
    return list(reversed(groups))
