"""English articles: a or an, by the first sound of the next word, not by its first letter.

A utensil, an hour, an X-ray: beginnings that deceive are listed in `articles.toml`; everything else goes by
its first letter.
"""

import re
from functools import cache

from felicity.core.documents import read_packaged_toml

VOWELS = "aeiou"
# Letters whose names begin with a vowel: an F, an X-ray.
LETTERS = "aefhilmnorsx"
NUMBERS = re.compile(r"8|11(?!\d)|18(?!\d)|11,|18,")


def _listed() -> dict[str, list[str]]:
    return read_packaged_toml("felicity.core", "articles.toml")


@cache
def _beginnings() -> dict[str, str]:
    return {start: article for article in ("a", "an") for start in _listed()[article]}


def choose_article(word: str) -> str:
    """`a` or `an`, by the sound that the word begins with.

    >>> [choose_article(word) for word in ("utensil", "uncle", "hour", "X-ray", "NGO", "NASA", "8-ball")]
    ['a', 'an', 'an', 'an', 'an', 'a', 'an']
    """
    if not word:
        return "a"
    if word[0].isdigit():
        return "an" if NUMBERS.match(word) else "a"
    head = re.split(r"[-' ]", word)[0]
    lower = word.lower()
    spelt = head.isupper() and head.lower() not in _listed()["words"]
    if len(head) == 1 or spelt or lower in _listed()["letters"]:
        return "an" if head[0].lower() in LETTERS else "a"
    matches = [start for start in _beginnings() if lower.startswith(start)]
    if matches:
        return _beginnings()[max(matches, key=len)]
    return "an" if lower[0] in VOWELS else "a"
