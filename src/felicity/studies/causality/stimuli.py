"""The sentence beginnings of the study: verbs x noun pairs x orders x connectives.

They come from the published table, or from a design file with a user's own verbs, nouns, connectives and
pronouns, in any language whose sentences a template can build.
"""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.documents import Document, read_document
from felicity.core.errors import BadInput, NotPossible
from felicity.core.files import data_folder, read_frame
from felicity.core.ids import fingerprint
from felicity.data import is_table, read_dataset

PUBLISHED = "implicit_causality"
# Frequencies of the published verbs, if the files of the paper are available.
PUBLISHED_FREQUENCY = "huynh2022/verb_bias_frequency.csv"
TEMPLATE = "The {subject} {verb} the {object} {connective}"
MENTION = "the {noun}"
MALE, FEMALE = "m", "f"
STIMULI: dict[str, Any] = {
    "item": pl.String,
    "verb": pl.String,
    "noun_pair": pl.String,
    "order": pl.Int64,
    "connective": pl.String,
    "subject": pl.String,
    "object": pl.String,
    "subject_gender": pl.String,
    "object_gender": pl.String,
    "prompt": pl.String,
    "subject_text": pl.String,
    "object_text": pl.String,
    "bias": pl.Float64,
    "log_frequency": pl.Float64,
}
FIELDS = (
    "template",
    "mention",
    "language",
    "connectives",
    "pronouns",
    "verbs",
    "nouns",
    "norms",
    "frequency",
    "same_gender",
)


