"""Which words English has, according to WordNet, and which of them its glosses call offensive.

WordNet's files are read if they are installed. Without them the rules that need a word list say so
and check nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from felicity.core.errors import NotPossible
from felicity.stimuli.templates import find_wordnet

PARTS = ("noun", "verb", "adj", "adv")
# Morphy's rules of detachment: ending, what takes its place.
DETACHMENTS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ied", "y"), ("ing", "e"), ("ing", ""),
    ("er", ""), ("est", ""), ("er", "e"), ("est", "e"), ("ly", ""),
)  # fmt: skip
DOUBLED = re.compile(r"([bdgklmnprt])\1(ed|ing|er|est)$")
OFFENSIVE = re.compile(
    r"ethnic slur|insulting terms|offensive (?:term|name|word|terms|names)|\(offensive\)|obscene|"
    r"disparag(?:ing|ement)"
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHORTEST = 3


@dataclass(frozen=True)
class WordList:
    """Words and collocations, the offensive ones among them with WordNet's gloss, and the verbs.

    only_verbs: verbs that are no nouns, adjectives or adverbs as well.
    """

    words: frozenset[str]
    collocations: frozenset[str]
    offensive: dict[str, str]
    verbs: frozenset[str]
    only_verbs: frozenset[str]

    def knows(self, word: str) -> bool:
        """Whether the word, or what it is an inflected form of, is on the list."""
        lower = word.lower().strip("'")
        if lower in self.words or lower.removesuffix("'s") in self.words:
            return True
        return any(base in self.words for base in _bases(lower)) or all(
            part in self.words or any(base in self.words for base in _bases(part))
            for part in lower.split("-")
        )

    def find_variant(self, word: str) -> str:
        """A known word or two that an unknown one is a spelling variant of; empty if there is none."""
        lower = word.lower()
        for place in range(2, len(lower) - 1):
            parts = lower[:place], lower[place:]
            if "_".join(parts) in self.collocations or "-".join(parts) in self.words:
                return " ".join(parts)
        # The first letter is the one that is seldom wrong.
        near = [edit for edit in list_edits(lower) if edit in self.words and edit[0] == lower[0]]
        return near[0] if near and len(lower) > SHORTEST else ""


def _bases(word: str) -> Iterator[str]:
    for ending, instead in DETACHMENTS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            yield word[: -len(ending)] + instead
    doubled = DOUBLED.search(word)
    if doubled:
        yield word[: doubled.start() + 1]


def list_edits(word: str) -> Iterator[str]:
    """Every word that is one letter away: one more, one less, two exchanged, another one."""
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (before + letter + after for before, after in splits for letter in LETTERS)
    yield from (before + after[1:] for before, after in splits if after)
    yield from (before + after[1] + after[0] + after[2:] for before, after in splits if len(after) > 1)
    yield from (before + letter + after[1:] for before, after in splits if after for letter in LETTERS)


@cache
def read_wordnet(folder: Path | None = None) -> WordList | None:
    """WordNet's words with the function words it leaves out; None if WordNet is not installed."""
    try:
        place = find_wordnet(folder)
    except NotPossible:
        return None
    words, parts = set(read_function_words()), dict[str, set[str]]()
    for part in PARTS:
        lines = (place / f"index.{part}").read_text(encoding="utf-8").splitlines()
        parts[part] = {line.partition(" ")[0] for line in lines if not line.startswith(" ")}
        for line in (place / f"{part}.exc").read_text(encoding="utf-8").splitlines():
            words |= {word for word in line.split() if "_" not in word}
    listed = set().union(*parts.values())
    others = parts["noun"] | parts["adj"] | parts["adv"] | read_function_words()
    return WordList(
        words=frozenset(words | {word for word in listed if "_" not in word}),
        collocations=frozenset(word for word in listed if "_" in word),
        offensive=_read_offensive(place),
        verbs=frozenset(parts["verb"]),
        only_verbs=frozenset(parts["verb"] - others),
    )


@cache
def read_function_words() -> frozenset[str]:
    """English function words, which WordNet leaves out."""
    text = (files("felicity.stimuli.checks") / "function_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def _read_offensive(place: Path) -> dict[str, str]:
    """Nouns whose first sense is glossed as a slur, an obscenity or a disparaging term."""
    first: dict[str, str] = {}
    for line in (place / "index.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            cells = line.split()
            first[cells[0]] = cells[-int(cells[2])]
    found: dict[str, str] = {}
    for line in (place / "data.noun").read_text(encoding="utf-8").splitlines():
        head, _, gloss = line.partition("|")
        if line.startswith(" ") or not OFFENSIVE.search(gloss):
            continue
        cells = head.split()
        for word in (cells[4 + 2 * number].lower() for number in range(int(cells[3], 16))):
            if first.get(word) == cells[0]:
                found[word] = gloss.strip()
    return found
