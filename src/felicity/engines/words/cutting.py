"""Where one word ends and the next begins, for models whose tokens are words.

A text is first parted at white space. `space` leaves it at that: the text has been tokenized by
another program. `punctuation` also parts marks and symbols from words, each a token of its own, save
the apostrophe, hyphen or full stop inside a word (don't, well-known, U.S) and the comma or colon inside
a number. `vocabulary` is for models made elsewhere: what the model knows whole stays whole, the rest is
cut as by `punctuation`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

Cut = Literal["punctuation", "space", "vocabulary"]

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
PLACES = re.compile(r"\S+")
# Beyond the first 65,536 characters, symbols come in one block that matters: pictures.
FIRST_CHARACTERS = 0x10000
PICTURES = "\U0001f000-\U0001faff"


def cut_words(text: str, cut: Cut) -> list[str]:
    """The words of a text, for training.

    >>> cut_words("Don't (ever) pay $1,000.", "punctuation")
    ["Don't", '(', 'ever', ')', 'pay', '$', '1,000', '.']
    """
    return text.split() if cut == "space" else word_pattern().findall(text)


def find_words(text: str, cut: Cut, knows: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Where the words of a text stand, in characters.

    >>> list(find_words("Tim.", "vocabulary", {"Tim", "."}.__contains__))
    [(0, 3), (3, 4)]
    """
    pattern = PLACES if cut != "punctuation" else word_pattern()
    for match in pattern.finditer(text):
        if cut != "vocabulary" or knows(match.group()):
            yield match.span()
        else:
            yield from (inner.span() for inner in word_pattern().finditer(text, *match.span()))


@cache
def word_pattern() -> re.Pattern[str]:
    """A word, or a single mark; what stands for an unknown word stays whole."""
    codes = range(FIRST_CHARACTERS)
    marks = "".join(re.escape(chr(code)) for code in codes if unicodedata.category(chr(code))[0] in "PS")
    marks += PICTURES
    word = rf"[^\s{marks}]+"
    inside = r"['’.\-]|(?<=\d)[,:](?=\d)"
    return re.compile(rf"{UNKNOWN}|{word}(?:(?:{inside}){word})*|[{marks}]")