@dataclass(frozen=True, kw_only=True)
class StimulusSet:
    """Rows of STIMULI; notes say what is missing, pronouns are those of each gender.

    frequency: the table of verb frequencies that the design names; without one, wordfreq counts in
    `language`.

    subject_text, object_text: what is scored after the prompt: the pronoun for the subject and the one for
    the object; with two nouns of one gender, whose pronouns are the same, the nouns themselves.
    """

    name: str
    rows: pl.DataFrame
    pronouns: dict[str, str]
    mention: str = MENTION
    language: str = "en"
    frequency: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for equal stimuli."""
        return fingerprint(self.rows.rows())


def read_stimuli_set(source: str, *, frequency: Path | None = None) -> StimulusSet:
    """The stimuli of the published table, or those that a .toml file describes.

    frequency: a table with the columns verb and log_frequency (or count), in place of other frequencies.

    Raises BadInput naming file, line and field.
    """
    found = _read_design(Path(source)) if Path(source).suffix == ".toml" else _read_published(source)
    return _add_frequency(found, frequency, source)


def _read_published(source: str) -> StimulusSet:
    if source != PUBLISHED and is_table(source):
        raise BadInput(
            f"{source} is not a design file; give {PUBLISHED}, or a .toml file that names your tables."
        )
    items = read_dataset(source).items
    known = {"bias", "noun_pair", "pronoun_gender"} <= set(items.columns)
    if not known or set(items["condition"]) != {"subject", "object"}:
        raise NotPossible(f"'{source}' has no verbs with their bias; give {PUBLISHED} or a .toml file.")
    keys = ["context_text", "suite", "noun_pair", "bias"]
    wide = items.pivot(on="condition", index=keys, values=["text", "pronoun_gender"], maintain_order=True)
    nouns = pl.col("context_text").str.extract_groups(r"^The (\S+) .+ the (\S+) (.+)$")
    rows = wide.with_columns(nouns.alias("nouns")).select(
        item=pl.col("context_text"),
        verb=pl.col("suite"),
        noun_pair=pl.col("noun_pair").cast(pl.String),
        connective=pl.col("nouns").struct.field("3"),
        subject=pl.col("nouns").struct.field("1"),
        object=pl.col("nouns").struct.field("2"),
        subject_gender=pl.col("pronoun_gender_subject"),
        object_gender=pl.col("pronoun_gender_object"),
        prompt=pl.col("context_text"),
        subject_text=pl.col("text_subject"),
        object_text=pl.col("text_object"),
        bias=pl.col("bias").cast(pl.Float64),
    )
    rows = rows.with_columns(
        order=pl.int_range(pl.len()).over("verb", "noun_pair", "connective"),
        log_frequency=pl.lit(None, dtype=pl.Float64),
    )
    genders = zip([*rows["subject_gender"], *rows["object_gender"]], _texts(rows), strict=True)
    return StimulusSet(name=source, rows=_conform(rows), pronouns=dict(genders))


def _texts(rows: pl.DataFrame) -> list[str]:
    return [*rows["subject_text"], *rows["object_text"]]


def _read_design(path: Path) -> StimulusSet:
    """Stimuli from a design file: a template, connectives, pronouns, and tables of verbs and nouns."""
    document = read_document(path)
    document.only((), FIELDS)
    template = _text(document, "template", TEMPLATE)
    for part in ("{subject}", "{verb}", "{object}", "{connective}"):
        if part not in template:
            document.fail(("template",), f"has no {part}")
    mention = _text(document, "mention", MENTION)
    connectives = document.texts(("connectives",)) if "connectives" in document.content else ["because"]
    if not connectives:
        document.fail(("connectives",), "is empty; name at least one, such as because")
    pronouns = {MALE: "he", FEMALE: "she"}
    if "pronouns" in document.content:
        document.only(("pronouns",), (MALE, FEMALE))
        pronouns = {gender: document.text(("pronouns", gender)) for gender in (MALE, FEMALE)}
    verbs, notes = _read_verbs(document)
    same = "same_gender" in document.content and document.get(("same_gender",), bool, "true or false")
    pairs = _read_nouns(document, same=same)
    rows = []
    for verb, (pair, first, second), connective in product(verbs, pairs, connectives):
        for order, (subject, target) in enumerate(((first, second), (second, first))):
            words = {"subject": subject[0], "object": target[0], "verb": verb["verb"]}
            prompt = template.format(**words, connective=connective)
            prompt = prompt[:1].upper() + prompt[1:]
            alike = subject[1] == target[1]
            texts = [
                mention.format(noun=noun) if alike else pronouns[gender] for noun, gender in (subject, target)
            ]
            rows.append(
                {
                    "item": prompt,
                    "verb": verb["verb"],
                    "noun_pair": pair,
                    "order": order,
                    "connective": connective,
                    "subject": subject[0],
                    "object": target[0],
                    "subject_gender": subject[1],
                    "object_gender": target[1],
                    "prompt": prompt,
                    "subject_text": texts[0],
                    "object_text": texts[1],
                    "bias": verb["bias"],
                    "log_frequency": verb["log_frequency"],
                }
            )
    table = pl.DataFrame(rows, schema=STIMULI)
    twice = table.filter(pl.col("item").is_duplicated())
    if twice.height:
        raise BadInput(f"{path} makes '{twice['item'][0]}' twice; each verb and noun may be listed once.")
    frequency = path.parent / document.text(("frequency",)) if "frequency" in document.content else None
    return StimulusSet(
        name=path.stem,
        rows=table,
        pronouns=pronouns,
        mention=mention,
        language=_text(document, "language", "en"),
        frequency=frequency,
        notes=tuple(notes),
    )


def _text(document: Document, name: str, default: str) -> str:
    return document.text((name,)) if name in document.content else default


def _table(
    document: Document,
    name: str,
    needed: tuple[str, ...],
    *,
    texts: tuple[str, ...] = (),
    numbers: tuple[str, ...] = (),
) -> pl.DataFrame:
    """A table that a design names; texts: columns without an empty cell; numbers: columns of numbers."""
    path = document.path.parent / document.text((name,))
    if not path.is_file():
        document.fail((name,), f"names {path}, which does not exist")
    frame = read_frame(path)
    for column in needed:
        if column not in frame.columns:
            raise BadInput(f"{path} has no column '{column}'; it has {', '.join(frame.columns)}.")
    for column in texts:
        if column in frame.columns:
            frame = frame.with_columns(pl.col(column).cast(pl.String))
            empty = frame[column].fill_null("").str.strip_chars() == ""
            if empty.any():
                raise BadInput(f"{path}: row {empty.arg_true()[0] + 1} has no '{column}'; fill it in.")
    for column in numbers:
        if column in frame.columns:
            frame = frame.with_columns(read_numbers(frame[column], path))
    return frame


def read_numbers(values: pl.Series, path: Path) -> pl.Series:
    """A column of numbers; an empty cell stays one.

    Raises BadInput for a cell that is not a finite number.
    """
    found = values.cast(pl.Float64, strict=False)
    wrong = (found.is_null() & values.is_not_null()) | ~found.fill_null(0.0).is_finite()
    if wrong.any():
        place = wrong.arg_true()[0]
        raise BadInput(
            f"{path}: row {place + 1} has '{values[place]}' as '{values.name}', which is not a number."
        )
    return found


def _read_verbs(document: Document) -> tuple[list[dict[str, Any]], list[str]]:
    """Verbs as they stand in a sentence, with bias and frequency; norms are joined by lemma."""
    verbs = _table(document, "verbs", ("verb",), texts=("verb", "lemma"), numbers=("bias", "log_frequency"))
    notes = []
    if "norms" in document.content:
        norms = _table(document, "norms", ("lemma", "bias"), texts=("lemma",), numbers=("bias",))
        norms = norms.select("lemma", "bias")
        if norms["lemma"].is_duplicated().any():
            raise BadInput(f"{document.path}: the norms list a lemma twice; keep one row of each.")
        lemma = "lemma" if "lemma" in verbs.columns else "verb"
        verbs = verbs.drop("bias", strict=False).join(
            norms, left_on=lemma, right_on="lemma", how="left", maintain_order="left"
        )
    for column in ("bias", "log_frequency"):
        if column not in verbs.columns:
            verbs = verbs.with_columns(pl.lit(None, dtype=pl.Float64).alias(column))
    lacking = verbs.filter(pl.col("bias").is_null())["verb"].to_list()
    if lacking:
        notes.append(
            f"{len(lacking)} of {verbs.height} verbs have no bias norm ({', '.join(lacking[:5])}"
            f"{', ...' if len(lacking) > 5 else ''}): they are scored, but in no analysis by bias."
        )
    return verbs.select("verb", "bias", "log_frequency").to_dicts(), notes


def _read_nouns(document: Document, *, same: bool) -> list[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Noun pairs: a male and a female noun each; with `same`, also neighbouring nouns of one gender."""
    nouns = _table(document, "nouns", (MALE, FEMALE), texts=(MALE, FEMALE))
    males, females = nouns[MALE].to_list(), nouns[FEMALE].to_list()
    pairs = [
        (str(place), (male, MALE), (female, FEMALE))
        for place, (male, female) in enumerate(zip(males, females, strict=True))
    ]
    if not same:
        return pairs
    for gender, own in ((MALE, males), (FEMALE, females)):
        for place in range(0, len(own) - 1, 2):
            pairs.append((f"{gender}{place // 2}", (own[place], gender), (own[place + 1], gender)))
    return pairs


