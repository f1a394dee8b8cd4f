"""The settings of the study of reading."""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.settings import Data, argument, option
from felicity.studies.definition import StudyDefinition

TIMES = "Times and words"
REGRESSION = "Regression"
CONDITIONS = "Conditions"
PRESETS = ("default", "wilcox2023", "devarda2023", "kuribayashi2024", "michaelov2022", "babylm2025")
RULES = ("punctuation", "sentence_first", "sentence_last")


@dataclass(frozen=True, kw_only=True)
class ReadingSettings:
    """Predict reading times, ERPs or cloze of every word from its surprisal.

    WORDS is a corpus (natural_stories, ucl, provo, meco, sap) or a table with one row per word, or per word
    and reader, in reading order: columns word, sentence, if there are several texts text, position, and one
    or more measures (self_paced, maze, first_fixation, first_pass, go_past, total, n400, cloze, ...). An
    export of `felicity rate` is read as it is. Words are found in the model's text by their characters.

    The page shows what surprisal adds to length, frequency and position on held-out sentences, slopes in ms
    per bit, the curve of time over surprisal, whether the times belong to the words they are listed at, and
    what was left out. If there are single readers, mixed models by reader and word are fitted too.

    \b
    Examples:
      felicity reading natural_stories -m smollm2 -o runs/ns
      felicity reading my_reading_times.csv -m gpt2 -m ./my-lstm
      felicity reading my_times.csv --surprisal scores.csv
      felicity reading ucl --measure first_pass --measure n400 --preset devarda2023
    """

    words: Data = argument("A corpus, or a table of words and measures.", metavar="WORDS")
    measures: tuple[str, ...] = option(
        (), "A measure, or a column that holds one; repeatable.  [default: all]", flag="--measure"
    )
    surprisal: tuple[Data, ...] = option(
        (),
        "Surprisals someone else computed: a table with the same words, or a column of WORDS; repeatable.",
        metavar="FILE|COLUMN",
    )
    unit: str = option("bits", "Unit of given surprisals: bits or nats.", choices=("bits", "nats"))
    context: str = option(
        "story", "What a model reads before a sentence: story, sentence (nothing), or N sentences."
    )
    boundary: str = option(
        "auto",
        "Surprisal that leads: corrected for trailing white space, plain, or auto. Both are computed.",
        choices=("auto", "corrected", "plain"),
        analysis=True,
    )
    entropy: bool = option(True, "Compute entropy too, which reads the texts a second time.")
    texts: int | None = option(None, "Use only the first so many texts.", least=1, panel=TIMES)
    source: Path | None = option(
        None, "A folder with your own copy of the corpus.", flag="--from", metavar="DIR", panel=TIMES
    )
    language: str = option("en", "Language of the words, for frequencies; of MECO, its code.", panel=TIMES)
    frequencies: Data | None = option(
        None,
        "A table with the columns word and frequency (a logarithm) or count, or a column of WORDS.  "
        "[default: the column frequency, else wordfreq]",
        metavar="FILE|COLUMN",
        panel=TIMES,
    )
    shortest: float | None = option(
        None,
        "Leave out shorter times of single readers, ms.  [default: 100; with a preset 0]",
        least=0,
        panel=TIMES,
        analysis=True,
    )
    longest: float | None = option(
        None,
        "Leave out longer times of single readers, ms.  [default: 3000; with a preset none]",
        least=0,
        panel=TIMES,
        analysis=True,
    )
    skipped: str = option(
        "auto",
        "A word that was not fixated: zero (0 ms), out (left out), or auto: out, with a preset zero.",
        choices=("auto", "zero", "out"),
        panel=TIMES,
        analysis=True,
    )
    preset: str = option(
        "default",
        f"How measures are regressed: {', '.join(PRESETS)}.",
        choices=PRESETS,
        panel=REGRESSION,
        analysis=True,
    )
    lags: int | None = option(
        None,
        "Surprisal of this many words before enters too.  [default: 2]",
        least=0,
        most=3,
        panel=REGRESSION,
        analysis=True,
    )
    control_lags: int | None = option(
        None,
        "Length and frequency of this many words before enter too.  [default: 2]",
        least=0,
        most=3,
        panel=REGRESSION,
        analysis=True,
    )
    controls: tuple[str, ...] = option(
        (),
        "A further column of the baseline, such as text_position or sentence_last; repeatable.",
        flag="--control",
        panel=REGRESSION,
        analysis=True,
    )
    predictors: tuple[str, ...] = option(
        (),
        "A further column tested on top of surprisal, as entropy is; repeatable.",
        flag="--predictor",
        panel=REGRESSION,
        analysis=True,
    )
    exclude: tuple[str, ...] = option(
        (),
        f"Leave out words by rule: {', '.join(RULES)}; repeatable.",
        choices=RULES,
        panel=REGRESSION,
        analysis=True,
    )
    folds: int | None = option(
        None, "Folds of held-out sentences.  [default: 10]", least=2, panel=REGRESSION, analysis=True
    )
    mixed: bool = option(
        True, "Fit mixed models where there are single readers.", panel=REGRESSION, analysis=True
    )
    draws: int = option(2_000, "Draws of the bootstrap.", least=100, panel=REGRESSION, analysis=True)
    seed: int = option(0, "Seed of everything that is drawn.", least=0, analysis=True)
    condition: str | None = option(
        None, "Column of conditions: surprisal is compared between them.", panel=CONDITIONS
    )
    critical: str | None = option(
        None, "Column that is 1 or true at the words that are compared.", panel=CONDITIONS
    )
    item: str = option("item", "Column of items, whose conditions are compared.", panel=CONDITIONS)
    fillers: Data | None = option(
        None,
        "A table of words and times by reader of which bits become milliseconds, for effects by item (sap).",
        metavar="FILE",
        panel=CONDITIONS,
    )


STUDY = StudyDefinition(
    name="reading",
    title="Reading times",
    settings=ReadingSettings,
    code="felicity.studies.reading",
    instead="surprisal",
)
