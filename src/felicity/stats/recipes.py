"""Recipes: how a study of reading relates a measure of every word to its surprisal; one function runs them.

A recipe names the controls, the words before whose values enter, the rows that are left out, and how
likelihoods are computed. Word tables have one row per word, in reading order, with the columns `text`,
`sentence`, `position`, `word`, `surprisal`, the controls and one or more measures. `frequency_1` is the
frequency of the word before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Frame, as_polars
from felicity.stats.predictive_power import (
    DEFAULT,
    Gain,
    InSample,
    Scheme,
    columns_of,
    compare_in_sample,
    complete_rows,
    measure_gain,
)

SURPRISAL = "surprisal"
SENTENCE = ("text", "sentence")
PUNCTUATION = r"[.,']"
EXCLUSIONS: dict[str, tuple[str, pl.Expr]] = {
    "punctuation": ("words with a full stop, comma or apostrophe", pl.col("word").str.contains(PUNCTUATION)),
    "sentence_first": ("first words of sentences", pl.col("sentence_first").cast(pl.Boolean)),
    "sentence_last": ("last words of sentences", pl.col("sentence_last").cast(pl.Boolean)),
}
EXCLUDED = {"rule": pl.String, "rows": pl.Int64}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a measure is regressed on surprisal.

    controls: columns of the baseline; control_lags: how many words before enter with the lagged ones.
    lagged: the controls that have values of the words before. products: all products of two controls too.
    lags: the words whose surprisal is tested, 0 being the word itself; controlled: surprisals in the
    baseline. within: the columns inside which words before are looked for. fill: what is done where there is
    no word before, the row left out or the mean taken. positive: leave out measures of 0 or below.
    scheme: how held-out likelihoods are computed; None compares in-sample likelihoods.
    """

    name: str
    title: str
    controls: tuple[str, ...] = ("frequency", "length")
    lagged: tuple[str, ...] = ("frequency", "length")
    control_lags: int = 2
    products: bool = False
    lags: tuple[int, ...] = (0, 1, 2)
    controlled: tuple[int, ...] = ()
    within: tuple[str, ...] = SENTENCE
    fill: Literal["drop", "mean"] = "drop"
    exclude: tuple[str, ...] = ()
    positive: bool = False
    scheme: Scheme | None = DEFAULT
    doubts: tuple[str, ...] = ()

    @property
    def baseline(self) -> list[str]:
        """The terms of the baseline."""
        terms = [lag_name(name, lag) for lag in range(self.control_lags + 1) for name in self._at(lag)]
        if self.products:
            terms += [f"{a}:{b}" for a, b in combinations(terms, 2)]
        return terms + [lag_name(SURPRISAL, lag) for lag in self.controlled]

    @property
    def critical(self) -> list[str]:
        """The surprisals that the larger model adds."""
        return [lag_name(SURPRISAL, lag) for lag in self.lags]

    def _at(self, lag: int) -> Sequence[str]:
        return self.controls if lag == 0 else [name for name in self.controls if name in self.lagged]

    def formulas(self, measure: str) -> tuple[str, str]:
        """The baseline and the model with surprisal."""
        baseline = f"{measure} ~ {' + '.join(self.baseline or ['1'])}"
        return baseline, f"{baseline} + {' + '.join(self.critical)}"

    def describe_lags(self) -> str:
        """Which words predict the times of a word, by an example."""
        reach = max([*self.lags, *self.controlled, self.control_lags])
        words = ", ".join(str(5 - back) for back in range(reach + 1))
        one = f"word 5's times are predicted with word{'s' * (reach > 0)} {words}"
        return f"{one}, all of one {self.within[-1]}" if reach else one


def lag_name(column: str, lag: int) -> str:
    """The column of the word so many before: `surprisal_1`."""
    return column if lag == 0 else f"{column}_{lag}"


def add_lags(
    words: Frame, columns: Sequence[str], lags: int, *, within: Sequence[str], fill: str = "drop"
) -> pl.DataFrame:
    """Columns of the words before, within a sentence or text; those that are there already stay as they are.

    Raises UnknownName for a column that is not there.
    """
    table = as_polars(words)
    for name in [*columns, *within]:
        if name not in table.columns:
            raise UnknownName("column", name, table.columns)
    made = []
    for name in columns:
        for lag in range(1, lags + 1):
            if lag_name(name, lag) not in table.columns:
                moved = pl.col(name).shift(lag).over(list(within))
                moved = moved.fill_null(pl.col(name).mean()) if fill == "mean" else moved
                made.append(moved.alias(lag_name(name, lag)))
    return table.with_columns(made)


