"""What needs no language model: how many pairs word frequency, length or a 5-gram judge right.

A suite that one of them decides (above 90% or below 10%) measures that as much as grammar. Frequency is the
mean Zipf frequency of a sentence's words; length prefers the sentence with fewer characters; the 5-gram is
trained on a text, by default felicity's own prose, which is so small that most of its verdicts come from
function words. A tie counts as the chance of guessing.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.schemas import AUDIT, BASELINES, NOT_CHECKED
from felicity.core.wording import percent
from felicity.data import INSTALL, find_frequency
from felicity.design.contexts import BUILT_IN_TEXT, read_text_file
from felicity.engines.ngram import score_by_ngram
from felicity.judge import judge_contrasts
from felicity.stimuli.checks import looks_english, split_words

FREQUENCY, LENGTH, NGRAM = "word frequency", "length", "5-gram"
ORDER = 5
# Suites of which a baseline judges a share outside these right are named; with fewer pairs chance does it.
LOWEST, HIGHEST = 0.1, 0.9
FEWEST = 10
# Writing that has no spaces between words, so that they cannot be looked up one by one.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """The share of pairs that each baseline judges right, as rows of BASELINES, and remarks on them.

    margins: by how many nats the 5-gram prefers the better sentence, by item; empty if there is none.
    trained_on: what text the 5-gram is of. missing: what could not be computed, and why.
    """

    table: pl.DataFrame
    margins: Mapping[str, float]
    trained_on: str = ""
    missing: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should know, in sentences."""
        said = f"The 5-gram was {self.trained_on}; `--corpus FILE` takes another text."
        return (*((said,) if self.trained_on else ()), *(f"Not shown: {reason}." for reason in self.missing))

    def list_decided(self) -> pl.DataFrame:
        """The suites that a baseline decides: rows of BASELINES."""
        outside = (pl.col("accuracy") > HIGHEST) | (pl.col("accuracy") < LOWEST)
        return self.table.filter(pl.col("level") == "suite", pl.col("n") >= FEWEST, outside)

    def audit(self) -> pl.DataFrame:
        """Rows of AUDIT, one for each baseline: how many suites it decides, and its accuracy on all pairs."""
        rows: list[tuple[object, ...]] = []
        decided = self.list_decided()
        for (name,), part in self.table.group_by("baseline", maintain_order=True):
            overall = part.filter(level="overall").row(0, named=True)
            suites = part.filter(pl.col("level") == "suite", pl.col("n") >= FEWEST).height
            named = decided.filter(baseline=name)["name"].to_list()
            trained = f" ({self.trained_on})" if name == NGRAM else ""
            meaning = (
                f"suites of at least {FEWEST} pairs of which {name} alone{trained} judges more than 90% or "
                f"fewer than 10% right; of all {overall['n']:,} pairs it judges "
                f"{percent(overall['accuracy'])}% right"
            )
            rows.append((f"suites decided by {name}", len(named), suites, meaning, ", ".join(named)))
        rows += [(NOT_CHECKED, 1, 1, reason, "") for reason in self.missing]
        return pl.DataFrame(rows, schema=AUDIT, orient="row")


def measure_baselines(
    items: pl.DataFrame,
    requests: pl.DataFrame,
    contrasts: Sequence[Contrast],
    *,
    language: str | None = "en",
    corpus: Path | None = None,
) -> Baselines:
    """What word frequency, length and a 5-gram alone would score on the contrasts of these items.

    language: of the words, for frequencies and the built-in text; None if it is not known or there are
    several. corpus: a text for the 5-gram, one line or many.

    Raises BadInput if the corpus cannot be read.
    """
    texts = requests["text"].to_list()
    values: dict[str, list[float]] = {}
    missing: list[str] = []
    trained_on = ""
    frequency = find_frequency(language) if language else None
    if frequency is not None and not _is_unspaced(texts):
        values[FREQUENCY] = _average_frequency(texts, frequency)
    else:
        missing.append(_explain_missing(language))
    values[LENGTH] = [-float(len(text)) for text in texts]
    if corpus is not None or language == "en":
        lines = read_text_file(corpus or BUILT_IN_TEXT)
        scores = score_by_ngram(lines, texts, order=ORDER, name=str(corpus or "The built-in prose"))
        values[NGRAM] = scores.lp.tolist()
        source = corpus.name if corpus else "felicity's own prose"
        unknown = f"{percent(scores.unknown, 0)}% of the stimuli's words are unknown to it"
        trained_on = f"trained on {scores.trained_on:,} words of {source}; {unknown}"
    else:
        missing.append(f"{NGRAM}, because felicity's own prose is English and no other text was given")
    judged = _judge(items, requests, contrasts, values)
    margins = judged.filter(measure=NGRAM).group_by("item").agg(pl.col("margin").min())
    return Baselines(
        table=_tabulate(judged),
        margins=dict(margins.iter_rows()),
        trained_on=trained_on,
        missing=tuple(missing),
    )


def infer_language(texts: Sequence[str], languages: Sequence[str] = ()) -> str | None:
    """The language of sentences: the one that the dataset states, or English if they look like it.

    >>> infer_language(["The cat is on the mat."]), infer_language(["Het regent."], ["nl"])
    ('en', 'nl')
    """
    if languages:
        return languages[0] if len(languages) == 1 else None
    return "en" if looks_english(texts) else None


def _explain_missing(language: str | None) -> str:
    if language is None:
        return f"{FREQUENCY}, because the sentences are not in one known language"
    if language == "en":
        return f"{FREQUENCY}, because wordfreq is not installed; {INSTALL}"
    return (
        f"{FREQUENCY}, because wordfreq is not installed or cannot look up words of the language '{language}'"
    )


def _is_unspaced(texts: Sequence[str]) -> bool:
    letters = [letter for text in texts[:100] for letter in text if letter.isalpha()]
    unspaced = sum(unicodedata.name(letter, "").startswith(UNSPACED) for letter in letters)
    return 2 * unspaced > len(letters)


def _average_frequency(texts: Sequence[str], frequency: Callable[[str], float]) -> list[float]:
    values = []
    for text in texts:
        found = [frequency(word) for word in split_words(text.lower())]
        values.append(sum(found) / len(found) if found else 0.0)
    return values


def _judge(
    items: pl.DataFrame,
    requests: pl.DataFrame,
    contrasts: Sequence[Contrast],
    values: dict[str, list[float]],
) -> pl.DataFrame:
    scores = pl.concat(
        pl.DataFrame(
            {"request": requests["request"], "value": pl.Series(found, dtype=pl.Float64)}
        ).with_columns(measure=pl.lit(name), error=pl.lit(0.0))
        for name, found in values.items()
    )
    return judge_contrasts(items, requests, scores, contrasts)


def _tabulate(judged: pl.DataFrame) -> pl.DataFrame:
    judged = judged.rename({"measure": "baseline"})
    levels = {"overall": pl.lit("all"), "phenomenon": pl.col("phenomenon"), "suite": pl.col("suite")}
    parts = [
        judged.group_by("baseline", name.alias("name"), maintain_order=True)
        .agg(pl.col("passed").count().cast(pl.Int64).alias("n"), pl.col("passed").mean().alias("accuracy"))
        .with_columns(level=pl.lit(level))
        for level, name in levels.items()
    ]
    return pl.concat([part.select(list(BASELINES)) for part in parts])