def _add_frequency(found: StimulusSet, table: Path | None, source: str) -> StimulusSet:
    """Log frequency of verbs from a table, the paper's own, or wordfreq; what was used is noted."""
    rows, notes = found.rows, list(found.notes)
    path = table or found.frequency
    if path is None and rows["log_frequency"].null_count() < rows.height:
        return found
    published = data_folder()
    if path is None and source == PUBLISHED and published and (published / PUBLISHED_FREQUENCY).exists():
        path = published / PUBLISHED_FREQUENCY
    if path is not None:
        frame = _read_frequency(path)
        notes.append(f"Log frequencies are those of {path.name}.")
    else:
        frame = _count_with_wordfreq(rows["verb"].unique(maintain_order=True).to_list(), found.language)
        notes.append("Log frequencies are the Zipf frequencies of wordfreq.")
    rows = rows.drop("log_frequency").join(frame, on="verb", how="left", maintain_order="left")
    lacking = rows.filter(pl.col("log_frequency").is_null())["verb"].unique(maintain_order=True).to_list()
    if lacking:
        notes.append(
            f"{len(lacking)} verbs have no frequency ({', '.join(lacking[:5])}"
            f"{', ...' if len(lacking) > 5 else ''}): they are in no analysis by frequency."
        )
    return replace(found, rows=_conform(rows), notes=tuple(notes))


def _read_frequency(path: Path) -> pl.DataFrame:
    frame = read_frame(path)
    names = {"log_frequency": None, "Lg10WF": None, "count": 1, "FREQcount": 1}
    found = next((name for name in names if name in frame.columns), None)
    if "verb" not in frame.columns or found is None:
        raise BadInput(f"{path} needs the columns verb and log_frequency (or count).")
    frame = frame.with_columns(pl.col("verb").cast(pl.String), read_numbers(frame[found], path))
    if names[found] is not None and (frame[found] < 0).any():
        raise BadInput(f"{path} has a count below 0 in '{found}'; correct it.")
    value = pl.col(found) if names[found] is None else (pl.col(found) + 1.0).log10()
    told = frame.select("verb", value.alias("log_frequency")).unique(maintain_order=True)
    twice = told.filter(pl.col("verb").is_duplicated())
    if twice.height:
        raise BadInput(f"{path} gives '{twice['verb'][0]}' two frequencies; keep one row of each verb.")
    return told


def _count_with_wordfreq(verbs: list[str], language: str) -> pl.DataFrame:
    try:
        from wordfreq import zipf_frequency
    except ImportError as error:
        raise NotPossible(
            "Log frequencies need wordfreq or a table; run `pip install 'felicity[stimuli]'`, or pass "
            "--frequency TABLE."
        ) from error
    try:
        values = [zipf_frequency(verb, language) or None for verb in verbs]
    except (LookupError, ValueError) as error:  # no such list; no such tag
        raise BadInput(
            f"wordfreq has no words of the language '{language}'; correct `language`, or pass "
            "--frequency TABLE."
        ) from error
    return pl.DataFrame(
        {"verb": verbs, "log_frequency": values}, schema={"verb": pl.String, "log_frequency": pl.Float64}
    )


def _conform(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(name).cast(dtype) for name, dtype in STIMULI.items())