def prepare_rows(words: Frame, measure: str, recipe: Recipe) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows that a recipe uses for a measure, and how many it left out by which rule.

    Raises UnknownName for a column or rule that is not there, BadInput if no row is left.
    """
    table = _add_all_lags(words, recipe)
    dropped: list[dict[str, object]] = []
    for meaning, unwanted in _list_rules(measure, recipe):
        kept = table.filter(~unwanted)
        dropped.append({"rule": meaning, "rows": table.height - kept.height})
        table = kept
    if table.is_empty():
        raise BadInput(f"No word is left for '{measure}' after the exclusions of the recipe '{recipe.name}'.")
    kept, missing = complete_rows(table, recipe.formulas(measure))
    if missing.height:
        names = ", ".join(f"{row['column']} {row['missing']}" for row in missing.to_dicts())
        dropped.append({"rule": f"a value is missing ({names})", "rows": table.height - kept.height})
    if kept.is_empty():
        raise BadInput(f"No word has '{measure}' and every predictor; look at: {dropped[-1]['rule']}.")
    return kept, pl.DataFrame(dropped, schema=EXCLUDED)


def explain_rows(words: Frame, measure: str, recipe: Recipe) -> pl.Series:
    """Why each word is left out by `prepare_rows`, by the first rule that applies; null where it is used."""
    table = _add_all_lags(words, recipe)
    reasons = [pl.when(unwanted).then(pl.lit(meaning)) for meaning, unwanted in _list_rules(measure, recipe)]
    for name in dict.fromkeys(name for one in recipe.formulas(measure) for name in columns_of(one)):
        absent = pl.col(name).is_null()
        if table[name].dtype.is_float():
            absent |= ~pl.col(name).is_finite().fill_null(True)
        reasons.append(pl.when(absent).then(pl.lit(_say_missing(name, recipe.within[-1]))))
    return table.select(pl.coalesce(reasons).alias("left_out"))["left_out"]


def _say_missing(column: str, within: str = "sentence") -> str:
    """What is missing, in words; of a column of the words before, how many before.

    >>> _say_missing("surprisal_2"), _say_missing("frequency")
    ('no surprisal 2 words before in the sentence', 'no frequency')
    """
    name, _, lag = column.rpartition("_")
    if not name or not lag.isdecimal():
        return f"no {column.replace('_', ' ')}"
    return f"no {name.replace('_', ' ')} {lag} word{'s' * (lag != '1')} before in the {within}"


def _add_all_lags(words: Frame, recipe: Recipe) -> pl.DataFrame:
    """The words with every column of the words before that the recipe uses."""
    deepest = max([*recipe.lags, *recipe.controlled], default=0)
    table = add_lags(words, recipe.lagged, recipe.control_lags, within=recipe.within, fill=recipe.fill)
    return add_lags(table, [SURPRISAL], deepest, within=recipe.within, fill=recipe.fill)


def _list_rules(measure: str, recipe: Recipe) -> list[tuple[str, pl.Expr]]:
    """The rules by which words are left out, with their meanings.

    Raises UnknownName.
    """
    rules = []
    for rule in recipe.exclude:
        if rule not in EXCLUSIONS:
            raise UnknownName("exclusion", rule, EXCLUSIONS)
        rules.append(EXCLUSIONS[rule])
    if recipe.positive:
        rules.append((f"{measure} of 0 or below", pl.col(measure) <= 0))
    return [(meaning, unwanted.fill_null(False)) for meaning, unwanted in rules]


@dataclass(frozen=True)
class Outcome:
    """What surprisal adds for one measure: held-out or in-sample, the rows used, and those left out."""

    recipe: Recipe
    measure: str
    rows: pl.DataFrame
    excluded: pl.DataFrame
    held_out: Gain | None
    in_sample: InSample

    @property
    def per_word(self) -> float:
        """Delta log-likelihood per word, as the recipe defines it."""
        return self.held_out.delta if self.held_out is not None else self.in_sample.per_row


def apply_recipe(words: Frame, measure: str, recipe: Recipe, *, draws: int = 5_000, seed: int = 0) -> Outcome:
    """Regress a measure on surprisal as a recipe says; both models on identical rows."""
    rows, excluded = prepare_rows(words, measure, recipe)
    baseline, target = recipe.formulas(measure)
    held_out = None
    if recipe.scheme is not None:
        named = [name for name in SENTENCE if name in rows.columns]
        held_out = measure_gain(
            rows, baseline, target, scheme=recipe.scheme, cluster=named or None, draws=draws, seed=seed
        )
    return Outcome(recipe, measure, rows, excluded, held_out, compare_in_sample(rows, baseline, target))


UCL = Recipe(
    name="devarda2023",
    title="de Varda et al. 2023: in-sample likelihood, words with . , or ' left out",
    controls=("frequency", "length", "position"),
    control_lags=0,
    products=True,
    lags=(0,),
    exclude=("punctuation",),
    scheme=None,
    doubts=(
        "Likelihoods are in-sample, so that every predictor adds something; eye-tracking means count skipped "
        "words as 0 ms; a natural logarithm is called Subtlex_log10 in the file.",
    ),
)


@dataclass(frozen=True)
class ReadingScore:
    """BabyLM's reading score: per cent of the variance that the baseline leaves, and the number of words."""

    share: float
    n: int


