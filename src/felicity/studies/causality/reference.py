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
# By how many nats one noun must be more probable than the other in the pronoun's place.
LEAST_MARGIN = 0.0


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
            return (sides[0], "pronoun") if len(sides) == 1 else (UNKNOWN, "pronoun of both")
    return UNKNOWN, "nothing"


def _split(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def assign_references(stimuli: StimulusSet, table: pl.DataFrame) -> pl.DataFrame:
    """Columns reference and by, one row per continuation of `table`."""
    rows = []
    for row in table.iter_rows(named=True):
        sides = (SUBJECT, OBJECT)
        rows.append(
            find_reference(
                row["continuation"],
                {side: row[side] for side in sides},
                {side: row[f"{side}_gender"] for side in sides},
                stimuli.pronouns,
            )
        )
    return pl.DataFrame(rows, schema={"reference": pl.String, "by": pl.String}, orient="row")


def resolve_same_gender(lm: Model, stimuli: StimulusSet, table: pl.DataFrame) -> pl.DataFrame:
    """References of pronouns between two nouns of one gender, by the model's own probability.

    Each noun replaces the pronoun; the one with which the continuation is more probable is the referent.
    """
    open_rows = table.with_row_index("place").filter(by="pronoun of both")
    if open_rows.is_empty():
        return table
    texts, contexts = [], []
    for row in open_rows.iter_rows(named=True):
        rest = row["continuation"].strip().partition(" ")[2]
        for side in (SUBJECT, OBJECT):
            texts.append(f"{stimuli.mention.format(noun=row[side])} {rest}".strip())
            contexts.append(row["prompt"])
    scores = lm.score(texts, context=contexts)["lp"].to_numpy().reshape(-1, 2)
    margin = scores[:, 0] - scores[:, 1]
    chosen = [SUBJECT if m > LEAST_MARGIN else OBJECT if m < -LEAST_MARGIN else UNKNOWN for m in margin]
    found = pl.DataFrame(
        {"place": open_rows["place"], "resolved": chosen},
        schema={"place": open_rows["place"].dtype, "resolved": pl.String},
    )
    joined = table.with_row_index("place").join(found, on="place", how="left", maintain_order="left")
    done = pl.col("resolved").is_not_null()
    return joined.with_columns(
        reference=pl.coalesce("resolved", "reference"),
        by=pl.when(done).then(pl.lit("probability of each noun")).otherwise(pl.col("by")),
    ).drop("place", "resolved")


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
