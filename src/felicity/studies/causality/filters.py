"""Continuations that a person must look at before any rater sees them, each with the reason.

Offensive language: the list of npm `cuss` (MIT; words/cuss.tsv), whose ratings say how surely a word is used
offensively, and terms of our own for identities, violence and sex. Being on a list is a reason to look, not a
judgement: most sentences with such a term are harmless, and what is offensive need not contain one.
Repetition: the same words again within one continuation, with a proposal where to cut.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import polars as pl

# Words rated 0 are mostly harmless ("black", "angry"); those rated 1 and 2 are flagged.
LEAST_RATING = 1
# So many words in a row that come twice are a repetition.
REPEATED_WORDS = 4
OFFENSIVE, REPETITION = "offensive", "repetition"
REASONS = {1: "profanity, possibly", 2: "profanity, likely"}
WORD = re.compile(r"[\w'’]+")
# Where a clause may begin: the proposed cut is before the last of these that precedes the repetition.
CLAUSE = re.compile(
    r'(?:\s*[,;:]\s*(?:["“”]\s*)?(?:and|but|so|or|because|then|as|who|which|that)?\b)|'
    r"\s+(?:and|but|so|or|because|then)\b"
)
FLAGS = {
    "flagged": pl.Boolean,
    "reasons": pl.String,
    "trimmed": pl.String,
}


@cache
def _terms() -> dict[str, str]:
    """Every term with the reason why it is on a list."""
    folder = files("felicity.studies.causality").joinpath("words")
    found: dict[str, str] = {}
    for line in folder.joinpath("cuss.tsv").read_text("utf-8").splitlines()[1:]:
        term, _, rating = line.partition("\t")
        if int(rating) >= LEAST_RATING:
            found[term.lower()] = REASONS[int(rating)]
    for line in folder.joinpath("terms.tsv").read_text("utf-8").splitlines()[1:]:
        term, _, reason = line.partition("\t")
        found.setdefault(term, reason)
    return found


@cache
def _longest() -> int:
    return max(len(term.split()) for term in _terms())


def find_offensive(text: str) -> list[tuple[str, str]]:
    """Terms of the lists in a text, each with its reason, in the order of the text.

    >>> find_offensive("she was too tired to drive")
    []
    """
    words = [word.replace("’", "'").strip("'") for word in WORD.findall(text.lower())]
    terms = _terms()
    found: dict[str, str] = {}
    for begin in range(len(words)):
        for size in range(1, min(_longest(), len(words) - begin) + 1):
            term = " ".join(words[begin : begin + size])
            if term in terms:
                found.setdefault(term, terms[term])
    return list(found.items())


def find_repetition(text: str, *, words: int = REPEATED_WORDS) -> tuple[str, int] | None:
    """The first words that come a second time, and the character where they do; None if nothing repeats.

    >>> find_repetition("he was too tired, and the man was too tired to drive", words=3)
    ('was too tired', 30)
    """
    spans = [(match.group().lower(), match.start()) for match in WORD.finditer(text)]
    seen: set[tuple[str, ...]] = set()
    for place in range(len(spans) - words + 1):
        gram = tuple(word for word, _ in spans[place : place + words])
        if gram in seen:
            return " ".join(gram), spans[place][1]
        seen.add(gram)
    return None


def trim_repetition(text: str, *, words: int = REPEATED_WORDS) -> str | None:
    """The text up to the clause in which its words come again; None if nothing repeats.

    >>> trim_repetition("he was too tired to drive, and the man was too tired to drive")
    'he was too tired to drive'
    """
    found = find_repetition(text, words=words)
    if found is None:
        return None
    cuts = [match.start() for match in CLAUSE.finditer(text, 0, found[1]) if match.start() > 0]
    kept = text[: cuts[-1]] if cuts else text[: found[1]]
    kept = kept.rstrip(" ,;:")
    return kept + '"' if kept.count('"') % 2 else kept


def flag_continuations(continuations: pl.Series) -> pl.DataFrame:
    """Columns of FLAGS, one row per continuation."""
    return pl.DataFrame(list(_flag(continuations)), schema=FLAGS, orient="row")


def _flag(continuations: pl.Series) -> Iterator[tuple[bool, str, str | None]]:
    for text in continuations:
        reasons = [f"{OFFENSIVE}: {term} ({reason})" for term, reason in find_offensive(text)]
        repeated = find_repetition(text)
        if repeated:
            reasons.append(f'{REPETITION}: "{repeated[0]}"')
        yield bool(reasons), "; ".join(reasons), trim_repetition(text)
