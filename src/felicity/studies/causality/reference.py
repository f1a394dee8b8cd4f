"""Which noun a continuation refers to: by the pronoun's gender, or by the repeated noun.

Only a mention that certainly takes up one of the two nouns counts. A possessive (*his mother*), a
coordination (*he and she*) and an indefinite (*a woman*) take up neither, or not for certain: they are
unknown.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import polars as pl

from felicity.run import Model
from felicity.studies.causality.stimuli import StimulusSet

SUBJECT, OBJECT, UNKNOWN = "subject", "object", "unknown"
# A pronoun between two nouns of its gender does not decide.
PRONOUN_OF_BOTH = "pronoun of both"
WORD = re.compile(r"\w+(?:['’]\w+)*|[/&]")
# The English rules; a study in another language has its pronouns, and a noun also after any one word.
FORMS = {
    pronoun: frozenset(f"{pronoun}{ending}" for ending in ("", "'s", "'d", "'ll"))
    for pronoun in ("he", "she")
}
MOST_ADJECTIVES = 2


@cache
def _words() -> dict[str, frozenset[str]]:
    """The lists of words/mentions.toml by name."""
    text = files("felicity.studies.causality").joinpath("words", "mentions.toml").read_text("utf-8")
    return {name: frozenset(listed) for name, listed in tomllib.loads(text).items()}


@cache
def _clause() -> re.Pattern[str]:
    """A clause about what is thought or said, before the one that counts."""
    thinkers, thinking = ("|".join(sorted(_words()[name])) for name in ("thinkers", "thinking"))
    return re.compile(
        rf"(?:(?:{thinkers})\s+(?:(?:had|always|else)\s+)*(?:{thinking})(?:\s+that)?"
        r"|it\s+(?:seemed|appeared|turned\s+out|was\s+\w+|is\s+\w+)\s+that)\s+",
        re.IGNORECASE,
    )


class Mention(NamedTuple):
    """The noun that a continuation takes up, by what, and the characters of the pronoun if it is one."""

    side: str
    by: str
    start: int = 0
    end: int = 0


NOTHING = Mention(UNKNOWN, "nothing")


def find_reference(
    continuation: str, nouns: Mapping[str, str], genders: Mapping[str, str], pronouns: Mapping[str, str]
) -> tuple[str, str]:
    """The noun that the first words refer to, subject or object, and by what: pronoun, noun or nothing.

    nouns, genders: of subject and object; a noun may have several words. pronouns: by gender. Only the
    beginning counts: a pronoun, or a noun by itself or with a definite article and adjectives, also after a
    clause such as *everyone thought*. What begins otherwise ("of his ...") is unknown. Between two nouns of
    one gender a pronoun does not decide.

    >>> nouns, genders = {"subject": "der Mann", "object": "die Frau"}, {"subject": "m", "object": "f"}
    >>> find_reference("die Frau laut war", nouns, genders, {"m": "er", "f": "sie"})
    ('object', 'noun')
    >>> nouns = {"subject": "man", "object": "woman"}
    >>> find_reference("everyone thought she was late", nouns, genders, {"m": "he", "f": "she"})
    ('object', 'pronoun')
    """
    found = find_mention(continuation, nouns, genders, pronouns)
    return found.side, found.by


def find_mention(
    continuation: str, nouns: Mapping[str, str], genders: Mapping[str, str], pronouns: Mapping[str, str]
) -> Mention:
    """The first mention of one of the two nouns, as `find_reference` describes it."""
    english = any(pronoun.lower() in FORMS for pronoun in pronouns.values())
    begin = _skip_before(continuation) if english else 0
    spans = [(match.group().lower().replace("’", "'"), match) for match in WORD.finditer(continuation, begin)]
    words = [word for word, _ in spans]
    if not words:
        return NOTHING
    for side, noun in nouns.items():
        end = _find_noun(words, _split(noun), english=english)
        if end:
            return NOTHING if _is_coordinated(words, end) else Mention(side, "noun")
    for gender, pronoun in pronouns.items():
        if words[0] in FORMS.get(pronoun.lower(), (pronoun.lower(),)):
            start = spans[0][1].start()
            sides = [side for side in (SUBJECT, OBJECT) if genders[side] == gender]
            by = "pronoun" if len(sides) == 1 else PRONOUN_OF_BOTH
            found = Mention(sides[0] if len(sides) == 1 else UNKNOWN, by, start, start + len(pronoun))
            return NOTHING if _is_coordinated(words, 1) else found
    return NOTHING


def _skip_before(text: str) -> int:
    """Where the clause that counts begins: after a sentence adverb or a clause about what is thought."""
    bare = text.lstrip('"“ ')
    clause = _clause().match(bare)
    if clause:
        return len(text) - len(bare) + clause.end()
    first = WORD.search(text)
    return first.end() if first and first.group().lower() in _words()["adverbs"] else 0


def _find_noun(words: list[str], noun: list[str], *, english: bool) -> int:
    """The place after the noun if the words begin with a mention of it, else 0."""
    if not noun:
        return 0
    if words[: len(noun)] == noun:
        return len(noun)
    if not english:
        return len(noun) + 1 if words[1 : 1 + len(noun)] == noun else 0
    if words[0] not in _words()["definite"]:
        return 0
    for place in range(1, 2 + MOST_ADJECTIVES):
        if words[place : place + len(noun)] == noun:
            return place + len(noun)
        if place >= len(words) or words[place] in _words()["not_between"] or words[place].endswith("'s"):
            return 0
    return 0


def _is_coordinated(words: list[str], end: int) -> bool:
    return end < len(words) and words[end] in _words()["coordinators"]


def _split(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def assign_references(pronouns: Mapping[str, str], table: pl.DataFrame) -> pl.DataFrame:
    """Columns reference and by, one row per continuation of `table`.

    noun_margin, if the table has it: what `compare_nouns` gives, which decides where the pronoun does not.
    """
    rows = []
    for row in table.iter_rows(named=True):
        found = _mention(row, pronouns)
        margin = row.get("noun_margin")
        if found.by == PRONOUN_OF_BOTH and margin is not None:
            side = SUBJECT if margin > 0 else OBJECT if margin < 0 else UNKNOWN
            found = Mention(side, "probability of each noun")
        rows.append((found.side, found.by))
    return pl.DataFrame(rows, schema={"reference": pl.String, "by": pl.String}, orient="row")


def _mention(row: Mapping[str, str], pronouns: Mapping[str, str]) -> Mention:
    """The mention in a row with a continuation, its two nouns and their genders."""
    sides = (SUBJECT, OBJECT)
    nouns = {side: row[side] for side in sides}
    return find_mention(row["continuation"], nouns, {side: row[f"{side}_gender"] for side in sides}, pronouns)


def compare_nouns(lm: Model, stimuli: StimulusSet, table: pl.DataFrame) -> pl.Series:
    """By how many nats a continuation is more probable with the subject in place of its pronoun.

    Only where the pronoun may stand for either noun; the other continuations have no value.
    """
    values: list[float | None] = [None] * table.height
    texts, contexts, places = [], [], []
    for place, row in enumerate(table.iter_rows(named=True)):
        found = _mention(row, stimuli.pronouns)
        if found.by == PRONOUN_OF_BOTH:
            text = row["continuation"]
            for side in (SUBJECT, OBJECT):
                noun = stimuli.mention.format(noun=row[side])
                texts.append(f"{text[: found.start]}{noun}{text[found.end :]}".strip())
                contexts.append(row["prompt"])
            places.append(place)
    scores = lm.score(texts, context=contexts)["lp"].to_list() if places else []
    for number, place in enumerate(places):
        values[place] = scores[2 * number] - scores[2 * number + 1]
    return pl.Series("noun_margin", values, pl.Float64)


def share_references(table: pl.DataFrame) -> pl.DataFrame:
    """Share of continuations that refer to the subject, by bin of the verb's bias, and the unknown ones."""
    known = table.drop_nulls("bias_bin")
    return (
        known.group_by("bias_bin")
        .agg(
            n=pl.len().cast(pl.Int64),
            subject=(pl.col("reference") == SUBJECT).sum().cast(pl.Int64),
            object=(pl.col("reference") == OBJECT).sum().cast(pl.Int64),
            unknown=(pl.col("reference") == UNKNOWN).sum().cast(pl.Int64),
        )
        .with_columns(subject_share=pl.col("subject") / (pl.col("subject") + pl.col("object")))
        .sort("bias_bin")
    )
