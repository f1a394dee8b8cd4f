"""Small templates over the fields of a row: `{field}`, with filters behind it, `{field|filter:argument}`.

{sentence|head}        all words but the last        {sentence|last}   the last word
{item|before:-}        what stands before the mark   {item|after:-}    what stands behind it
{expected|first}       the first of a|b|c            {bias|sign}       positive, negative or zero
{context|tabs}         tabs become spaces            {context|strip}   no space around it
{isHigh|map:side}      looked up in the entry's maps
{context|article:target}   `(a|an)` as the field `target` needs it
"""

import re
from collections.abc import Callable, Mapping

PART = re.compile(r"\{([^{}|]+)((?:\|[a-z]+(?::[^{}|]*)?)*)\}")
ARTICLE = "(a|an)"
# A noun takes its article by sound; these are spelt one way and sound the other.
AN_THOUGH_CONSONANT = ("heir", "honest", "honor", "honour", "hour")
A_THOUGH_VOWEL = ("eu", "ewe", "one", "uni", "ura", "use", "usu", "uten", "ubiq", "ukulele")
AN_THOUGH_UNI = ("unin", "unim", "unid")

Row = Mapping[str, object]
Maps = Mapping[str, Mapping[str, str]]


class Unfit(ValueError):
    """A row that the template cannot be filled from; the message is the reason."""


def choose_article(word: str) -> str:
    """`a` or `an`, by sound.

    >>> [choose_article(word) for word in ("fish", "insect", "utensil", "university", "hour")]
    ['a', 'an', 'a', 'a', 'an']
    """
    start = word.lower()
    if start.startswith(AN_THOUGH_CONSONANT):
        return "an"
    if start.startswith(A_THOUGH_VOWEL) and not start.startswith(AN_THOUGH_UNI):
        return "a"
    return "an" if start[:1] in "aeiou" and start else "a"


def list_fields(template: str) -> list[str]:
    """The fields a template reads.

    >>> list_fields("{s1} {s2|article:target}")
    ['s1', 's2', 'target']
    """
    found: list[str] = []
    for name, chain in PART.findall(template):
        found += [name, *(argument for kind, argument in _chain(chain) if kind == "article")]
    return found


def fill_template(template: str, row: Row, maps: Maps) -> str:
    """The template with the row's cells in it, as they stand in the file.

    Raises Unfit where a cell is empty, not text, or not what a filter needs.

    >>> fill_template("{s|head}", {"s": "A cat is an animal"}, {})
    'A cat is an'
    """
    return PART.sub(lambda part: _fill(part, row, maps), template)


def _fill(part: re.Match[str], row: Row, maps: Maps) -> str:
    name = part[1]
    text = _cell(row, name)
    for kind, argument in _chain(part[2]):
        if kind == "article":
            text = text.replace(ARTICLE, choose_article(_cell(row, argument)))
        elif kind == "map":
            if text not in maps[argument]:
                raise Unfit(f"'{name}' is {text!r}, not one of {', '.join(maps[argument])}")
            text = maps[argument][text]
        else:
            text = FILTERS[kind](text, argument, name)
    return text


def _chain(written: str) -> list[tuple[str, str]]:
    parts = [step.partition(":") for step in written.split("|")[1:]]
    return [(kind, argument) for kind, _, argument in parts]


def _cell(row: Row, name: str) -> str:
    cell = row.get(name)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float):
        return str(cell)
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        raise Unfit(f"'{name}' is empty")
    if not isinstance(cell, str):
        raise Unfit(f"'{name}' is not text")
    return cell


def _head(text: str, _: str, name: str) -> str:
    words = text.split()
    if len(words) < 2:
        raise Unfit(f"'{name}' is one word, with nothing before its last")
    return " ".join(words[:-1])


def _sign(text: str, _: str, name: str) -> str:
    try:
        value = float(text)
    except ValueError as error:
        raise Unfit(f"'{name}' is {text!r}, not a number") from error
    return "positive" if value > 0 else "negative" if value < 0 else "zero"


def _side(place: int) -> Callable[[str, str, str], str]:
    def cut(text: str, mark: str, name: str) -> str:
        if mark not in text:
            raise Unfit(f"'{name}' is {text!r}, without '{mark}'")
        return text.rpartition(mark)[place]

    return cut


FILTERS: dict[str, Callable[[str, str, str], str]] = {
    "head": _head,
    "last": lambda text, _, __: text.split()[-1],
    "before": _side(0),
    "after": _side(2),
    "first": lambda text, _, __: text.split("|")[0],
    "sign": _sign,
    "strip": lambda text, _, __: text.strip(),
    "tabs": lambda text, _, __: text.replace("\t", " "),
}
