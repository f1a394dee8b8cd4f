"""Forms of English nouns that a frame needs: with an article or without, singular and plural, names."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from felicity.core.articles import choose_article

SIBILANT = re.compile(r"(s|x|z|ch|sh)$")
CONSONANT_Y = re.compile(r"[^aeiou]y$")


@cache
def _forms() -> dict[str, Any]:
    path = files("felicity.stimuli.templates") / "noun_forms.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def _irregular() -> tuple[dict[str, str], dict[str, str]]:
    pairs = _forms()["plural"]["irregular"]
    return dict(pairs), {plural: singular for singular, plural in pairs}


def is_proper(word: str) -> bool:
    """Whether a word is a proper name, which takes no article.

    >>> is_proper("France"), is_proper("trout"), is_proper("A-bomb")
    (True, False, False)
    """
    return word[:1].isupper() and word not in _forms()["capitalised"]["common"]


def add_article(word: str) -> str:
    """The word with its article; proper names and plurals without one.

    >>> add_article("oyster"), add_article("France"), add_article("geese")
    ('an oyster', 'France', 'geese')
    """
    return word if is_proper(word) or is_plural(word) else f"{choose_article(word)} {word}"


def pluralize(noun: str) -> str:
    """The plural of a noun; of several words the last one changes.

    >>> [pluralize(noun) for noun in ("cat", "fox", "city", "wolf", "sheep", "judo master")]
    ['cats', 'foxes', 'cities', 'wolves', 'sheep', 'judo masters']
    """
    before, space, last = noun.rpartition(" ")
    lower = last.lower()
    plural = _forms()["plural"]
    if lower in plural["unchanged"] or lower in plural["only_plural"]:
        formed = last
    elif lower in _irregular()[0]:
        formed = last[0] + _irregular()[0][lower][1:]
    elif lower.endswith("man") and lower != "human":
        formed = last[:-2] + "en"
    elif SIBILANT.search(lower):
        formed = last + "es"
    elif CONSONANT_Y.search(lower):
        formed = last[:-1] + "ies"
    else:
        formed = last + "s"
    return before + space + formed


def singularize(noun: str) -> str:
    """The singular of a plural noun; a noun that is no plural stays as it is.

    >>> [singularize(noun) for noun in ("onions", "radishes", "geese", "bus", "scissors", "berries")]
    ['onion', 'radish', 'goose', 'bus', 'scissors', 'berry']
    """
    before, space, last = noun.rpartition(" ")
    lower = last.lower()
    if not is_plural(lower) or lower in _forms()["plural"]["only_plural"]:
        return noun
    if lower in _irregular()[1]:
        formed = last[0] + _irregular()[1][lower][1:]
    elif lower.endswith("men"):
        formed = last[:-2] + "an"
    elif lower.endswith("ies") and len(lower) > 4:
        formed = last[:-3] + "y"
    elif re.search(r"(ss|x|zz|ch|sh)es$", lower):
        formed = last[:-2]
    else:
        formed = last[:-1]
    return before + space + formed


def is_plural(noun: str) -> bool:
    """Whether a noun is a plural by its form, so that `a` cannot stand before it.

    >>> is_plural("skates"), is_plural("tennis"), is_plural("feet")
    (True, False, True)
    """
    if is_proper(noun):
        return False
    last = noun.rpartition(" ")[2].lower()
    plural = _forms()["plural"]
    if last in _irregular()[1] or last in plural["only_plural"]:
        return True
    if last in plural["ends_in_s"] or last in plural["unchanged"]:
        return False
    if re.search(r"[a-z]{2,}men$", last) and last not in ("specimen", "regimen", "abdomen", "omen", "stamen"):
        return True
    return len(last) > 3 and last.endswith("s") and not re.search(r"(ss|us|is|os)$", last)
