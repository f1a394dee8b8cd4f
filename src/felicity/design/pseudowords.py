"""Pronounceable words that do not exist, and their endings."""

import re
from collections.abc import Callable

from felicity.design.wordlists import read_toml

VOWELS = "aeiou"
SIBILANT = re.compile(r"(?:s|x|z|sh|ch)$")
LONG_WORD = 9

Draw = Callable[[], float]


def make_pseudoword(syllables: int, draw: Draw, *, vowel: bool) -> str:
    """A pronounceable word; `vowel` says whether it begins with one. `draw` gives numbers from 0 up to 1.

    >>> make_pseudoword(2, lambda: 0.5, vowel=False)
    'prommink'
    """
    parts = read_toml("syllables")

    def pick(kind: str) -> str:
        options = parts[kind]
        return str(options[int(draw() * len(options))])

    word = pick("openings") if vowel else pick("onsets") + pick("nuclei")
    for _ in range(syllables - 1):
        word += pick("inner_codas") + pick("inner_onsets") + pick("inner_nuclei")
    return word + pick("codas")


def count_syllables(word: str) -> int:
    """How many syllables a pseudo-word gets: two, and three for a long word.

    Never one: too many such words exist somewhere ("lark", "glom"), and no vocabulary has them all.
    """
    return 2 + (len(word) > LONG_WORD)


def inflect(word: str, ending: str) -> str:
    """A pseudo-word with one of the regular endings: "", s, ed, ing, er, est, ly.

    >>> inflect("gremish", "s"), inflect("prorzunk", "ed")
    ('gremishes', 'prorzunked')
    """
    return word + ("es" if ending == "s" and SIBILANT.search(word) else ending)


def choose_article(word: str) -> str:
    """The indefinite article before a pseudo-word; none begins with a vowel letter that sounds otherwise.

    >>> choose_article("olmick"), choose_article("prummeck")
    ('an', 'a')
    """
    return "an" if word[:1].lower() in VOWELS else "a"
