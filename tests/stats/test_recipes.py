"""Recipes: lags within sentences, exclusions that are counted, formulas, and the words that predict."""

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats import RECIPES, Recipe, Scheme, add_lags, apply_recipe, prepare_rows


@pytest.fixture(scope="module")
def words() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    n = 400
    surprisal = rng.gamma(2.0, 3.0, n)
    return pl.DataFrame(
        {
            "text": np.arange(n) // 100,
            "sentence": np.arange(n) // 10,
            "position": np.arange(n) % 10 + 1,
            "word": ["word," if i % 7 == 0 else "word" for i in range(n)],
            "surprisal": surprisal,
            "frequency": rng.normal(10, 2, n),
            "length": rng.integers(1, 12, n).astype(float),
            "rt": 300 + 4 * surprisal + rng.normal(0, 30, n),
            "punctuation": [int(i % 7 == 0) for i in range(n)],
            "sentence_first": np.arange(n) % 10 == 0,
            "sentence_last": np.arange(n) % 10 == 9,
        }
    )


def test_lags_look_back_within_the_sentence_only(words: pl.DataFrame) -> None:
    lagged = add_lags(words, ["surprisal"], 2, within=["text", "sentence"])
    assert lagged["surprisal_1"][1] == words["surprisal"][0]
    assert lagged["surprisal_2"][12] == words["surprisal"][10]
    assert lagged["surprisal_1"][10] is None
    assert lagged["surprisal_1"].null_count() == 40


def test_columns_of_words_before_that_are_given_stay(words: pl.DataFrame) -> None:
    given = words.with_columns(frequency_1=pl.lit(1.5))
    assert add_lags(given, ["frequency"], 1, within=["text"])["frequency_1"].unique().to_list() == [1.5]


def test_a_recipe_counts_what_it_leaves_out(words: pl.DataFrame) -> None:
    holes = words.with_columns(
        pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("frequency").alias("frequency"),
        pl.when(pl.int_range(pl.len()) == 6).then(0.0).otherwise("rt").alias("rt"),
    )
    recipe = Recipe(name="mine", title="", control_lags=0, lags=(0,), exclude=("punctuation",), positive=True)
    rows, excluded = prepare_rows(holes, "rt", recipe)
    assert dict(excluded.rows()) == {
        "words with a full stop, comma or apostrophe": 58,
        "rt of 0 or below": 1,
        "a value is missing (frequency 1)": 1,
    }
    assert rows.height == 400 - 60


def test_the_formulas_and_the_example_of_a_recipe() -> None:
    recipe = Recipe(name="mine", title="", control_lags=1, lags=(0, 1, 2))
    baseline, target = recipe.formulas("rt")
    assert baseline == "rt ~ frequency + length + frequency_1 + length_1"
    assert target == f"{baseline} + surprisal + surprisal_1 + surprisal_2"
    assert recipe.describe_lags() == "word 5's times are predicted with words 5, 4, 3, all of one sentence"


def test_every_recipe_runs_and_finds_the_effect(words: pl.DataFrame) -> None:
    for recipe in RECIPES.values():
        outcome = apply_recipe(words, "rt", recipe, draws=50)
        assert outcome.per_word > 0.02
        assert (outcome.held_out is None) == (recipe.scheme is None)
        assert recipe.name == "default" or recipe.doubts


def test_no_row_left_is_refused(words: pl.DataFrame) -> None:
    with pytest.raises(BadInput, match="No word is left for 'rt'"):
        prepare_rows(words.with_columns(rt=pl.lit(-1.0)), "rt", Recipe(name="m", title="", positive=True))


def test_unknown_names_are_refused(words: pl.DataFrame) -> None:
    with pytest.raises(UnknownName, match="exclusion 'comma'"):
        prepare_rows(words, "rt", Recipe(name="m", title="", exclude=("comma",)))
    with pytest.raises(UnknownName, match="column 'frequency'"):
        prepare_rows(words.drop("frequency"), "rt", Recipe(name="m", title="", scheme=Scheme(5)))
