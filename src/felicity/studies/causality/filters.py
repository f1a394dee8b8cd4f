"""Continuations that a person must look at before any rater sees them, each with the reason.

Offensive language: the list of npm `cuss` (MIT; words/cuss.tsv), whose ratings say how surely a word is used
offensively, and terms of our own for identities, violence, sex and stereotypes (words/terms.tsv). In the
phrases of words/harmless.txt a term is not counted (*killer cook*). Being on a list is a reason to look, not
a judgement: most sentences with such a term are harmless, and what is offensive need not contain one.
Repetition: the same words again within one continuation, with a proposal where to cut. Words that every text
has (words/frequent.txt) are a repetition only if they come again at once.
"""

import re
from collections.abc import Collection, Iterator
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


def _read_lines(name: str) -> frozenset[str]:
    text = files("felicity.studies.causality").joinpath("words", name).read_text("utf-8")
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


@cache
def _harmless() -> frozenset[str]:
    """Phrases in which a term of the lists is not counted."""
    return _read_lines("harmless.txt")


@cache
def _frequent() -> frozenset[str]:
    """Function words and verbs such as *go*, which come again in any text."""
    return _read_lines("frequent.txt")


def _find_phrases(words: list[str], phrases: Collection[str]) -> Iterator[tuple[int, int]]:
    """Begin and end of every phrase among the words."""
    longest = max(len(phrase.split()) for phrase in phrases)
    for begin in range(len(words)):
        for end in range(begin + 1, min(begin + longest, len(words)) + 1):
            if " ".join(words[begin:end]) in phrases:
                yield begin, end


def find_offensive(text: str) -> list[tuple[str, str]]:
    """Terms of the lists in a text, each with its reason, in the order of the text.

    >>> find_offensive("she was too tired to drive")
    []
    >>> find_offensive("he was a killer cook, and a killer")
    [('killer', 'violence')]
    """
    words = [word.replace("’", "'").strip("'") for word in WORD.findall(text.lower())]
    terms = _terms()
    excused = {place for begin, end in _find_phrases(words, _harmless()) for place in range(begin, end)}
    found: dict[str, str] = {}
    for begin, end in _find_phrases(words, terms):
        if not excused.issuperset(range(begin, end)):
            term = " ".join(words[begin:end])
            found.setdefault(term, terms[term])
    return list(found.items())


def find_repetition(text: str, *, words: int = REPEATED_WORDS) -> tuple[str, int] | None:
    """The first words that come a second time, and the character where they do; None if nothing repeats.

    >>> find_repetition("he was too tired, and the man was too tired to drive", words=3)
    ('was too tired', 30)
    >>> find_repetition("he had to go to the bank, and she had to go to the market")
    """
    spans = [(match.group().lower(), match.start()) for match in WORD.finditer(text)]
    seen: dict[tuple[str, ...], int] = {}
    for place in range(len(spans) - words + 1):
        gram = tuple(word for word, _ in spans[place : place + words])
        before = seen.setdefault(gram, place)
        at_once = 0 < place - before <= words
        if before < place and (at_once or not _frequent().issuperset(gram)):
            # The frequent words just before may be part of what is repeated.
            shift = 0
            while before > shift and spans[before - shift - 1][0] == spans[place - shift - 1][0]:
                shift += 1
            again = spans[place - shift : place - shift + words]
            return " ".join(word for word, _ in again), again[0][1]
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
