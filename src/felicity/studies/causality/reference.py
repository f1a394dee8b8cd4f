"""Which noun a continuation refers to: by the pronoun's gender, or by the repeated noun."""

import re
from collections.abc import Mapping

import polars as pl

from felicity.run import Model
from felicity.studies.causality.stimuli import StimulusSet

SUBJECT, OBJECT, UNKNOWN = "subject", "object", "unknown"
WORD = re.compile(r"[\w'’]+")
# Other forms of the English pronouns; a study in another language has those of its design alone.
FORMS = {
    "he": ("he", "he's", "he'd", "he'll", "his", "him"),
    "she": ("she", "she's", "she'd", "she'll", "her"),
}
# A pronoun between two nouns of its gender does not decide.
PRONOUN_OF_BOTH = "pronoun of both"


def find_reference(
    continuation: str, nouns: Mapping[str, str], genders: Mapping[str, str], pronouns: Mapping[str, str]
) -> tuple[str, str]:
    """The noun that the first words refer to, subject or object, and by what: pronoun, noun or nothing.

    nouns, genders: of subject and object; a noun may have several words. pronouns: by gender. Only the
    beginning counts: a pronoun, or a noun, also after one word such as an article. What begins otherwise
    ("of his ...") is unknown. Between two nouns of one gender a pronoun does not decide.

    >>> nouns, genders = {"subject": "der Mann", "object": "die Frau"}, {"subject": "m", "object": "f"}
    >>> find_reference("die Frau laut war", nouns, genders, {"m": "er", "f": "sie"})
    ('object', 'noun')
    """
    words = _split(continuation)
    for place in (0, 1):
        for side, noun in nouns.items():
            own = _split(noun)
            if own and words[place : place + len(own)] == own:
                return side, "noun"
    if not words:
        return UNKNOWN, "nothing"
    for gender, pronoun in pronouns.items():
        if words[0] in FORMS.get(pronoun.lower(), (pronoun.lower(),)):
            sides = [side for side in (SUBJECT, OBJECT) if genders[side] == gender]
            return (sides[0], "pronoun") if len(sides) == 1 else (UNKNOWN, PRONOUN_OF_BOTH)
    return UNKNOWN, "nothing"


def _split(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def assign_references(pronouns: Mapping[str, str], table: pl.DataFrame) -> pl.DataFrame:
    """Columns reference and by, one row per continuation of `table`.

    noun_margin, if the table has it: what `compare_nouns` gives, which decides where the pronoun does not.
    """
    rows = []
    for row in table.iter_rows(named=True):
        sides = (SUBJECT, OBJECT)
        reference, by = find_reference(
            row["continuation"],
            {side: row[side] for side in sides},
            {side: row[f"{side}_gender"] for side in sides},
            pronouns,
        )
        margin = row.get("noun_margin")
        if by == PRONOUN_OF_BOTH and margin is not None:
            reference = SUBJECT if margin > 0 else OBJECT if margin < 0 else UNKNOWN
            by = "probability of each noun"
        rows.append((reference, by))
    return pl.DataFrame(rows, schema={"reference": pl.String, "by": pl.String}, orient="row")


def compare_nouns(lm: Model, stimuli: StimulusSet, table: pl.DataFrame, open_rows: pl.Series) -> pl.Series:
    """By how many nats a continuation is more probable with the subject in place of its first word.

    open_rows: for which continuations that is asked; the others have no value.
    """
    values: list[float | None] = [None] * table.height
    places = open_rows.arg_true().to_list()
    texts, contexts = [], []
    for row in table[places].iter_rows(named=True):
        rest = row["continuation"].strip().partition(" ")[2]
        for side in (SUBJECT, OBJECT):
            texts.append(f"{stimuli.mention.format(noun=row[side])} {rest}".strip())
            contexts.append(row["prompt"])
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
