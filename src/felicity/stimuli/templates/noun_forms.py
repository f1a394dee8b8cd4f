"""Forms of English nouns that a frame needs: with an article or without, singular and plural, names."""

import re
from functools import cache
from typing import Any

from felicity.core.articles import choose_article
from felicity.core.documents import read_packaged_toml

SIBILANT = re.compile(r"(s|x|z|ch|sh)$")
CONSONANT_Y = re.compile(r"[^aeiou]y$")


def _forms() -> dict[str, Any]:
    return read_packaged_toml("felicity.stimuli.templates", "noun_forms.toml")


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


def is_mass(word: str, category: str = "") -> bool:
    """Whether a noun is a mass noun, always or as a member of a category, so that it takes no article.

    >>> is_mass("furniture"), is_mass("gold", "metal"), is_mass("football", "toy"), is_mass("cold", "disease")
    (True, True, False, False)
    """
    mass, lower = _forms()["mass"], word.lower()
    members = mass["members_of"]
    return lower in mass["words"] or (category in members and lower not in members[category])


def list_mass_categories() -> list[str]:
    """The categories whose members are mass nouns."""
    return list(_forms()["mass"]["members_of"])


def add_article(word: str, *, bare: bool = False) -> str:
    """The word with its article; proper names, plurals, mass nouns and what is `bare` without one.

    >>> add_article("oyster"), add_article("France"), add_article("geese"), add_article("furniture")
    ('an oyster', 'France', 'geese', 'furniture')
    """
    no_article = bare or is_proper(word) or is_plural(word) or is_mass(word)
    return word if no_article else f"{choose_article(word)} {word}"


def list_wider(category: str) -> list[str]:
    """The categories that a category is within.

    >>> list_wider("bird")
    ['animal']
    """
    return list(_forms()["within"].get(category, ()))


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