def prepare_babylm(
    words: Frame, measure: str, *, spillover: bool = False, exclude: bool = False, none_missing: bool = True
) -> tuple[pl.DataFrame, str]:
    """The rows and the baseline of one regression of the BabyLM reading task.

    words: columns word, position, frequency, length, surprisal and the measures; with spillover also
    prev_item, length_1 and surprisal_1, which then enter the baseline with all products. exclude: leave out
    words with a full stop, comma or apostrophe. none_missing: the word "None" before another counts as
    missing, as pandas reads it.
    """
    recipe = RECIPES["babylm2025"]
    recipe = replace(recipe, exclude=("punctuation",)) if exclude else recipe
    table, terms = as_polars(words), list(recipe.controls)
    if spillover:
        missing = pl.col("prev_item").is_null() | ((pl.col("prev_item") == "None") & none_missing)
        table = table.filter(~missing)
        terms += ["length_1", "surprisal_1"]
    baseline = f"{measure} ~ {' + '.join([*terms, *(f'{a}:{b}' for a, b in combinations(terms, 2))])}"
    rows, _ = prepare_rows(table, measure, replace(recipe, controls=tuple(terms), products=False))
    return rows, baseline


def measure_reading(words: Frame, task: str, *, exclude: bool = False) -> ReadingScore:
    """BabyLM's reading score of `eye_tracking` (the mean over four measures) or `self_paced`.

    Raises UnknownName for another task.
    """
    if task not in READING_TASKS:
        raise UnknownName("reading task", task, READING_TASKS)
    found = []
    for measure in READING_TASKS[task]:
        rows, baseline = prepare_babylm(words, measure, spillover=task == "self_paced", exclude=exclude)
        found.append(compare_in_sample(rows, baseline, f"{baseline} + surprisal"))
    return ReadingScore(100 * sum(one.r2_share for one in found) / len(found), found[0].n)


READING_TASKS = {
    "eye_tracking": ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound"),
    "self_paced": ("self_paced_reading_time",),
}
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="default",
            title="held-out likelihood over contiguous folds of whole sentences",
            controls=("frequency", "length", "position", "punctuation"),
        ),
        Recipe(
            name="wilcox2023",
            title="Wilcox et al. 2023: ten contiguous folds of rows, two words of spillover",
            scheme=Scheme(10, "width", "training"),
            within=("text",),
            doubts=(
                "Folds cut through sentences; eye-tracking means count skipped words as 0 ms; words without "
                "a frequency are left out, and with them most rare words.",
            ),
        ),
        UCL,
        Recipe(
            name="kuribayashi2024",
            title="Kuribayashi et al. 2024: in-sample likelihood, surprisal of two words before controlled",
            lags=(0,),
            controlled=(1, 2),
            fill="mean",
            exclude=("sentence_first", "sentence_last"),
            positive=True,
            scheme=None,
            doubts=(
                "The published figures took the surprisals of the words before from another order of the "
                "texts than the words; the times of Natural Stories are listed one word early.",
            ),
        ),
        replace(
            UCL,
            name="babylm2025",
            title="BabyLM 2025: share of the variance that the baseline leaves, no word left out",
            exclude=(),
            doubts=(
                "The pipeline scores words without their leading space, which is no text that a model has "
                "seen; final words carry most of the score.",
            ),
        ),
    )
}
